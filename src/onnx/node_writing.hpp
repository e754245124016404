// What the rows of the table of exports see: a recorded op, the names that its operands have in the file, and the file.
// Read first: file_graph.hpp. Read next: exports.cpp (the table).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file_graph.hpp"

namespace rosin::onnx {

struct Export;

class NodeWriting {
 public:
  /// `names` are those of the recording's values so far.
  NodeWriting(const Recording& recording, const RecordedValue& value, std::span<const std::string> names,
              const Export& row, FileGraph& graph)
      : file(graph), recording_(recording), value_(value), names_(names), row_(row) {}

  FileGraph& file;

  const Export& row() const noexcept { return row_; }
  const RecordedValue& value() const noexcept { return value_; }
  const std::vector<Size>& sizes() const noexcept { return value_.sizes; }
  int rank() const noexcept { return static_cast<int>(value_.sizes.size()); }
  int operands() const noexcept { return static_cast<int>(value_.operands.size()); }
  bool is_number(int i) const noexcept { return value_.operands[static_cast<size_t>(i)].value < 0; }
  double number(int i) const noexcept { return value_.operands[static_cast<size_t>(i)].number.real; }
  /// An operand that is no number.
  const RecordedValue& operand(int i) const noexcept {
    return recording_.values[static_cast<size_t>(value_.operands[static_cast<size_t>(i)].value)];
  }
  int operand_rank(int i) const noexcept { return static_cast<int>(operand(i).sizes.size()); }
  /// An operand as it was written.
  NodeWriting at_operand(int i) const { return NodeWriting(recording_, operand(i), names_, row_, file); }
  template <class T> T attributes() const { return value_.attributes.as<T>(); }

  /// The operand's name; in another type where it does not have this one.
  std::string in(int i) const { return names_[static_cast<size_t>(value_.operands[static_cast<size_t>(i)].value)]; }
  std::string in(int i, DType type) const;
  /// Of elementwise ops: the type in which they compute, operands in it, and numbers.
  DType computed() const noexcept;
  std::string x(int i = 0) const { return in(i, computed()); }
  std::string constant(double number) const { return file.number(computed(), number); }

  /// Complex numbers are their two parts along a last axis of the file.
  bool has_parts() const noexcept { return is_complex(value_.type); }
  /// The sizes of the result, for ops that take them as an input.
  std::vector<Size> file_sizes() const;
  std::string shape() const { return file.sizes(file_sizes()); }

  std::string add(std::string_view op, std::vector<std::string> inputs, std::vector<WireWriter> attributes = {}) const {
    return file.add(op, std::move(inputs), std::move(attributes));
  }
  /// This cannot be said in the format. Error (argument), which save collects.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Recording& recording_;
  const RecordedValue& value_;
  std::span<const std::string> names_;
  const Export& row_;
};

/// The axis of the file that is dim d of so many.
inline int64_t axis_of(int64_t dim, int rank) { return rank - 1 - dim; }

using Write = std::string(NodeWriting& node);
// export_elementwise.cpp
Write plain, cos_of_turns_out, square_out, root_below_one, clamp_out, truncated, rounded_alike, not_equal, finite_out,
    cube_root, power_of_two, exp_less_one, log_of_base_two, log_of_base_ten, log_of_sum, log_of_more, angle_out,
    hypotenuse, modulo, floored_quotient, where_out, cast_out, is_infinite_out, is_nan_out, bitwise_out, shifted_out;
// export_activation.cpp
Write hard_sigmoid_out, log_sigmoid_out, between_ones, leaky_relu_out, relu_to_six, elu_out, gelu_out, gelu_sigmoid_out,
    gelu_erf_out, swish_out, tanh_times, selu_out, celu_out, relu_above, log_cosh_out, mish_out, tanh_shrink,
    soft_shrink, masked_product_out, softmax_out;
/// log(exp(x) + exp(y)), also of infinite numbers.
std::string log_sum(const NodeWriting& node, DType type, const std::string& x, const std::string& y);
// export_movement.cpp
/// x with the sizes of the result.
std::string reshaped(NodeWriting& node, const std::string& x);
Write same_out, reshape_out, expand_out, permute_out, slice_out, pad_out, concat_out;
// export_reduce.cpp
/// An op of the format along the dim of a scan.
std::string along_axis(NodeWriting& node, std::string_view op);
Write sum_out, extreme_out, any_out, place_out, running_sum_out, sorted_places, part_out;
// export_product.cpp
std::vector<WireWriter> convolution_settings(const NodeWriting& node, const WindowAttributes& window);
/// `dilated_since`: the first opset whose windows may have steps.
std::vector<WireWriter> pool_settings(const NodeWriting& node, int64_t dilated_since);
/// A transposed convolution of x with kernels (of these sizes, in the order of dims) to the sizes of the result.
std::string spread_out(NodeWriting& node, const std::string& x, const std::string& kernels,
                       const std::vector<int64_t>& size);
Write matmul_out, conv_out, conv_transpose_out, max_pool_out, mean_pool_out;
// export_index.cpp
Write gather_out, weighed_out, take_along_out, scatter_out, add_along_out, onehot_out, always_true;
// export_scan.cpp
Write running_out, running_product_out, running_log_sum_out, recurrence_out;
// export_sequence.cpp
Write sequence_out, sequence_part_out;
// export_slope.cpp
Write relu_slope_out, sigmoid_slope_out, tanh_slope_out, gelu_slope_out, running_mean_out, running_square_out,
    scaled_by_root_out, moved_by_root_out, logit_entropy_out, max_pool_pick_out, max_pool_slope_out,
    mean_pool_slope_out, conv_kernels_out;
// export_special.cpp
Write lgamma_out, digamma_out, trigamma_out, erfinv_out;
// export_random.cpp
Write uniform_out, integers_out, permutation_out;
// export_signal.cpp
Write fourier_out, det_out;

}  // namespace rosin::onnx
