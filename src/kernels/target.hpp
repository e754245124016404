// What the kernels of this room read, for plans whose calls nobody takes. Read first: plan/call.hpp.
#pragma once

#include <algorithm>

#include "kernels/launches.hpp"
#include "plan/call.hpp"

namespace rosin::kernels {

/// A device without a library: no call is taken; products, pools and attention read operands of any strides, other
/// kernels contiguous ones.
class KernelTarget : public plan::Target {
 public:
  bool takes(const plan::CallDescription&) const override { return false; }
  plan::Order order(const plan::CallDescription& call, size_t) const override {
    using enum plan::CallKind;
    const bool strided = call.kind == matmul || call.kind == pooling || call.kind == pooling_data ||
                         call.kind == attention || call.kind == attention_data;
    return strided ? plan::Order::strided : plan::Order::contiguous;
  }
  bool writes_strided(const plan::CallDescription& call) const override {
    using enum plan::CallKind;
    return call.kind == attention_data;
  }
  int64_t longest_row() const override { return usual_row; }
  /// A reduction that gives each of its results to one group has rows for as many groups.
  int64_t elements_for_each_row() const override { return items_of_group; }
  int recomputed_work() const override { return 200; }  // arithmetic is nearly free beside memory
  int vector_bytes() const override { return 16; }
  bool rows_check_labels() const override { return true; }
  Form form() const override { return Form::text; }

  static constexpr int64_t usual_row = 4096;
};

/// Bytes of shared memory that sums of a row take, of all types; rows in what is left are given room for a multiple of
/// `row_step` elements.
inline constexpr int64_t bytes_of_sums = 9 * 1024, row_step = 2048;

/// Rows that groups of a device keep: two arrays of them fit its shared memory.
inline int64_t longest_row_of(const Abilities& device) {
  const int64_t room = (device.shared_bytes - bytes_of_sums) / 2 / 4;
  return std::max(KernelTarget::usual_row, room / row_step * row_step);
}

}  // namespace rosin::kernels
