// Where GPT-2 cuts text into words. Read next: word_ends.cpp; bpe_tokenizer.cpp, which joins the bytes of a word.
#pragma once

#include <cstddef>
#include <string_view>

namespace rosin {

/// The end of the word that begins at `at`, which must be inside: the first match of
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// A byte that is no UTF-8 is neither letter nor number nor space.
size_t word_end(std::string_view text, size_t at) noexcept;

}  // namespace rosin
