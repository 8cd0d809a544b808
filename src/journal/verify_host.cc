// Every line of the host chain is signed, linked to the one before, and numbered without a gap.
#include "journal/verify_host.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <optional>

#include "journal/chain.h"
#include "journal/host_chain.h"
#include "journal/line.h"
#include "journal/members.h"
#include "journal/open_file.h"
#include "os/os.h"

namespace journal {
namespace {

using Problem = std::string;  // "" for none

class HostCheck {
 public:
  HostCheck(const PublicKey& key, std::optional<LastSigned> last)
      : key_(key), last_(std::move(last)) {}

  Problem line(std::string_view line, HostView& view) {
    const auto members = Members::parse_object(line);
    if (!members) return "no event: " + members.error().what;
    const std::size_t cut = line.rfind(R"(,"sig":")");
    if (cut == std::string_view::npos || line.size() != cut + 8 + kSignatureDigits + 2)
      return "not signed";
    if (members->text("key_id") != key_.id()) return "signed by another key";
    if (!key_.signed_by(host_text(line.substr(0, cut)), line.substr(cut + 8, kSignatureDigits))) {
      return "its signature does not hold";
    }
    if (members->text("prev") != head_) return "it does not follow the line before";
    if (members->number("seq") != seq_ + 1) return fmt::format("number {} is missing", seq_ + 1);
    ++seq_;
    head_ = base::sha256(line);
    if (last_ && last_->seq == seq_ && last_->head != head_)
      return "it is not the line that was last signed";
    record(*members, view);
    return {};
  }

  [[nodiscard]] Problem end() const {
    if (last_ && last_->seq == 0 && last_->head.empty() && seq_ > 0)
      return "keys/host.last was emptied";
    if (last_ && last_->seq > seq_) {
      return fmt::format("lines {} to {} are cut off: keys/host.last has number {}", seq_ + 1,
                         last_->seq, last_->seq);
    }
    return {};
  }

 private:
  static void record(const Members& members, HostView& view) {
    const std::string run = members.text("run");
    const std::string type = members.text("type");
    if (type == "journal.head") {
      view.runs[run].push_back(
          {members.text("at"), members.number("events").value_or(0), members.text("head")});
    } else if (type == "journal.pruned") {
      view.pruned[run] = {"end", members.number("last").value_or(0), members.text("head")};
    }
  }

  const PublicKey& key_;
  std::optional<LastSigned> last_;
  std::string head_ = zeros();
  std::uint64_t seq_ = 0;
};

// keys/host.last; nullopt with a note where there is no keys folder to look into.
base::Result<std::optional<LastSigned>> last_signed(const std::string& state_dir, HostView& view) {
  const std::string folder = state_dir + "/keys";
  const auto file = open_file(folder + "/" + kLastFile, kLastFile);
  if (!file && is_strange(file.error())) {
    view.problem = "keys/host.last: is no regular file";
    return std::optional<LastSigned>();
  }
  if (file) {
    const auto last = parse_last(TRY(os::read_all(file->get(), 4096, kLastFile)));
    if (last) return std::optional(*last);
    view.problem = last.error().line();
    return std::optional<LastSigned>();
  }
  if (!is_missing(file.error())) return std::unexpected(file.error());
  if (os::open(folder, O_PATH | O_DIRECTORY, 0)) {
    view.problem = "keys/host.last: missing";
  } else {
    view.notes.emplace_back(
        "keys/host.last is not here, so a cut tail of host.jsonl would not be seen");
  }
  return std::optional<LastSigned>();
}

}  // namespace

base::Result<HostView> check_host(const std::string& state_dir, const PublicKey& key) {
  HostView view;
  HostCheck check(key, TRY(last_signed(state_dir, view)));
  if (!view.problem.empty()) return view;
  auto file = open_file(state_dir + "/journal/" + kHostFile, kHostFile);
  if (!file && !is_missing(file.error()) && !is_strange(file.error()))
    return std::unexpected(file.error());
  if (!file) {
    view.problem = fmt::format("{}: {}", kHostFile,
                               is_strange(file.error()) ? "is no regular file" : "missing");
    return view;
  }
  Lines lines(std::move(*file), kHostFile);
  while (true) {
    const Lines::Kind kind = TRY(lines.next());
    Problem problem;
    if (kind == Lines::Kind::line) {
      problem = check.line(lines.line(), view);
    } else if (kind == Lines::Kind::too_long) {
      problem = "too long";
    } else {
      problem = check.end();
      if (!problem.empty()) view.problem = fmt::format("{}: {}", kHostFile, problem);
      if (kind == Lines::Kind::unfinished) {
        view.notes.push_back(fmt::format("{}: its last line is unfinished ({} bytes)", kHostFile,
                                         lines.line().size()));
      }
      return view;
    }
    if (!problem.empty()) {
      view.problem = fmt::format("{}:{}: {}", kHostFile, lines.number(), problem);
      return view;
    }
  }
}

}  // namespace journal
