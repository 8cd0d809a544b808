// cerco-minter: the process that asks token endpoints for the keys which the broker lends.
//
// SECURITY. It reads bytes from servers that may be hostile. It trusts the Plan and the broker at
// the other end of its one socket pair, sends what the broker hands it to the endpoints that the
// policy names and to no other, over verified TLS, at addresses that passed the guard, and tells
// the members of an answer that were asked for. Of secrets it holds those of one request at a time;
// it has no channel to the gateway, the journal or the supervisor, cannot open a file, start a
// program, see another process or regain a right. It confines itself in Minter::confine_and_serve
// (gateway/minter.cc), before it takes the first request.
#include "gateway/gateway.h"

int main() {
  return gateway::serve_minter();
}
