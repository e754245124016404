// See onednn_weights.hpp.
#include "engines/onednn.hpp"

#if defined(ROSIN_HAVE_ONEDNN)

#include "engines/onednn_weights.hpp"

#include <algorithm>
#include <array>

#include "base/workers.hpp"
#include "engines/converted.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t least_block = 16, most_block = 1024;  // elements
constexpr int64_t most_pieces = 32;
constexpr int64_t least_elements = 1 << 14;  // of a piece

bool is_padded(const dnnl_memory_desc_t& packed) {
  return !std::equal(packed.dims, packed.dims + packed.ndims, packed.padded_dims);
}

}  // namespace

WeightsOrder::WeightsOrder(const dnnl_memory_desc_t& packed, const dnnl_memory_desc_t& logical, bool flipped,
                           int spatial_from) {
  if (packed.format_kind != dnnl_blocked || packed.offset0 != 0 || packed.extra.flags != 0 || is_padded(packed)) return;
  const dnnl_blocking_desc_t& blocking = packed.format_desc.blocking;
  std::array<int64_t, DNNL_MAX_NDIMS> step{}, block{};
  for (int d = 0; d < packed.ndims; ++d) {
    const bool turned = flipped && d >= spatial_from;
    step[static_cast<size_t>(d)] = logical.format_desc.blocking.strides[d] * (turned ? -1 : 1);
    block[static_cast<size_t>(d)] = 1;
    if (turned) logical_begin_ += (packed.dims[d] - 1) * logical.format_desc.blocking.strides[d];
  }
  std::vector<int32_t> places{0};  // those of the blocks inside, the innermost first
  for (int i = blocking.inner_nblks - 1; i >= 0; --i) {
    const auto d = static_cast<size_t>(blocking.inner_idxs[i]);
    std::vector<int32_t> more;
    for (int64_t k = 0; k < blocking.inner_blks[i]; ++k) {
      for (const int32_t place : places) more.push_back(place + static_cast<int32_t>(k * block[d] * step[d]));
    }
    block[d] *= blocking.inner_blks[i];
    places = std::move(more);
  }
  const auto elements = static_cast<int64_t>(places.size());
  if (elements < least_block || elements > most_block) return;
  inside_ = std::move(places);
  for (int d = 0; d < packed.ndims; ++d) {
    const int64_t in_block = block[static_cast<size_t>(d)];
    dims_.push_back({packed.dims[d] / in_block, blocking.strides[d], in_block * step[static_cast<size_t>(d)]});
  }
}

/// Calls visit(packed place, logical place) for each block; pieces of the first dims on all threads.
template <class Visit> void WeightsOrder::each_block(Visit visit) const {
  int64_t blocks = 1;
  for (const Dim& dim : dims_) blocks *= dim.count;
  const int64_t elements = blocks * static_cast<int64_t>(inside_.size());
  const int64_t pieces = std::clamp<int64_t>(elements / least_elements, 1, std::min(most_pieces, blocks));
  parallel_for(pieces, [&](int64_t piece) {
    for (int64_t i = blocks * piece / pieces; i < blocks * (piece + 1) / pieces; ++i) {
      int64_t left = i, in_packed = 0, in_logical = logical_begin_;
      for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim) {
        in_packed += left % dim->count * dim->packed_step;
        in_logical += left % dim->count * dim->logical_step;
        left /= dim->count;
      }
      visit(in_packed, in_logical);
    }
  });
}

void WeightsOrder::pack(const void* logical, void* packed, size_t element_bytes) const {
  const auto copy = [&](const auto* from, auto* to) {
    each_block([&](int64_t in_packed, int64_t in_logical) {
      auto* const block = to + in_packed;
      const auto* const first = from + in_logical;
      for (size_t i = 0; i < inside_.size(); ++i) block[i] = first[inside_[i]];
    });
  };
  if (element_bytes == sizeof(uint32_t)) copy(static_cast<const uint32_t*>(logical), static_cast<uint32_t*>(packed));
  else copy(static_cast<const uint16_t*>(logical), static_cast<uint16_t*>(packed));
}

void WeightsOrder::sum(const float* partial, int64_t count, int64_t distance, DType type, void* logical) const {
  const auto block_elements = static_cast<int64_t>(inside_.size());
  each_block([&](int64_t in_packed, int64_t in_logical) {
    std::array<float, most_block> sums;
    std::copy_n(partial + in_packed, block_elements, sums.begin());
    for (int64_t k = 1; k < count; ++k) {
      const float* const more = partial + k * distance + in_packed;
      for (size_t i = 0; i < inside_.size(); ++i) sums[i] += more[i];
    }
    if (type == DType::Float32) {
      float* const first = static_cast<float*>(logical) + in_logical;
      for (size_t i = 0; i < inside_.size(); ++i) first[inside_[i]] = sums[i];
      return;
    }
    std::array<uint16_t, most_block> halves;
    narrow(type, sums.data(), halves.data(), block_elements);
    uint16_t* const first = static_cast<uint16_t*>(logical) + in_logical;
    for (size_t i = 0; i < inside_.size(); ++i) first[inside_[i]] = halves[i];
  });
}

}  // namespace rosin::engines

#endif
