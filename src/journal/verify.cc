// Verification: each run's chain by itself, then against what the host chain recorded of it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "journal/chain.h"
#include "journal/host_chain.h"
#include "journal/line.h"
#include "journal/members.h"
#include "journal/open_file.h"
#include "journal/verify_host.h"
#include "os/os.h"

namespace journal {
namespace {

using Problem = std::string;  // "" for none

// One run, line by line.
class RunCheck {
 public:
  RunCheck(std::string run, const PublicKey& key, const std::vector<Recorded>& recorded)
      : run_(std::move(run)), key_(key), recorded_(recorded) {}

  [[nodiscard]] std::uint64_t events() const { return seq_; }
  [[nodiscard]] std::uint64_t checkpoints() const { return checkpoints_; }
  [[nodiscard]] const std::string& head() const { return head_; }

  Problem line(std::string_view line) {
    const auto members = Members::parse_object(line);
    if (!members) return "no event: " + members.error().what;
    if (Problem problem = form(line, *members); !problem.empty()) return problem;
    ++seq_;
    if (Problem problem = checkpoint(*members); !problem.empty()) return problem;
    head_ = base::sha256(line);
    for (const Recorded& recorded : recorded_) {
      if (recorded.events == seq_ && recorded.head != head_) {
        return "it is not the line that host.jsonl recorded here";
      }
    }
    return {};
  }

  // What the host chain knows of this run must be there, and nothing behind its signed end.
  [[nodiscard]] Problem end() const {
    for (const Recorded& recorded : recorded_) {
      if (recorded.events > seq_) {
        return fmt::format("events {} to {} are missing: host.jsonl recorded {}", seq_ + 1,
                           recorded.events, recorded.events);
      }
      if (final(recorded) && recorded.events != seq_) {
        return fmt::format("{} events stand behind the signed end at {}", seq_ - recorded.events,
                           recorded.events);
      }
    }
    return {};
  }

  [[nodiscard]] bool has_end() const {
    return std::any_of(recorded_.begin(), recorded_.end(), final);
  }
  [[nodiscard]] std::uint64_t since_checkpoint() const { return unsigned_; }

 private:
  static bool final(const Recorded& recorded) {
    return recorded.at == "end" || recorded.at == "abandoned";
  }

  // The members that every line begins with, in their order.
  [[nodiscard]] Problem form(std::string_view line, const Members& members) const {
    const std::string start =
        fmt::format(R"({{"v":1,"seq":{0},"id":"{1}:{0}","time":")", seq_ + 1, run_);
    if (members.number("seq") != seq_ + 1)
      return fmt::format("event {} is expected here", seq_ + 1);
    if (members.text("run") != run_) return "it belongs to another run";
    if (!line.starts_with(start))
      return "its first members are not those of event " + std::to_string(seq_ + 1);
    if (members.text("prev") != head_) return "it does not follow the line before";
    return {};
  }

  Problem checkpoint(const Members& members) {
    if (members.text("type") != "checkpoint") {
      if (++unsigned_ > kCheckpointEvery) return "a checkpoint is missing before it";
      return {};
    }
    if (members.text("key_id") != key_.id()) return "signed by another key";
    if (!key_.signed_by(checkpoint_text(run_, seq_, head_), members.text("sig"))) {
      return "its signature does not hold";
    }
    unsigned_ = 0;
    ++checkpoints_;
    return {};
  }

  std::string run_;
  const PublicKey& key_;
  const std::vector<Recorded>& recorded_;
  std::string head_ = zeros();
  std::uint64_t seq_ = 0;
  std::uint64_t unsigned_ = 0;
  std::uint64_t checkpoints_ = 0;
};

class Verifier {
 public:
  Verifier(std::string folder, PublicKey key, HostView host)
      : folder_(std::move(folder)), key_(key), host_(std::move(host)) {}

  // Adds what holds of the run to `result`, or its problem.
  base::Status run(const std::string& run, Verification& result) {
    const auto found = host_.runs.find(run);
    static const std::vector<Recorded> kNone;
    RunCheck check(run, key_, found == host_.runs.end() ? kNone : found->second);
    result.problem = TRY(files(run, check, result));
    result.events += check.events();
    result.checkpoints += check.checkpoints();
    result.head = check.head();
    if (!result.problem.empty()) return {};
    if (found == host_.runs.end() && check.events() > 0) {
      result.problem = file_name(run, 1) + ": host.jsonl does not know this run";
    } else if (const Problem problem = check.end(); !problem.empty()) {
      result.problem = file_name(run, 1) + ": " + problem;
    } else if (!check.has_end()) {
      result.notes.push_back(fmt::format(
          "{}: no signed end: it is still running, or its journal was killed; the last {} events "
          "stand behind the last checkpoint",
          run, check.since_checkpoint()));
    }
    return {};
  }

  // Whether retention removed the run, and what it removed is what was recorded.
  [[nodiscard]] bool pruned(const std::string& run) const {
    const auto gone = host_.pruned.find(run);
    const auto found = host_.runs.find(run);
    if (gone == host_.pruned.end() || found == host_.runs.end()) return false;
    const Recorded& last = found->second.back();
    return last.events == gone->second.events && last.head == gone->second.head;
  }
  [[nodiscard]] const HostView& host() const { return host_; }

 private:
  base::Result<Problem> files(const std::string& run, RunCheck& check, Verification& result) {
    for (std::uint64_t number = 1;; ++number) {
      const std::string name = file_name(run, number);
      auto file = open_file(folder_ + "/" + name, name);
      if (!file && is_missing(file.error())) return number == 1 ? name + ": missing" : Problem();
      if (!file && is_strange(file.error())) return name + ": is no regular file";
      if (!file) return std::unexpected(std::move(file).error());
      Lines lines(std::move(*file), name);
      if (Problem problem = TRY(one_file(lines, check, result)); !problem.empty()) return problem;
      if (torn_ && os::open(folder_ + "/" + file_name(run, number + 1), O_PATH, 0)) {
        return name + ": its last line is unfinished, and another file follows";
      }
    }
  }

  base::Result<Problem> one_file(Lines& lines, RunCheck& check, Verification& result) {
    torn_ = false;
    while (true) {
      const Lines::Kind kind = TRY(lines.next());
      if (kind == Lines::Kind::end) return Problem();
      if (kind == Lines::Kind::unfinished) {
        torn_ = true;
        result.notes.push_back(
            fmt::format("{}: its last line is unfinished ({} bytes) and does not count",
                        lines.name(), lines.line().size()));
        // A journal that ended itself leaves no such line.
        return check.has_end() ? lines.name() + ": bytes stand behind the signed end" : Problem();
      }
      const Problem problem = kind == Lines::Kind::line ? check.line(lines.line()) : "too long";
      if (!problem.empty()) return fmt::format("{}:{}: {}", lines.name(), lines.number(), problem);
    }
  }

  std::string folder_;
  PublicKey key_;
  HostView host_;
  bool torn_ = false;  // the file that was read last ends in the middle of a line
};

// Every run that has a file or a record, and file names that belong to none.
base::Result<std::set<std::string>> all_runs(const std::string& folder, const Verifier& verifier) {
  std::set<std::string> all;
  for (const auto& [run, recorded] : verifier.host().runs) {
    if (!verifier.pruned(run)) all.insert(run);
  }
  auto names = os::list_folder(folder);
  if (!names && is_missing(names.error())) return all;  // each run that is recorded is missing
  for (const std::string& name : TRY(std::move(names))) {
    if (const auto parsed = parse_file_name(name)) all.insert(parsed->run);
  }
  return all;
}

base::Error not_found(const std::string& what) {
  return {base::Kind::not_found, 0, what, "no journal", {}};
}

// "" where nothing was ever signed, so that no key can be missing.
Problem missing_key(const std::string& state_dir) {
  for (const std::string& trace :
       {"/keys/" + std::string(kLastFile), std::string("/keys/journal.key"),
        "/journal/" + std::string(kHostFile)}) {
    if (os::open(state_dir + trace, O_PATH | O_NOFOLLOW, 0)) {
      return "keys/journal.pub: missing, while " + trace.substr(1) + " is there";
    }
  }
  return {};
}

base::Result<std::string> read_key(const std::string& path) {
  const base::Fd fd = TRY(os::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
  if (!S_ISREG(TRY(os::fstat(fd.get(), path)).st_mode)) {
    return base::bad_input(base::printable(path), "is no regular file", "expected a public key");
  }
  return os::read_all(fd.get(), 4096, path);
}

}  // namespace

base::Result<Verification> verify(const std::string& state_dir, const std::string& run,
                                  const std::string& key_file, const std::string& head) {
  const std::string folder = state_dir + "/journal";
  const std::string key_path = key_file.empty() ? state_dir + "/keys/journal.pub" : key_file;
  Verification result;
  const auto pem = read_key(key_path);
  if (!pem && key_file.empty() && is_missing(pem.error())) {
    result.problem = missing_key(state_dir);
    if (!result.problem.empty()) return result;
    return std::unexpected(not_found(key_path));
  }
  const PublicKey key = TRY(PublicKey::from_pem(TRY(pem), key_path));
  HostView host = TRY(check_host(state_dir, key));
  result.notes = host.notes;
  result.problem = host.problem;
  Verifier verifier(folder, key, std::move(host));
  std::set<std::string> which = {run};
  if (run.empty()) {
    which = TRY(all_runs(folder, verifier));
  } else if (result.problem.empty() && !verifier.host().runs.contains(run) &&
             !os::open(folder + "/" + file_name(run, 1), O_PATH, 0)) {
    return std::unexpected(not_found(run));
  }
  std::set<std::string> heads;
  for (const std::string& one : which) {
    if (!result.problem.empty()) break;
    if (verifier.pruned(one)) continue;
    TRY(verifier.run(one, result));
    heads.insert(result.head);
  }
  if (result.problem.empty() && !head.empty() && !heads.contains(head)) {
    result.problem = run.empty()
                         ? "no run has the head " + head
                         : fmt::format("{}: its head is {}, not {}", run, result.head, head);
  }
  result.holds = result.problem.empty();
  return result;
}

}  // namespace journal
