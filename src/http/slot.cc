// Puts secrets into the places that the policy binds them to.
#include "http/slot.h"

#include "base/base.h"
#include "http/form.h"
#include "http/percent.h"

namespace http {

namespace {

// Where a segment begins and how long it is; npos where the path has fewer.
struct Part {
  std::size_t at = std::string_view::npos;
  std::size_t size = 0;
};

Part part_of(std::string_view target, std::size_t segment) {
  const std::string_view path = target.substr(0, target.find('?'));
  std::size_t at = 0;
  for (std::size_t i = 0; i < segment; ++i) {
    at = path.find('/', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  const auto end = std::min(path.find('/', at), path.size());
  return {at, end - at};
}

void put_query(RequestHead& head, const Slot& slot, std::string_view placeholder,
               const std::string& value) {
  const std::string query(query_of(head));
  const auto written = placeholder.empty() ? with_only_field(Fields::form, query, slot.name, value)
                                           : with_field(Fields::form, query, slot.name,
                                                        render(slot, placeholder), value);
  if (written) head.target = with_query(head.target, *written);
}

}  // namespace

Slot header_slot(std::string_view header, std::string_view format) {
  Slot slot;
  slot.header = base::to_lower(header);
  set_format(slot, format);
  return slot;
}

void set_format(Slot& slot, std::string_view format) {
  constexpr std::string_view kHole = "{secret}";
  const auto hole = format.find(kHole);
  slot.before = format.substr(0, hole);
  slot.after = hole == std::string_view::npos ? "" : format.substr(hole + kHole.size());
}

std::string basic_value(std::string_view user, std::string_view secret) {
  std::string both = std::string(user) + ":" + std::string(secret);
  std::string value = "Basic " + base::base64(both);
  base::wipe(both);
  return value;
}

std::string render(const Slot& slot, std::string_view secret) {
  if (slot.place == Place::basic) return basic_value(slot.user, secret);
  return slot.before + std::string(secret) + slot.after;
}

void put_secret(RequestHead& head, const Slot& slot, std::string_view placeholder,
                std::string_view secret) {
  std::string value = render(slot, secret);
  switch (slot.place) {
    case Place::header:
    case Place::basic:
      set_field(head.fields, slot.header, value);
      break;
    case Place::query:
      put_query(head, slot, placeholder, value);
      break;
    case Place::path: {
      std::string escaped = percent_encoded(value, kUpperHex);
      head.target = with_segment(head.target, slot.segment, escaped);
      base::wipe(escaped);
      break;
    }
    case Place::body:
    case Place::sigv4:
    case Place::none:
      break;
  }
  base::wipe(value);
}

std::string path_segment(std::string_view target, std::size_t segment) {
  const Part part = part_of(target, segment);
  return part.at == std::string_view::npos ? std::string()
                                           : percent_decoded(target.substr(part.at, part.size));
}

std::string with_segment(std::string_view target, std::size_t segment, std::string_view escaped) {
  const Part part = part_of(target, segment);
  std::string out(target);
  if (part.at != std::string_view::npos) out.replace(part.at, part.size, escaped);
  return out;
}

std::string with_query(std::string_view target, std::string_view query) {
  std::string out(target.substr(0, target.find('?')));
  if (!query.empty()) {
    out += '?';
    out += query;
  }
  return out;
}

}  // namespace http
