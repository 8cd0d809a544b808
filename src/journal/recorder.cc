// From draft to line.
#include "journal/recorder.h"

#include <fmt/format.h>

#include "journal/cut.h"

namespace journal {
namespace {

constexpr std::size_t kMostMemoryBytes = 4 << 20;

std::string alert_members(const Finding& finding, const std::string& evidence,
                          std::string_view producer) {
  base::JsonObject members;
  members.add("detector", finding.detector).add("severity", finding.severity);
  const std::vector<std::string> ids = {evidence};
  members.raw("evidence", evidence.empty() ? "[]" : base::json_strings(ids));
  members.add("action", finding.action).add("text", cut_text(finding.text));
  if (!finding.credential.empty()) members.add("credential", finding.credential);
  if (!producer.empty()) members.add("producer", producer);
  return members.members();
}

}  // namespace

base::Result<std::unique_ptr<Recorder>> Recorder::start(const Open& open, SigningKey key,
                                                        Files files, const Clock& clock) {
  const std::string known =
      TRY(os::read_at(files.memory.get(), kMostMemoryBytes, 0, "task memory"));
  std::unique_ptr<Recorder> recorder(
      new Recorder(open, std::move(key), std::move(files), TaskMemory(known), clock));
  TRY(recorder->host_.head(open.run, "start", 0, zeros(), clock.wall()));
  TRY(recorder->flush());
  return recorder;
}

Recorder::Recorder(const Open& open, SigningKey key, Files files, TaskMemory memory,
                   const Clock& clock)
    : clock_(clock),
      run_(open.run),
      key_(std::move(key)),
      chain_(open.run, open.task, key_, std::move(files.run)),
      host_(std::move(files.host), std::move(files.last), key_),
      memory_file_(std::move(files.memory)),
      detectors_(open.actions, std::move(memory)),
      file_bytes_(open.file_bytes),
      run_bytes_(open.run_bytes),
      writing_second_(clock.steady().seconds),
      dropped_second_(clock.steady().seconds) {}

base::Result<std::uint64_t> Recorder::add(std::string_view type, std::string_view members) {
  const std::uint64_t seq = chain_.add(type, members, clock_.wall());
  if (chain_.checkpoint_due()) TRY(checkpoint());
  if (chain_.waiting_bytes() > kBatchBytes) TRY(flush());
  if (!full_ && chain_.run_bytes() >= run_bytes_) TRY(note_full());
  return seq;
}

base::Status Recorder::note_full() {
  full_ = true;
  base::JsonObject members;
  members.add("limit", "journal").add("bytes", run_bytes_);
  members.add("text",
              "the run's journal has reached its bound; gateway and broker refuse from now on");
  TRY(add("limit.hit", members.members()));
  return {};
}

// The host chain never tells of a line that is not in the file: first the lines, then their head.
base::Status Recorder::checkpoint() {
  const os::Instant wall = clock_.wall();
  chain_.checkpoint(wall);
  TRY(chain_.flush());
  return host_.head(run_, "checkpoint", chain_.events(), chain_.head(), wall);
}

base::Status Recorder::take(Producer& producer, const Draft& draft) {
  const auto members = admit(producer.who(), draft);
  if (!members) return take_malformed(producer, members.error().what);
  const Event event{draft.type, *members};
  refusals_.look(event);
  const std::vector<Finding> findings = detectors_.look(event, clock_.steady());
  if (findings.empty() && producer.fold(event, clock_.steady())) return {};
  // What a detector points at is evidence and stays.
  if (findings.empty() && producer.droppable(draft.type, *members) &&
      !producer.within_rate(clock_.steady())) {
    producer.drop(draft.type, clock_.wall());
    return {};
  }
  const std::uint64_t seq = TRY(write(producer, draft, *members));
  producer.remember(draft.ref, seq);
  if (draft.type == "alert" && members->raw("action") != R"("note")") ++alerts_;
  for (const Finding& finding : findings) TRY(alert(finding, seq));
  return {};
}

base::Result<std::uint64_t> Recorder::write(Producer& producer, const Draft& draft,
                                            const Members& members) {
  const std::string cut = has_long_text(members) ? without_long_texts(members) : std::string();
  const std::string& text = cut.empty() ? draft.members : cut;
  if (draft.of == 0) return add(draft.type, text);
  const std::uint64_t of = producer.recall(draft.of);
  std::string linked = R"("of":")" + (of == 0 ? std::string() : chain_.id(of)) + '"';
  if (!text.empty()) linked += ',' + text;
  return add(draft.type, linked);
}

base::Status Recorder::take_malformed(Producer& producer, std::string_view why) {
  if (!producer.malformed_is_news()) {
    producer.drop("malformed", clock_.wall());
    return {};
  }
  const Finding finding{
      "malformed_event", "high", "alert",
      fmt::format("the {} handed in an event that cannot be taken: {}", producer.who(), why), ""};
  ++alerts_;
  TRY(add("alert", alert_members(finding, "", producer.who())));
  return {};
}

base::Status Recorder::alert(const Finding& finding, std::uint64_t evidence) {
  if (finding.action != "note") ++alerts_;
  const std::uint64_t seq = TRY(add("alert", alert_members(finding, chain_.id(evidence), "")));
  if (Detectors::acts(finding.action)) {
    alarms_.push_back({finding.detector, finding.action, chain_.id(seq), finding.credential});
  }
  return {};
}

base::Status Recorder::report_dropped(Producer& producer, When when) {
  if (!producer.owes()) return {};
  const std::int64_t second = clock_.steady().seconds;
  if (when == When::due && second == dropped_second_) return {};
  dropped_second_ = second;
  for (const Folds::Folded& folded : producer.take_folded()) TRY(add(folded.type, folded.members));
  if (producer.has_dropped()) TRY(add("events.dropped", producer.take_dropped(clock_.wall())));
  return {};
}

base::Status Recorder::flush() {
  TRY(chain_.flush());
  const std::string learned = detectors_.memory().take_new_text();
  if (!learned.empty()) TRY(os::write_all(memory_file_.get(), learned, "task memory"));
  // A kill of this process costs nothing that was written; a crash of the host may cost seconds. To
  // wait for the disk (fdatasync takes 5 to 20 ms) would hold up every producer.
  if (clock_.steady().seconds > writing_second_) TRY(start_writing());
  return {};
}

std::uint64_t Recorder::take_file_wish() {
  if (file_wished_ || chain_.file_bytes() < file_bytes_) return 0;
  file_wished_ = true;
  return file_number_ + 1;
}

base::Status Recorder::go_on_in(base::Fd file) {
  TRY(chain_.go_on_in(std::move(file)));
  ++file_number_;
  file_wished_ = false;
  return {};
}

base::Result<Summary> Recorder::finish(std::string_view at) {
  detectors_.finish();
  const os::Instant wall = clock_.wall();
  chain_.checkpoint(wall);
  TRY(flush());
  TRY(host_.head(run_, at, chain_.events(), chain_.head(), wall));
  Summary summary;
  summary.events = chain_.events();
  summary.head = chain_.head();
  summary.alerts = alerts_;
  summary.refused = refusals_.all();
  return summary;
}

base::Status Recorder::start_writing() {
  writing_second_ = clock_.steady().seconds;
  TRY(chain_.start_writing());
  return host_.start_writing();
}

}  // namespace journal
