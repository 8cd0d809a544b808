// The process behind one published port: a listener on the host's loopback, and connections that
// are carried to a server inside by way of cerco-init.
#pragma once

#include <cstdint>
#include <variant>

#include "base/base.h"
#include "ipc/ipc.h"

namespace publish {

// Descriptors that its starter puts at these numbers.
inline constexpr int kFdListener = 3;
inline constexpr int kFdControl = 4;  // SEQPACKET to the supervisor

// --- to the supervisor -------------------------------------------------------------------------

// Asks for a way inside, for one connection (or with `look` for the answer alone): answered by Way.
struct Want {
  bool look = false;
  template <class W>
  void fields(W& w) {
    w(look);
  }
};
// Once: 0 when it serves from now on, else the errno that says why not (ECONNREFUSED: nobody
// listens inside). It ends then.
struct Opened {
  std::uint32_t error = 0;
  template <class W>
  void fields(W& w) {
    w(error);
  }
};
// One connection that a Way was wanted for is over.
struct Closed {
  template <class W>
  void fields(W&) {}
};
using FromPublisher = std::variant<Want, Opened, Closed>;

// --- from the supervisor -----------------------------------------------------------------------

// One descriptor comes along: a stream socket whose other end cerco-init has (frame::Connect).
struct Way {
  template <class W>
  void fields(W&) {}
};
using ToPublisher = std::variant<Way>;

// Serves until the supervisor goes; returns the exit status. Confines itself first (`id`: a uid of
// its own where root starts it, else 0).
int serve(ipc::Channel control, base::Fd listener, std::uint32_t id);

}  // namespace publish
