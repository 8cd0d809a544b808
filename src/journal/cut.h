// Cuts the long texts of an event, whoever handed it in.
#pragma once

#include <string>

#include "journal/members.h"

namespace journal {

// Whether some string among the members is longer than kMostText.
[[nodiscard]] bool has_long_text(const Members& members);
// The members with each such string as cut_text() has it. A `fix` is left out instead: a rule that
// was cut would be no rule.
[[nodiscard]] std::string without_long_texts(const Members& members);

}  // namespace journal
