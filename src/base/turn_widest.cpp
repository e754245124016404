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

template <class Word> RowWriter<Word> widest_row_writer() { return writer_of_rows<Word, 64>(); }
template RowWriter<uint8_t> widest_row_writer();
template RowWriter<uint16_t> widest_row_writer();
template RowWriter<uint32_t> widest_row_writer();
template RowWriter<uint64_t> widest_row_writer();

}  // namespace rosin

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
