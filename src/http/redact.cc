// Replaces the rendered forms of a secret in what streams back.
#include "http/redact.h"

#include <algorithm>

#include "base/json.h"
#include "http/percent.h"

namespace http {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// The Base64 digits that depend on the secret alone, without padding, where `before` bytes (counted
// modulo 3) stand in front of it.
std::string base64_stem(std::string_view text, std::size_t before) {
  const std::string_view whole = text.substr(std::min(text.size(), (3 - before) % 3));
  return base::base64(whole.substr(0, whole.size() / 3 * 3));
}

// RFC 4648 section 5.
std::string url_safe(std::string text) {
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::string json_escaped(std::string_view text) {
  const std::string quoted = base::json_string(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string slashes_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '/') out += '\\';
    out += c;
  }
  return out;
}

constexpr std::string_view kLowerHex = "0123456789abcdef";

std::string hex(std::string_view text, std::string_view digits) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

struct Draft {
  std::string text;
  std::string replacement;
};

// A shorter stem would take common text with it.
constexpr std::size_t kLeastInBase64 = 9;

// The start of a form that may stand at the end of a text: of half a form, if that is less.
constexpr std::size_t kLeastMasked = 8;

void add_base64(std::string_view secret, std::string_view placeholder, std::vector<Draft>& drafts) {
  const auto add = [&drafts](const std::string& text, const std::string& replacement) {
    drafts.push_back({text, replacement});
    const auto wrap = [&](const auto& wrapped) {
      if (wrapped(text) != text) drafts.push_back({wrapped(text), wrapped(replacement)});
    };
    wrap(url_safe);
    wrap(slashes_escaped);
    wrap([](std::string_view plain) { return percent_encoded(plain, "0123456789ABCDEF"); });
    wrap([](std::string_view plain) { return percent_encoded(plain, "0123456789abcdef"); });
  };
  std::string text = base::base64(secret);
  add(text, base::base64(placeholder));
  base::wipe(text);
  if (secret.size() < kLeastInBase64) return;
  for (std::size_t before = 0; before < 3; ++before) {
    text = base64_stem(secret, before);
    add(text, base64_stem(placeholder, before));
    base::wipe(text);
  }
}

void add_hex(std::string_view secret, std::string_view placeholder, std::vector<Draft>& drafts) {
  for (const std::string_view digits : {kUpperHex, kLowerHex}) {
    drafts.push_back({hex(secret, digits), hex(placeholder, digits)});
  }
}

// All forms but those of a place of its own; some may be the same.
std::vector<Draft> drafts_of(std::string_view secret, std::string_view placeholder) {
  std::vector<Draft> drafts = {
      {std::string(secret), std::string(placeholder)},
      {percent_encoded(secret, "0123456789ABCDEF"), std::string(placeholder)},
      {percent_encoded(secret, "0123456789abcdef"), std::string(placeholder)},
      {json_escaped(secret), std::string(placeholder)},
      {slashes_escaped(json_escaped(secret)), std::string(placeholder)},
  };
  add_base64(secret, placeholder, drafts);
  add_hex(secret, placeholder, drafts);
  return drafts;
}

}  // namespace

std::vector<std::string> forms_of(std::string_view text) {
  std::vector<std::string> forms;
  for (Draft& draft : drafts_of(text, "")) {
    if (std::ranges::find(forms, draft.text) == forms.end()) forms.push_back(std::move(draft.text));
  }
  return forms;
}

base::Result<Redaction> Redaction::of(std::string_view secret, std::string_view placeholder,
                                      const Slot& slot) {
  Redaction made;
  if (secret.size() < kLeastRedacted) return made;
  std::vector<Draft> drafts = drafts_of(secret, placeholder);
  if (slot.place == Place::basic) {
    constexpr std::size_t kWord = std::string_view("Basic ").size();
    drafts.push_back({basic_value(slot.user, secret).substr(kWord),
                      basic_value(slot.user, placeholder).substr(kWord)});
  }
  // Of two drafts for the same text the one that says more of the placeholder comes first.
  std::ranges::sort(drafts, [](const Draft& a, const Draft& b) {
    if (a.text.size() != b.text.size()) return a.text.size() > b.text.size();
    if (a.text != b.text) return a.text < b.text;
    return a.replacement.size() > b.replacement.size();
  });
  std::string all;
  for (Draft& draft : drafts) {
    const bool known = std::ranges::any_of(made.forms_, [&](const Form& form) {
      return std::string_view(all).substr(form.at, form.size) == draft.text;
    });
    if (!known) {
      made.keeps_length_ = made.keeps_length_ && draft.text.size() == draft.replacement.size();
      made.forms_.push_back({all.size(), draft.text.size(), std::move(draft.replacement)});
      std::string grown = all + draft.text;
      base::wipe(all);
      all = std::move(grown);
    }
    base::wipe(draft.text);
  }
  auto held = base::Secret::hold(all);
  base::wipe(all);
  made.store_ = TRY(std::move(held));
  return made;
}

std::string_view Redaction::bytes(const Form& form) const {
  return store_.reveal().substr(form.at, form.size);
}

Redaction::Walk::Walk(const Redaction& redaction, std::string_view text)
    : redaction_(redaction), text_(text) {
  for (const Form& form : redaction_.forms_) places_.push_back(text_.find(redaction_.bytes(form)));
}

const Redaction::Form* Redaction::Walk::next(std::size_t from, std::size_t& at) {
  const Form* first = nullptr;
  at = std::string_view::npos;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Form& form = redaction_.forms_[i];
    if (places_[i] < from) places_[i] = text_.find(redaction_.bytes(form), from);
    if (places_[i] >= at) continue;
    at = places_[i];
    first = &form;
  }
  return first;
}

Redaction::Done Redaction::replace(std::string_view text, std::size_t open,
                                   std::string& out) const {
  Walk walk(*this, text);
  std::size_t done = 0;
  std::size_t at = 0;
  for (const Form* form = walk.next(0, at); form != nullptr && at < open;
       form = walk.next(done, at)) {
    out += text.substr(done, at - done);
    out += form->replacement;
    done = at + form->size;
  }
  const std::size_t end = std::max(done, open);
  const std::size_t rest = out.size();
  out += text.substr(done, end - done);
  return {end, rest};
}

std::size_t Redaction::pending(std::string_view text, const Form** begun) const {
  std::size_t most = 0;
  for (const Form& form : forms_) {
    const std::string_view whole = bytes(form);
    for (std::size_t size = std::min(form.size - 1, text.size()); size > most; --size) {
      // The last byte tells most of them apart, and every field of every answer comes here.
      if (whole[size - 1] != text.back() || !text.ends_with(whole.substr(0, size))) continue;
      most = size;
      if (begun != nullptr) *begun = &form;
    }
  }
  return most;
}

// A text that ends within a form would give away all of it but its end: as much of the replacement
// stands there, as long as what it stands for. A few bytes may be anything.
void Redaction::mask_end(std::string& text, std::size_t from) const {
  const Form* begun = nullptr;
  const std::size_t size = pending(std::string_view(text).substr(from), &begun);
  if (begun == nullptr || size < std::min(kLeastMasked, begun->size / 2)) return;
  std::string shown = begun->replacement.substr(0, size);
  shown.resize(size, '*');
  text.replace(text.size() - size, size, shown);
}

std::string Redaction::clean(std::string_view text) const {
  std::string out;
  const Done done = replace(text, text.size(), out);
  mask_end(out, done.rest);
  return out;
}

// Names come back in lower case from servers that speak HTTP/2 behind their front.
bool Redaction::in_name(std::string_view name) const {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return std::ranges::any_of(forms_, [&](const Form& form) {
    return !std::ranges::search(name, bytes(form), same).empty();
  });
}

void Redaction::clean(std::vector<Field>& fields) const {
  std::erase_if(fields, [this](const Field& field) {
    return in_name(field.name) || in_name(field.spelling);
  });
  for (Field& field : fields) {
    std::string cleaned = clean(field.value);
    base::wipe(field.value);
    field.value = std::move(cleaned);
  }
}

std::string BodyRedactor::push(std::string_view piece) {
  std::string text = std::move(held_);
  held_.clear();
  text += piece;
  // Past `open` another form may have begun, perhaps a longer one than has matched there: wait for
  // it.
  const std::size_t open = text.size() - redaction_->pending(text, nullptr);
  std::string out;
  held_ = text.substr(redaction_->replace(text, open, out).text);
  base::wipe(text);
  return out;
}

std::string BodyRedactor::finish() {
  std::string rest = redaction_->clean(held_);
  base::wipe(held_);
  return rest;
}

}  // namespace http
