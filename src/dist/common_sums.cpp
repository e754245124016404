// See common_sums.hpp.
#include "dist/common_sums.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>

#include "dist/host.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin::distributed {
namespace {

constexpr uint64_t stride = 64;  // arrays begin at multiples of that many bytes, as all arrays do

uint64_t padded_bytes(const Array& x) { return (bytes_of(x.dtype(), x.shape()) + stride - 1) / stride * stride; }

uint64_t bytes_for(std::span<const Array> given) {
  uint64_t bytes = 0;
  for (const Array& x : given) bytes += padded_bytes(x);
  return bytes;
}

}  // namespace

CommonSums::CommonSums(const rosin_comm_transport& transport, rosin_comm& comm)
    : transport_(transport), comm_(comm),
      is_offered_(transport.size > offsetof(rosin_comm_transport, common) && transport.common) {}

/// (What a gradient call walks over is read again later.)
bool CommonSums::suit(std::span<const Array> given) const {
  if (!is_offered_ || !std::all_of(given.begin(), given.end(), is_on_cpu)) return false;
  if (Context::current().in_gradient()) return false;
  return bytes_for(given) >= least_bytes && !are_read();
}

/// By another handle, an op that is pending, or a view.
bool CommonSums::are_read() const {
  return std::any_of(sums_.begin(), sums_.end(), [](const Array& sum) {
    const Node& node = *sum.node();
    return node.users() != 1 || node.references() != 0 || node.buffer->owners.load(std::memory_order_acquire) != 1;
  });
}

bool CommonSums::are_like(std::span<const Array> given) const {
  return std::equal(given.begin(), given.end(), sums_.begin(), sums_.end(), [](const Array& x, const Array& sum) {
    return x.dtype() == sum.dtype() && x.shape() == sum.shape();
  });
}

rosin_comm_status CommonSums::take(std::span<const Array> given, double timeout, std::vector<Array>& made) {
  made.clear();
  for (const Array& sum : sums_) {  // (the last step may still run behind its thread)
    while (!is_over(sum.node()->buffer->used_by)) std::this_thread::yield();
  }
  if (!are_like(given)) {
    sums_.clear();
    void* memory = nullptr;
    const rosin_comm_status status = transport_.common(&comm_, bytes_for(given), timeout, &memory);
    is_offered_ = status != ROSIN_COMM_UNSUPPORTED;
    if (status != ROSIN_COMM_OK) return status;
    memory_ = static_cast<char*>(memory);
    lay_out(given);
  }
  made = sums_;
  return ROSIN_COMM_OK;
}

void CommonSums::lay_out(std::span<const Array> given) {
  char* at = memory_;
  for (const Array& x : given) {
    sums_.push_back(borrowed_leaf(at, x.dtype(), x.shape(), MemoryOwner(nullptr, nullptr)));
    at += padded_bytes(x);
  }
}

}  // namespace rosin::distributed
