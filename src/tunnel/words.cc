// Words as bytes: length of the body, word and channel as 32-bit little-endian numbers, the body.
#include "tunnel/words.h"

namespace tunnel {

namespace {

void put(std::string& out, std::size_t number) {
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

std::uint32_t get(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < 4; ++i) {
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return number;
}

// The number of descriptors and their kinds stand before the bytes of a message.
std::expected<Word, Nonsense> read_message(Word word, std::string_view body) {
  if (body.size() < 4) return std::unexpected(Nonsense{});
  const std::size_t count = get(body, 0);
  if (count > kMostFds || body.size() < 4 * (count + 1)) return std::unexpected(Nonsense{});
  for (std::size_t i = 1; i <= count; ++i) {
    const auto kind = kind_of(get(body, 4 * i));
    if (!kind) return std::unexpected(Nonsense{});
    word.opens.push_back(*kind);
  }
  word.bytes = std::string(body.substr(4 * (count + 1)));
  if (word.bytes.empty() || word.bytes.size() > kMostMessage) return std::unexpected(Nonsense{});
  return word;
}

std::expected<Word, Nonsense> read_word(std::uint32_t say, std::uint32_t channel,
                                        std::string_view body) {
  Word word;
  word.say = static_cast<Say>(say);
  word.channel = channel;
  switch (word.say) {
    case Say::message:
      return read_message(std::move(word), body);
    case Say::data:
      if (body.empty() || body.size() > kMostMessage) break;
      word.bytes = std::string(body);
      return word;
    case Say::credit:
      if (body.size() != 4) break;
      word.amount = get(body, 0);
      return word;
    case Say::end:
    case Say::stop:
      if (!body.empty()) break;
      return word;
  }
  return std::unexpected(Nonsense{});
}

}  // namespace

std::optional<Kind> kind_of(std::uint32_t number) {
  if (number < 1 || number > 4) return std::nullopt;
  return static_cast<Kind>(number);
}

void write(std::string& out, const Word& word) {
  std::size_t size = word.bytes.size();
  if (word.say == Say::message) size += 4 * (word.opens.size() + 1);
  if (word.say == Say::credit) size += 4;
  put(out, size);
  put(out, static_cast<std::size_t>(word.say));
  put(out, word.channel);
  if (word.say == Say::credit) put(out, word.amount);
  if (word.say == Say::message) {
    put(out, word.opens.size());
    for (const Kind kind : word.opens) put(out, static_cast<std::size_t>(kind));
  }
  out += word.bytes;
}

void Reader::feed(std::string_view bytes) {
  bytes_.erase(0, at_);
  at_ = 0;
  bytes_ += bytes;
}

std::expected<std::optional<Word>, Nonsense> Reader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  if (rest.size() < kHead) return std::optional<Word>();
  const std::size_t size = get(rest, 0);
  if (size > kMostBody) return std::unexpected(Nonsense{});
  if (rest.size() < kHead + size) return std::optional<Word>();
  auto word = read_word(get(rest, 4), get(rest, 8), rest.substr(kHead, size));
  if (!word) return std::unexpected(Nonsense{});
  at_ += kHead + size;
  return std::move(*word);
}

}  // namespace tunnel
