// CWHN: images with their channels first, then the spatial dims, then the batch. Read first: call.hpp (Order).
#pragma once

namespace rosin::plan {

/// The dim of images that comes i-th in CWHN memory order.
constexpr int channels_first_dim(int rank, int i) { return i == 0 ? rank - 2 : i == rank - 1 ? i : i - 1; }

}  // namespace rosin::plan
