// nghttp2 does the framing; what it calls back with goes to the streams.
#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "http/h2.h"

namespace http {

namespace {

constexpr std::size_t kOutput = std::size_t{16} * 1024;
// Frames of the control kind that a peer may send for each DATA frame that it gets.
constexpr std::uint64_t kEarned = 2;

std::uint32_t number(H2Code code) {
  return static_cast<std::uint32_t>(code);
}

bool ends_stream(const nghttp2_frame& frame) {
  return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// nghttp2 takes what it does not change as mutable.
std::uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}

std::vector<nghttp2_nv> name_values(const std::vector<Field>& fields, std::uint8_t flags) {
  std::vector<nghttp2_nv> out;
  out.reserve(fields.size());
  for (const Field& field : fields) {
    out.push_back({.name = bytes_of(field.name),
                   .value = bytes_of(field.value),
                   .namelen = field.name.size(),
                   .valuelen = field.value.size(),
                   .flags = flags});
  }
  return out;
}

// --- Memory that is wiped when it is freed: the size stands in front of each block. -------------

constexpr std::size_t kFront = alignof(std::max_align_t);

void* wiping_malloc(std::size_t size, void*) {
  if (size > SIZE_MAX - kFront) return nullptr;
  auto* block = static_cast<char*>(std::malloc(size + kFront));
  if (block == nullptr) return nullptr;
  std::memcpy(block, &size, sizeof size);
  return block + kFront;
}

std::size_t size_of(const void* memory) {
  std::size_t size = 0;
  std::memcpy(&size, static_cast<const char*>(memory) - kFront, sizeof size);
  return size;
}

void wiping_free(void* memory, void*) {
  if (memory == nullptr) return;
  explicit_bzero(memory, size_of(memory));
  std::free(static_cast<char*>(memory) - kFront);
}

void* wiping_calloc(std::size_t count, std::size_t size, void*) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* memory = wiping_malloc(count * size, nullptr);
  if (memory != nullptr) std::memset(memory, 0, count * size);
  return memory;
}

void* wiping_realloc(void* memory, std::size_t size, void*) {
  void* made = wiping_malloc(size, nullptr);
  if (made == nullptr || memory == nullptr) return made;
  std::memcpy(made, memory, std::min(size, size_of(memory)));
  wiping_free(memory, nullptr);
  return made;
}

nghttp2_mem wiping_memory() {
  return {.mem_user_data = nullptr,
          .malloc = wiping_malloc,
          .free = wiping_free,
          .calloc = wiping_calloc,
          .realloc = wiping_realloc};
}

}  // namespace

// --- What nghttp2 calls ------------------------------------------------------------------------

struct H2Connection::Callbacks {
  static H2Connection& self(void* user) { return *static_cast<H2Connection*>(user); }

  static bool is_control(const nghttp2_frame_hd& head) {
    switch (head.type) {
      case NGHTTP2_HEADERS:
        return false;
      case NGHTTP2_DATA:
        return head.length == 0 && (head.flags & NGHTTP2_FLAG_END_STREAM) == 0;
      default:
        return true;
    }
  }

  // A frame's head is known, its content not yet.
  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) {
    H2Connection& c = self(user);
    if (head->type == NGHTTP2_HEADERS) c.block_ = c.list_ = 0;
    if (head->type == NGHTTP2_HEADERS || head->type == NGHTTP2_CONTINUATION) {
      c.block_ += head->length;
      if (c.block_ > kMaxH2Block) c.go_away(H2Code::calm, "h2-head");
    }
    if (is_control(*head) && !c.control_.take()) c.go_away(H2Code::calm, "h2-control");
    if (head->type == NGHTTP2_RST_STREAM && !c.resets_.take()) {
      c.go_away(H2Code::calm, "h2-resets");
    }
    return 0;
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    H2Connection& c = self(user);
    const std::int32_t id = frame->hd.stream_id;
    if (c.side_ == H2Side::server && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      c.streams_[id] = std::make_shared<H2Stream>(c, c.side_, id);
    }
    if (const auto stream = c.find(id)) stream->fields_.clear();
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    H2Connection& c = self(user);
    constexpr std::size_t kOverhead = 32;  // RFC 9113 section 6.5.2
    c.list_ += name_size + value_size + kOverhead;
    if (c.list_ > kMaxH2List) {
      c.go_away(H2Code::calm, "h2-head");
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    const auto stream = c.find(frame->hd.stream_id);
    if (!stream) return 0;
    Field field{.name = std::string(text_of(name, name_size)),
                .value = std::string(text_of(value, value_size)),
                .spelling = {}};
    if (!h2_field_holds(field.name, field.value)) {
      c.count_broken(1);
      c.cut(*stream, H2Code::protocol);
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    stream->fields_.push_back(std::move(field));
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    H2Connection& c = self(user);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    const auto stream = c.find(frame->hd.stream_id);
    if (!stream) return 0;
    std::vector<Field> trailers;
    if (frame->hd.type == NGHTTP2_HEADERS) {
      std::vector<Field> fields = std::exchange(stream->fields_, {});
      const bool first = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
      if (stream->head_in_) {
        trailers = std::move(fields);
      } else {
        stream->take_head(fields, ends_stream(*frame) ? H2Ends::here : H2Ends::later);
      }
      if (first) c.accepted_.push_back(stream);
    }
    if (ends_stream(*frame)) stream->take_end(std::move(trailers));
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* user) {
    H2Connection& c = self(user);
    const auto stream = c.find(id);
    if (stream && !stream->gone_) {
      stream->take_content(text_of(bytes, size));
    } else {
      (void)nghttp2_session_consume(c.session_, id, size);
    }
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
    H2Connection& c = self(user);
    const auto stream = c.find(id);
    if (!stream) return 0;
    c.streams_.erase(id);
    stream->closed(static_cast<H2Code>(code));
    return 0;
  }

  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    H2Connection& c = self(user);
    const bool request =
        frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    c.count_broken(request ? 1 : 0);
    return 0;
  }

  static int on_sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    H2Connection& c = self(user);
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR &&
        c.problem_.empty()) {
      c.problem_ = "h2-protocol";
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    if (frame->hd.type == NGHTTP2_DATA) c.control_.earn(kEarned);
    const auto stream = c.find(frame->hd.stream_id);
    if (!stream || !ends_stream(*frame)) return 0;
    stream->out_sent_ = true;
    if (stream->gone_ && !stream->ended_in_) c.cut(*stream, H2Code::no_error);
    return 0;
  }

  // A request that never went out: the peer takes no more, or it was given up before.
  static int on_not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
    H2Connection& c = self(user);
    if (c.side_ != H2Side::client || frame->hd.type != NGHTTP2_HEADERS) return 0;
    const auto stream = c.find(frame->hd.stream_id);
    if (!stream) return 0;
    c.streams_.erase(frame->hd.stream_id);
    stream->closed(H2Code::refused);
    return 0;
  }

  static ssize_t read_output(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                             std::size_t most, std::uint32_t* flags, nghttp2_data_source* source,
                             void*) {
    H2Stream& stream = *static_cast<H2Stream*>(source->ptr);
    const std::string_view bytes = stream.next_output(most);
    if (bytes.empty() && !stream.out_ended_) {
      stream.deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    std::memcpy(into, bytes.data(), bytes.size());
    const auto size = static_cast<ssize_t>(bytes.size());
    stream.sent_output(bytes.size());
    if (stream.out_ended_ && stream.next_output(1).empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream.trailers_.empty()) {
        const auto values = name_values(stream.trailers_, NGHTTP2_NV_FLAG_NONE);
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        (void)nghttp2_submit_trailer(session, id, values.data(), values.size());
      }
    }
    return size;
  }

  static void fill(nghttp2_session_callbacks* all) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(all, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(all, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(all, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, on_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(all, on_not_sent);
  }
};

// --- The connection ----------------------------------------------------------------------------

H2Connection::H2Connection(H2Side side, const H2Limits& limits)
    : side_(side),
      resets_(limits.resets, limits.resets_each_second),
      control_(limits.control, limits.control_each_second) {}

H2Connection::~H2Connection() {
  drop();
  nghttp2_session_del(session_);
  base::wipe(output_);
}

void H2Connection::drop() {
  dropped_ = true;
  const auto forget = [](H2Stream& stream) {
    stream.connection_ = nullptr;
    stream.closed(H2Code::cancel);
  };
  const auto streams = std::exchange(streams_, {});
  for (const auto& [id, stream] : streams) forget(*stream);
  for (const auto& stream : std::exchange(opening_, {})) forget(*stream);
}

base::Result<std::unique_ptr<H2Connection>> H2Connection::make(H2Side side,
                                                               const H2Limits& limits) {
  std::unique_ptr<H2Connection> made(new H2Connection(side, limits));
  TRY(made->start(limits));
  return made;
}

base::Status H2Connection::start(const H2Limits& limits) {
  const auto failed = [] { return base::fail(base::Kind::system, "HTTP/2", "out of memory", {}); };
  nghttp2_session_callbacks* raw_callbacks = nullptr;
  nghttp2_option* raw_options = nullptr;
  if (nghttp2_session_callbacks_new(&raw_callbacks) != 0) return failed();
  const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)>
      callbacks(raw_callbacks, nghttp2_session_callbacks_del);
  if (nghttp2_option_new(&raw_options) != 0) return failed();
  const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> options(raw_options,
                                                                               nghttp2_option_del);
  Callbacks::fill(callbacks.get());
  nghttp2_option_set_no_auto_window_update(options.get(), 1);
  nghttp2_option_set_no_closed_streams(options.get(), 1);
  const auto window = static_cast<std::uint32_t>(limits.stream_window);
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(kMaxHead)}};
  int made = 0;
  if (side_ == H2Side::server) {
    settings.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams});
    made = nghttp2_session_server_new2(&session_, callbacks.get(), this, options.get());
  } else {
    settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
    nghttp2_option_set_max_deflate_dynamic_table_size(options.get(), 0);
    nghttp2_mem memory = wiping_memory();
    made = nghttp2_session_client_new3(&session_, callbacks.get(), this, options.get(), &memory);
  }
  if (made != 0 ||
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                            limits.connection_window) != 0) {
    return failed();
  }
  return {};
}

std::shared_ptr<H2Stream> H2Connection::find(std::int32_t id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second;
}

void H2Connection::feed(std::string_view bytes, std::uint64_t now_ms) {
  resets_.now(now_ms);
  control_.now(now_ms);
  if (over()) return;
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t used = nghttp2_session_mem_recv(session_, data, bytes.size());
  if (used >= 0) return;
  const bool flood = used == NGHTTP2_ERR_FLOODED || used == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;
  go_away(flood ? H2Code::calm : H2Code::protocol, flood ? "h2-control" : "h2-protocol");
}

std::string_view H2Connection::output() {
  if (side_ == H2Side::client) base::wipe(output_);
  output_.clear();
  while (!dropped_ && output_.size() < kOutput) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size <= 0) break;
    output_ += text_of(bytes, static_cast<std::size_t>(size));
  }
  return output_;
}

std::vector<std::shared_ptr<H2Stream>> H2Connection::accept() {
  return std::exchange(accepted_, {});
}

unsigned H2Connection::take_malformed() {
  return std::exchange(malformed_, 0);
}

void H2Connection::count_broken(unsigned requests) {
  malformed_ += requests;
  if (!resets_.take()) go_away(H2Code::calm, "h2-resets");
}

std::shared_ptr<H2Stream> H2Connection::open() {
  opening_.push_back(std::make_shared<H2Stream>(*this, side_, 0));
  return opening_.back();
}

bool H2Connection::takes_more() const {
  return !over() && problem_.empty() && nghttp2_session_check_request_allowed(session_) != 0;
}

void H2Connection::go_away(H2Code code, std::string problem) {
  if (!problem_.empty()) return;
  problem_ = std::move(problem);
  (void)nghttp2_session_terminate_session(session_, number(code));
}

bool H2Connection::over() const {
  return dropped_ ||
         (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
}

// --- What streams ask for ----------------------------------------------------------------------

bool H2Connection::submit(H2Stream& stream, const H2Head& head) {
  const auto values = name_values(
      head.fields, side_ == H2Side::client ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
  const nghttp2_data_provider body = {.source = {.ptr = &stream},
                                      .read_callback = Callbacks::read_output};
  const nghttp2_data_provider* with = stream.out_ended_ ? nullptr : &body;
  if (head.interim) {
    return nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream.id_, nullptr, values.data(),
                                  values.size(), nullptr) == 0;
  }
  if (side_ == H2Side::server) {
    return nghttp2_submit_response(session_, stream.id_, values.data(), values.size(), with) == 0;
  }
  const auto place = std::ranges::find(opening_, &stream, &std::shared_ptr<H2Stream>::get);
  if (place == opening_.end()) return false;
  stream.id_ =
      nghttp2_submit_request(session_, nullptr, values.data(), values.size(), with, nullptr);
  if (stream.id_ > 0) streams_[stream.id_] = *place;
  opening_.erase(place);
  return stream.id_ > 0;
}

void H2Connection::resume(H2Stream& stream) {
  stream.deferred_ = false;
  (void)nghttp2_session_resume_data(session_, stream.id_);
}

void H2Connection::consume(const H2Stream& stream, std::size_t bytes) {
  (void)nghttp2_session_consume(session_, stream.id_, bytes);
}

void H2Connection::cut(const H2Stream& stream, H2Code code) {
  if (stream.id_ > 0) {
    (void)nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id_, number(code));
    return;
  }
  std::erase_if(opening_, [&](const auto& one) { return one.get() == &stream; });
}

bool H2Connection::window_closed(const H2Stream& stream) const {
  return nghttp2_session_get_stream_remote_window_size(session_, stream.id_) <= 0 ||
         nghttp2_session_get_remote_window_size(session_) <= 0;
}

}  // namespace http
