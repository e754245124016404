// Text as numbers and back: tokenisers by bytes, by characters, and by the byte pairs of GPT-2.
// Read next: csv.hpp (tables), embedding.hpp (what takes the numbers).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/export.hpp>

namespace rosin {

/// Token i is byte i: any text, 256 tokens.
class ROSIN_API ByteTokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const;
  /// Error (argument): a token outside [0, 256).
  std::string decode(std::span<const int32_t> tokens) const;
  int64_t vocab_size() const noexcept { return 256; }

  static constexpr bool rosin_leaf = true;
};

struct CharTokenizerOptions {
  bool unknown = false;  // one token more, the last, for characters that the text does not have; decoded as U+FFFD
};

/// Token i is the i-th of the code points that occur in a text, sorted by their number.
class ROSIN_API CharTokenizer {
 public:
  /// Error (argument): the text is no UTF-8 (with the place of the byte).
  explicit CharTokenizer(std::string_view text, const CharTokenizerOptions& options = {});

  /// Errors (argument): a character that the vocabulary lacks where there is no `unknown`, or no UTF-8; with the place
  /// of its first byte.
  std::vector<int32_t> encode(std::string_view text) const;
  /// Error (argument): no such token.
  std::string decode(std::span<const int32_t> tokens) const;
  int64_t vocab_size() const noexcept { return static_cast<int64_t>(characters_.size()) + (unknown_ ? 1 : 0); }
  /// The code points, token by token; without `unknown`.
  const std::vector<uint32_t>& characters() const noexcept { return characters_; }

  static constexpr bool rosin_leaf = true;

 private:
  std::vector<uint32_t> characters_;  // sorted
  bool unknown_;
};

/// Byte-level byte-pair encoding as GPT-2 has it: text is cut into words (contractions, letters, numbers, other signs,
/// spaces), and the bytes of a word are joined pair by pair, first the pair that stands first in merges.txt. Any bytes
/// can be encoded and come back; a byte that is no UTF-8 counts as a sign. All text is plain text: "<|endoftext|>" is
/// encoded letter by letter, and `token("<|endoftext|>")` is that token. Copies share the vocabulary; several threads
/// may use it. Source: Radford and others, "Language Models are Unsupervised Multitask Learners" (2019), encoder.py.
class ROSIN_API BpeTokenizer {
 public:
  /// Reads GPT-2's two files: an object of token names and numbers, and the pairs to join, one a line. Errors are of
  /// kind io and name the file and the place: no such file, no JSON, numbers that are not 0 ... n - 1 once each, one of
  /// the 256 bytes without a token, a line that is no pair, a pair of which the vocabulary lacks a part or the whole.
  static BpeTokenizer load(const std::string& vocab_path, const std::string& merges_path);

  BpeTokenizer(const BpeTokenizer& other) noexcept;
  BpeTokenizer(BpeTokenizer&& other) noexcept : vocabulary_(std::exchange(other.vocabulary_, nullptr)) {}
  BpeTokenizer& operator=(BpeTokenizer other) noexcept {
    std::swap(vocabulary_, other.vocabulary_);
    return *this;
  }
  ~BpeTokenizer();

  /// Error (argument): 2^31 bytes or more.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The bytes of the tokens; tokens that end inside a character give a text that does, too. Error (argument): no such
  /// token.
  std::string decode(std::span<const int32_t> tokens) const;
  int64_t vocab_size() const noexcept;
  /// The number of the token that decodes to this text, -1 where there is none.
  int32_t token(std::string_view text) const noexcept;

  static constexpr bool rosin_leaf = true;

 private:
  struct Vocabulary;
  explicit BpeTokenizer(Vocabulary* vocabulary) noexcept : vocabulary_(vocabulary) {}
  Vocabulary* vocabulary_;
};

}  // namespace rosin
