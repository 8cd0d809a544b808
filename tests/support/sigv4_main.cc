// Signs requests as the gateway does, for a comparison with another signer: fields of a request a
// line, split at tabs (secret, time, region, service, method, target, payload hash, then NAME and
// VALUE of each header), and its signature a line.
#include <iostream>
#include <string>

#include "base/base.h"
#include "http/http.h"

int main() {
  constexpr std::size_t kFirst = 7;
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = base::split(line, '\t');
    if (words.size() < kFirst || words.size() % 2 == 0) return 1;
    http::SigV4Request request{.method = std::string(words[4]),
                               .target = std::string(words[5]),
                               .headers = {},
                               .payload_hash = std::string(words[6]),
                               .time = std::string(words[1]),
                               .scope = {std::string(words[1].substr(0, 8)), std::string(words[2]),
                                         std::string(words[3])}};
    for (std::size_t i = kFirst; i < words.size(); i += 2) {
      request.headers.emplace_back(words[i], words[i + 1]);
    }
    std::cout << http::sigv4_signature(request, http::sigv4_key(words[0], request.scope)) << "\n";
  }
  return 0;
}
