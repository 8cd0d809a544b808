// cerco-gateway: the one process of a sandbox that speaks to the outside.
//
// SECURITY. It reads bytes from hostile code (TCP, TLS, HTTP, DNS, the kernel's log of refused
// packets) and from servers that may be hostile as well. It trusts the Plan, the supervisor, the
// journal and the broker, each at the other end of a socket pair that the supervisor made. It holds
// the capture sockets of one sandbox, the key of that run's certificate authority and, between a
// lease and its use, a secret; it cannot open a file, start a program, see another process or
// regain a right. It confines itself in Process::confine_and_serve (gateway/gateway.cc), before it
// takes the first of those bytes.
#include "gateway/gateway.h"

int main() {
  return gateway::serve();
}
