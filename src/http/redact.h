// Takes an injected secret out of what comes back: each form that it could be rendered in becomes
// its placeholder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "http/field.h"
#include "http/placeholder.h"

namespace http {

inline constexpr std::size_t kLeastRedacted =
    4;  // shorter secrets would take common text with them

// The forms that a Redaction would look for, of a text that is no secret.
[[nodiscard]] std::vector<std::string> forms_of(std::string_view text);

// The forms of one secret: as it is, in Base64 wherever it stands in what was encoded, as the Basic
// value, percent-encoded, escaped in JSON, in hexadecimal. Held in locked memory. Made once a lease
// and used for any number of responses.
class Redaction {
 public:
  // `missing` where no memory can be locked for it.
  [[nodiscard]] static base::Result<Redaction> of(std::string_view secret,
                                                  std::string_view placeholder, const Slot& slot);

  // `text` with every form replaced, and with what begins one at its end masked
  // where that is half of it, or 8 bytes.
  [[nodiscard]] std::string clean(std::string_view text) const;
  // Cleans every value; a field whose name holds a form, in whatever case, is dropped.
  void clean(std::vector<Field>& fields) const;
  // The placeholder is as long as the secret in every form, so that a body keeps its length.
  [[nodiscard]] bool keeps_length() const { return keeps_length_; }

 private:
  friend class BodyRedactor;
  Redaction() = default;
  struct Form {
    std::size_t at = 0;
    std::size_t size = 0;
    std::string replacement;
  };
  // Walks over the forms that stand in a text, from left to right, the longest first where two
  // begin together. Each form is looked for once.
  class Walk {
   public:
    Walk(const Redaction& redaction, std::string_view text);
    // The first form at or after `from`; nullptr when there is none.
    [[nodiscard]] const Form* next(std::size_t from, std::size_t& at);

   private:
    const Redaction& redaction_;
    std::string_view text_;
    std::vector<std::size_t> places_;  // of each form: the first that was not passed yet
  };
  [[nodiscard]] std::string_view bytes(const Form& form) const;
  [[nodiscard]] bool in_name(std::string_view name) const;
  // Appends `text` to `out` with every form that begins before `open` replaced. How much of the
  // text is done with, and where in `out` begins what stands behind the last form.
  struct Done {
    std::size_t text = 0;
    std::size_t rest = 0;
  };
  Done replace(std::string_view text, std::size_t open, std::string& out) const;
  // Bytes at the end of `text` that could be the start of a form, and of which; `begun` may be
  // null.
  [[nodiscard]] std::size_t pending(std::string_view text, const Form** begun) const;
  // Of what stands from `from` on.
  void mask_end(std::string& text, std::size_t from) const;

  base::Secret store_;
  std::vector<Form> forms_;  // longest first
  bool keeps_length_ = true;
};

// Cleans one body as it streams. Holds back only bytes that may be the start of a form, so that an
// event stream is not delayed.
class BodyRedactor {
 public:
  explicit BodyRedactor(const Redaction& redaction) : redaction_(&redaction) {}
  ~BodyRedactor() { base::wipe(held_); }
  BodyRedactor(const BodyRedactor&) = delete;
  BodyRedactor& operator=(const BodyRedactor&) = delete;
  // What may go on after `piece`; and at the end, the rest.
  [[nodiscard]] std::string push(std::string_view piece);
  [[nodiscard]] std::string finish();

 private:
  const Redaction* redaction_;
  std::string held_;
};

}  // namespace http
