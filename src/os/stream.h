// Bytes that flow: writes that do not wait, and what kind of end a descriptor is.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/base.h"

namespace os {

// One write(2), retried on EINTR: how many bytes went. EAGAIN and EPIPE come back as errors.
[[nodiscard]] base::Result<std::size_t> write_some(int fd, std::string_view bytes,
                                                   std::string_view what);
// How much a single write may hold so that it does not wait once poll(2) said that the descriptor
// is writable: everything for files, one page for pipes, terminals and sockets.
[[nodiscard]] std::size_t write_quantum(int fd);

}  // namespace os
