// Bytes and characters as tokens (text.hpp).
#include <algorithm>

#include <rosin/error.hpp>
#include <rosin/text.hpp>

#include "data/unicode_classes.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::argument, message); }

void check_token(int32_t token, int64_t count) {
  if (token < 0 || token >= count) {
    refuse("decode: a token is in [0, " + std::to_string(count) + "); got " + std::to_string(token));
  }
}

/// Calls f(code point, place) for each character.
template <class F> void each_character(std::string_view text, const char* op, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!point.valid) {
      refuse(std::string(op) + ": the text must be UTF-8; byte " + std::to_string(at) +
             " is not part of a character; ByteTokenizer takes any bytes");
    }
    f(point.value, at);
    at += point.bytes;
  }
}

}  // namespace

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens(text.size());
  std::transform(text.begin(), text.end(), tokens.begin(), [](char byte) { return static_cast<unsigned char>(byte); });
  return tokens;
}

std::string ByteTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (int32_t token : tokens) {
    check_token(token, 256);
    text.push_back(static_cast<char>(token));
  }
  return text;
}

CharTokenizer::CharTokenizer(std::string_view text, const CharTokenizerOptions& options) : unknown_(options.unknown) {
  std::vector<bool> occurs(0x110000);
  each_character(text, "CharTokenizer", [&](uint32_t value, size_t) { occurs[value] = true; });
  for (uint32_t value = 0; value < occurs.size(); ++value) {
    if (occurs[value]) characters_.push_back(value);
  }
}

std::vector<int32_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  each_character(text, "encode", [&](uint32_t value, size_t at) {
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), value);
    const bool known = found != characters_.end() && *found == value;
    if (!known && !unknown_) {
      std::string character;
      append_code_point(character, value);
      refuse("encode: each character must be in the vocabulary; '" + character + "' at byte " + std::to_string(at) +
             " is not; make the tokenizer with {.unknown = true}");
    }
    tokens.push_back(static_cast<int32_t>(known ? found - characters_.begin() : vocab_size() - 1));
  });
  return tokens;
}

std::string CharTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (int32_t token : tokens) {
    check_token(token, vocab_size());
    const auto at = static_cast<size_t>(token);
    append_code_point(text, at < characters_.size() ? characters_[at] : 0xfffd);
  }
  return text;
}

}  // namespace rosin
