// The one header of module base: errors, owners, frames, secrets, text.
#pragma once

#include "base/error.h"   // IWYU pragma: export
#include "base/fd.h"      // IWYU pragma: export
#include "base/json.h"    // IWYU pragma: export
#include "base/secret.h"  // IWYU pragma: export
#include "base/text.h"    // IWYU pragma: export
#include "base/wire.h"    // IWYU pragma: export
