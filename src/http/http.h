// The one header of module http: strict admission of HTTP and TLS, certificates, refusals,
// placeholders and redaction. No sockets: bytes come in as views and go out as strings.
#pragma once

#include "http/body.h"         // IWYU pragma: export
#include "http/certificate.h"  // IWYU pragma: export
#include "http/field.h"        // IWYU pragma: export
#include "http/form.h"         // IWYU pragma: export
#include "http/h2.h"           // IWYU pragma: export
#include "http/hello.h"        // IWYU pragma: export
#include "http/members.h"      // IWYU pragma: export
#include "http/placeholder.h"  // IWYU pragma: export
#include "http/redact.h"       // IWYU pragma: export
#include "http/refusal.h"      // IWYU pragma: export
#include "http/request.h"      // IWYU pragma: export
#include "http/response.h"     // IWYU pragma: export
#include "http/scram.h"        // IWYU pragma: export
#include "http/sigv4.h"        // IWYU pragma: export
#include "http/slot.h"         // IWYU pragma: export
#include "http/socks.h"        // IWYU pragma: export
#include "http/websocket.h"    // IWYU pragma: export
