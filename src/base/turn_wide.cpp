// Squares turned over, and rows read backwards or filled, in vectors of 32 bytes, of AVX2.
#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#include "base/turn_body.hpp"

namespace rosin {

Turner<uint32_t> wide_turner_of_4() { return turner<uint32_t, 32>(); }
Turner<uint64_t> wide_turner_of_8() { return turner<uint64_t, 32>(); }

template <class Word> RowWriter<Word> wide_row_writer() { return writer_of_rows<Word, 32>(); }
template RowWriter<uint8_t> wide_row_writer();
template RowWriter<uint16_t> wide_row_writer();
template RowWriter<uint32_t> wide_row_writer();
template RowWriter<uint64_t> wide_row_writer();

}  // namespace rosin

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
