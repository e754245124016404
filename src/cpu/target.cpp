// What the CPU says of plans that are made for it. Read first: plan/call.hpp.
#include "cpu/call.hpp"
#include "cpu/machine_loop.hpp"
#include "cpu/sum_order.hpp"
#include "plan/call.hpp"

namespace rosin::cpu {
namespace {

using plan::CallDescription;
using plan::CallKind;
using plan::CallRole;
using plan::Order;

class CpuTarget final : public plan::Target {
 public:
  /// Products and convolutions of all types; poolings of those that engines compute, others are kernels of this room.
  bool takes(const CallDescription& call) const override {
    if (!takes_epilogue(call) || call.accumulate || call.compute != plan::ComputeMode::exact) return false;
    switch (call.kind) {
      case CallKind::matmul:
      case CallKind::convolution:
      case CallKind::convolution_data:
      case CallKind::convolution_weights: return true;
      case CallKind::pooling:
      case CallKind::pooling_data: return is_float(call.result().type);
      default: return false;
    }
  }

  /// Of products and convolutions of floats. A factor costs nothing in the kernel that reads the product. Nor do an
  /// activation's gradient and sums of gradients: that kernel has each element in a register, and no product of an
  /// engine has all of a row at once, of which a sum that no number of threads changes is made. What a BatchNorm does
  /// to channels costs nothing in machine code of convolutions, which products have not.
  static bool takes_epilogue(const CallDescription& call) {
    const plan::Epilogue& epilogue = call.epilogue;
    if (epilogue.none()) return true;
    const DType type = call.result().type;
    const bool images = call.kind == CallKind::convolution || call.kind == CallKind::convolution_data;
    return (images || (call.kind == CallKind::matmul && !epilogue.normalises())) && is_float(type) &&
           !epilogue.scaled && !epilogue.auxiliary && !epilogue.bias_gradient &&
           !plan::is_gradient(epilogue.activation);
  }

  /// Images in CWHN. (Where size-1 dims make that the same as the logical order, an array looks contiguous.)
  Order order(const CallDescription& call, size_t i) const override {
    const bool of_sequences = call.kind == CallKind::attention || call.kind == CallKind::attention_data;
    if (call.kind == CallKind::matmul || of_sequences) return Order::strided;
    const CallRole role = call.arrays[i].role;
    const bool weights = role == CallRole::weights || role == CallRole::weights_gradient;
    return weights || !takes(call) ? Order::contiguous : Order::channels_first;
  }

  /// Pools, and convolutions of the types that the tile kernel computes.
  bool takes_logical_images(const CallDescription& call) const override {
    if (!takes(call)) return false;
    if (call.kind == CallKind::pooling || call.kind == CallKind::pooling_data) return true;
    const DType type = call.result().type;
    return type == DType::Float32 || type == DType::Float64;
  }

  /// Measured on Zen 5: with more taps machine code takes a quarter of the time in CWHN, with 9 of them half, which
  /// images turned there and back would cost.
  int64_t most_plane_taps() const override {
    return machine_code_works() ? plan::most_taps_in_blocks : plan::Target::most_plane_taps();
  }

  int64_t least_plane() const override { return 256; }  // measured on Zen 4
  int64_t longest_row() const override { return strip_limit; }
  int64_t longest_line() const override { return line_limit; }
  int recomputed_work() const override { return 16; }  // about five operations: more takes longer than reading
  bool scatters_in_place() const override { return true; }
  int vector_bytes() const override { return best_instruction_set() == InstructionSet::widest ? 64 : 32; }
  Form form() const override { return Form::loops; }
};

}  // namespace

const plan::Target& cpu_target() {
  static const CpuTarget target;
  return target;
}

}  // namespace rosin::cpu
