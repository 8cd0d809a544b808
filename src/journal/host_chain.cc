// The host chain. A process that is killed between its two writes leaves the file one line ahead of
// keys/host.last, which is no lie; a line that it left unfinished was never signed in and is cut
// off.
#include "journal/host_chain.h"

#include <linux/openat2.h>

#include <fmt/format.h>

#include <algorithm>

#include "journal/chain.h"
#include "journal/members.h"

namespace journal {
namespace {

constexpr std::uint64_t kMostTail = 1 << 20;

// The last whole line of the file; anything behind it is cut off. "" when there is none.
base::Result<std::string> last_line(int file) {
  const auto size = static_cast<std::uint64_t>(TRY(os::fstat(file, kHostFile)).st_size);
  std::string tail;
  std::uint64_t from = size;
  for (std::uint64_t most = 2 * kMaxHostLine; most <= kMostTail; most *= 16) {
    from = size > most ? size - most : 0;
    tail = TRY(os::read_at(file, most, from, kHostFile));
    if (from == 0 || std::count(tail.begin(), tail.end(), '\n') >= 2) break;
  }
  const std::size_t end = tail.rfind('\n');
  if (end == std::string::npos) {
    if (from != 0) return base::fail(base::Kind::peer, kHostFile, "its last line is too long", {});
    if (size != 0) TRY(os::truncate(file, 0, kHostFile));
    return std::string();
  }
  if (from + end + 1 != size) TRY(os::truncate(file, from + end + 1, kHostFile));
  const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
  const std::size_t start = before == std::string::npos ? 0 : before + 1;
  return tail.substr(start, end - start);
}

}  // namespace

std::string host_text(std::string_view body) {
  return "cerco-host-v1\n" + std::string(body);
}

std::string last_text(const LastSigned& last) {
  return fmt::format("{:020} {}\n", last.seq, last.head);
}

base::Result<LastSigned> parse_last(std::string_view text) {
  if (text.empty()) return LastSigned{0, {}};
  const auto wrong = [] { return base::bad_input("keys/host.last", "malformed", "NUMBER HASH"); };
  if (text.size() != 20 + 1 + 64 + 1 || text[20] != ' ' || text.back() != '\n') return wrong();
  std::string_view digits = text.substr(0, 20);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const auto seq = base::parse_number(digits);
  if (!seq) return wrong();
  return LastSigned{*seq, std::string(text.substr(21, 64))};
}

HostChain::HostChain(base::Fd file, base::Fd last, const SigningKey& key)
    : file_(std::move(file)), last_(std::move(last)), key_(key) {}

base::Result<base::Fd> HostChain::open_last(int keys_folder) {
  return os::openat2(keys_folder, kLastFile, O_RDWR | O_CREAT, 0600,
                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

base::Status HostChain::head(std::string_view run, std::string_view at, std::uint64_t events,
                             std::string_view head, const os::Instant& wall) {
  base::JsonObject members;
  members.add("at", at).add("events", events).add("head", head);
  return append(run, "journal.head", members.members(), wall);
}

base::Status HostChain::append(std::string_view run, std::string_view type,
                               std::string_view members, const os::Instant& wall) {
  const os::FileLock lock = TRY(os::FileLock::take(file_.get(), kHostFile));
  const std::string before = TRY(last_line(file_.get()));
  const std::string noted = TRY(os::read_at(last_.get(), 128, 0, kLastFile));
  const LastSigned last = TRY(parse_last(noted));
  // From the first line on an empty keys/host.last means that it was emptied.
  if (noted.empty()) TRY(os::write_at(last_.get(), last_text({0, zeros()}), 0, kLastFile));
  // A file that is behind the last signed number was cut, and a last line that is no event was
  // changed: both stay to be seen, and the chain goes on.
  const auto members_before = Members::parse_object(before);
  const std::uint64_t seq_before =
      members_before ? members_before->number("seq").value_or(0) : std::uint64_t{0};
  const std::uint64_t seq = std::max(seq_before, last.seq) + 1;
  std::string line = fmt::format(
      R"({{"v":1,"seq":{0},"id":"host:{0}","time":"{1}","run":{2},"type":"{3}","prev":"{4}",{5},"key_id":"{6}")",
      seq, time_text(wall), base::json_string(run), type,
      before.empty() ? zeros() : base::sha256(before), members, key_.id());
  line += fmt::format(R"(,"sig":"{}"}})", key_.sign(host_text(line)));
  const std::string head = base::sha256(line);
  TRY(os::write_all(file_.get(), line + "\n", kHostFile));
  return os::write_at(last_.get(), last_text({seq, head}), 0, kLastFile);
}

base::Status HostChain::start_writing() const {
  TRY(os::start_writing(file_.get(), kHostFile));
  return os::start_writing(last_.get(), kLastFile);
}

}  // namespace journal
