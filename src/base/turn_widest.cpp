// Squares turned over, and rows read backwards or filled, in vectors of 64 bytes, of AVX-512.
#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2")
#endif

#include "base/turn_body.hpp"

namespace rosin {

Turner<uint32_t> widest_turner_of_4() { return turner<uint32_t, 64>(); }
Turner<uint64_t> widest_turner_of_8() { return turner<uint64_t, 64>(); }

template <class Word> void flip_rows_widest(const Rows<Word>& rows) { flip_by_vectors<Word, 64>(rows); }
template <class Word> void fill_rows_widest(const Rows<Word>& rows) { fill_by_vectors<Word, 64>(rows); }
template void flip_rows_widest(const Rows<uint8_t>&);
template void flip_rows_widest(const Rows<uint16_t>&);
template void flip_rows_widest(const Rows<uint32_t>&);
template void flip_rows_widest(const Rows<uint64_t>&);
template void fill_rows_widest(const Rows<uint8_t>&);
template void fill_rows_widest(const Rows<uint16_t>&);
template void fill_rows_widest(const Rows<uint32_t>&);
template void fill_rows_widest(const Rows<uint64_t>&);

}  // namespace rosin

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
