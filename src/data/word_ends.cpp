// GPT-2's regular expression as a scanner (word_ends.hpp).
#include "data/word_ends.hpp"

#include <array>

#include "data/unicode_classes.hpp"

namespace rosin {
namespace {

constexpr std::array<CodeClass, 128> ascii_classes = [] {
  std::array<CodeClass, 128> classes{};
  for (uint32_t i = 0; i < 128; ++i) classes[i] = ascii_class(i);
  return classes;
}();

struct Step {
  CodeClass kind;
  size_t bytes;
};
Step step_at(std::string_view text, size_t at) noexcept {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 128) return {ascii_classes[byte], 1};
  const CodePoint point = code_point_at(text, at);
  return {point.valid ? class_of(point.value) : CodeClass::other, point.bytes};
}

/// The bytes of 's, 't, 're, 've, 'm, 'll, 'd; 0: none of them.
size_t contraction(std::string_view rest) noexcept {
  for (std::string_view tail : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (rest.substr(1).starts_with(tail)) return 1 + tail.size();
  }
  return 0;
}

}  // namespace

size_t word_end(std::string_view text, size_t at) noexcept {
  if (text[at] == '\'') {
    if (const size_t bytes = contraction(text.substr(at))) return at + bytes;
  }
  size_t begin = at;
  Step step = step_at(text, at);
  if (text[at] == ' ' && at + 1 < text.size()) {
    const Step second = step_at(text, at + 1);
    if (second.kind != CodeClass::space) {
      begin = at + 1;
      step = second;
    }
  }
  const CodeClass kind = step.kind;
  size_t end = begin + step.bytes, last = begin;  // of the run, and where its last character begins
  while (end < text.size()) {
    step = step_at(text, end);
    if (step.kind != kind) break;
    last = end;
    end += step.bytes;
  }
  // The last of several spaces before a word belongs to the word.
  if (kind == CodeClass::space && end < text.size() && last > begin) return last;
  return end;
}

}  // namespace rosin
