// Numbers of several ranks combined, in the order of the ranks. Read next: combine.cpp.
#pragma once

#include <cstdint>
#include <span>

#include <rosin/comm.h>

namespace rosin::transport {

/// Bytes of a block, in which numbers are combined before they go to where they belong.
inline constexpr uint64_t block_bytes = 8192;

/// sources[0] o sources[1] o ... for at most a block of elements; 16-bit floats in Float32, rounded once at the end.
/// `out` is none of the sources. The operation and the type are such as checked() takes for what is combined.
void combine(int32_t operation, int32_t type, std::span<const void* const> sources, uint64_t count, void* out);

/// The same of `bytes` for any number of them; `to` may be one of the sources, and overlaps no other one.
void combine_all(int32_t operation, int32_t type, std::span<const void* const> sources, uint64_t bytes, char* to);

/// Float16 or BFloat16 to Float32, exactly.
void widen(int32_t type, const void* from, float* to, uint64_t count);
/// And back, to the nearest, ties to even; NaN stays NaN.
void narrow(int32_t type, const float* from, void* to, uint64_t count);

/// all[i] = first[i] o next[i], of a type that is no 16-bit float; `all` is `first` or overlaps neither.
void combine_two(int32_t operation, int32_t type, const void* first, const void* next, void* all, uint64_t count);
/// all[i] = all[i] o next[i], of a type that is no 16-bit float. The least and the greatest are NaN where one is.
void combine_into(int32_t operation, int32_t type, const void* next, void* all, uint64_t count);

}  // namespace rosin::transport
