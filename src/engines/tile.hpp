// Calls made of the tile kernel. Read after tile_kernel.hpp; next tile_matmul.cpp, packed_matmul.cpp,
// tile_conv.cpp, plane_rows.hpp.
#pragma once

#include <functional>
#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Throws Error(dtype) unless `type` is Float32 or Float64, which is what the tile kernel computes.
void require_tile_type(DType type, const char* what);

std::unique_ptr<VendorCall> prepare_tile_matmul(const MatmulSpec& spec);

/// Whether few rows or columns of long sums are computed faster along the sums; and that, of halves too where nothing
/// is accumulated.
bool dots_pay(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_dot_matmul(const MatmulSpec& spec);

/// Whether few rows or columns of sums across a matrix are computed faster by reading that from end to end; and that,
/// of halves too where nothing is accumulated.
bool sweep_pays(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_sweep_matmul(const MatmulSpec& spec);

/// Shorter sums leave little work between reading and writing C, which panels do in the order of memory.
constexpr int64_t short_sum = 64;
/// Whether copying both operands into panels pays.
bool packing_pays(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_packed_matmul(const MatmulSpec& spec);

/// Whether the processor has matrix registers for the product, and the product elements. Read amx_matmul.cpp.
bool amx_can(const MatmulSpec& spec);
std::unique_ptr<VendorCall> prepare_amx_matmul(const MatmulSpec& spec);

/// Whether that takes less time than oneDNN, which computes channels in blocks of 16 and is slower where they fill
/// those badly or are few. Measured on Zen 4, of kernels of 3x3 and 5x5 with AVX-512 and with AVX2, and of one spatial
/// dim.
bool tile_pays(const ConvSpec& spec);
std::unique_ptr<VendorCall> prepare_tile_conv(const ConvSpec& spec);

/// Of images in logical order: each channel by itself.
std::unique_ptr<VendorCall> prepare_plane_conv(const ConvSpec& spec);
/// Whether that is best for images in CWHN too, which it takes for gradients by weights alone.
bool turned_planes_pay(const ConvSpec& spec);
/// Windows of single points, of images in CWHN: whether one product is best, as it is in matrix registers. Measured on
/// Granite Rapids, of a dozen sizes: it takes 0.07 to 1.05 of oneDNN's time, but 1.3 forward of 24 channels, which fill
/// no block.
bool whole_product_pays(const ConvSpec& spec);
std::unique_ptr<VendorCall> prepare_whole_product(const ConvSpec& spec);
/// Of images in logical order: windows of single points.
std::unique_ptr<VendorCall> prepare_point_conv(const ConvSpec& spec);

/// Of images of one channel, each by itself, of one or two dims, windows at most two elements apart along the first.
/// `least`: the maximum of no elements. Read plane_pool.cpp.
template <class T> std::unique_ptr<VendorCall> prepare_plane_pool(const PoolSpec& spec, T least);
/// Whether neighbouring windows of one channel are enough to be computed side by side.
bool plane_pool_pays(const PoolSpec& spec);
/// Of images of one channel, many as the channels of one image, whose call `make` prepares. Read turned_pool.cpp.
using MakePool = std::function<std::unique_ptr<VendorCall>(const PoolSpec& spec)>;
std::unique_ptr<VendorCall> prepare_turned_pool(const PoolSpec& spec, const MakePool& make);

}  // namespace rosin::engines
