// Fuzzes what a hostile sandbox can say in a file session: nothing may be made beside the folder of
// --out.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "os/os.h"
#include "workspace/workspace.h"

namespace {

namespace fs = std::filesystem;

// A folder with `out` in it and nothing else; emptied after every input, removed at the end.
class Place {
 public:
  Place() {
    if (::mkdtemp(name_.data()) == nullptr) std::abort();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { fs::remove_all(name_); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_ = "/tmp/cerco-fuzz-XXXXXX";
};
const std::string& place() {
  static const Place kPlace;
  return kPlace.name();
}

std::string path_of(FuzzedDataProvider& data) {
  static constexpr std::array<const char*, 8> kParts = {"a", "b", "..", ".", "", "l", "a/b", "/"};
  std::string path;
  for (int parts = data.ConsumeIntegralInRange(1, 4); parts > 0; --parts) {
    if (!path.empty()) path += "/";
    path += data.ConsumeBool() ? data.PickValueInArray(kParts) : data.ConsumeRandomLengthString(12);
  }
  return path;
}

std::string message_of(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegralInRange(0, 5)) {
    case 0:
      return data.ConsumeRandomLengthString(300) + "x";
    case 1:
      return base::encode(frame::FileFrame(frame::Data{data.ConsumeRandomLengthString(40)}));
    case 2:
      return base::encode(frame::FileFrame(frame::Done{}));
    case 3:
      return base::encode(frame::FileFrame(frame::Refused{data.ConsumeRandomLengthString(20),
                                                          data.ConsumeIntegral<std::uint32_t>()}));
    default:
      break;
  }
  frame::Entry entry;
  entry.path = path_of(data);
  entry.kind = static_cast<frame::EntryKind>(
      data.ConsumeIntegralInRange(0, static_cast<int>(frame::EntryKind::last_)));
  entry.mode = data.ConsumeIntegral<std::uint32_t>();
  entry.size = data.ConsumeBool() ? data.ConsumeIntegralInRange<std::uint64_t>(0, 40)
                                  : data.ConsumeIntegral<std::uint64_t>();
  entry.text = path_of(data);
  return base::encode(frame::FileFrame(entry));
}

// A file that is still being written. The sandbox itself may use names that begin alike; none that
// the messages below can hold is as long.
bool is_temporary(const std::string& name) {
  return name.starts_with(".cerco-") && name.size() == sizeof ".cerco-" - 1 + 16;
}

void check_and_empty() {
  for (const auto& entry : fs::directory_iterator(place())) {
    if (entry.path().filename() != "out") std::abort();
  }
  for (const auto& entry : fs::recursive_directory_iterator(place() + "/out")) {
    if (is_temporary(entry.path().filename().string())) std::abort();
    if (!entry.is_symlink() && entry.is_regular_file() &&
        (entry.status().permissions() & (fs::perms::set_uid | fs::perms::set_gid)) !=
            fs::perms::none) {
      std::abort();
    }
  }
  fs::remove_all(place() + "/out");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzedDataProvider data(bytes, size);
  fs::create_directory(place() + "/out");
  auto ends = os::socket_pair(SOCK_SEQPACKET | SOCK_NONBLOCK);
  const auto dir = os::open(place() + "/out", O_PATH | O_DIRECTORY, 0);
  if (!ends || !dir) std::abort();
  workspace::Manifest manifest;
  manifest["a"] = {frame::EntryKind::folder, "", false};
  while (data.remaining_bytes() > 0) {
    if (!os::send_message(ends->second.get(), message_of(data), {})) break;
  }
  // Half a session: the host may still speak, and the end comes after the last message.
  (void)::shutdown(ends->second.get(), SHUT_WR);
  const workspace::Session session = {.socket = ends->first.get(), .stop = -1, .stall_ms = 1000};
  (void)workspace::take(session, dir->get(), manifest, {.bytes = 4096, .entries = 64});
  check_and_empty();
  return 0;
}
