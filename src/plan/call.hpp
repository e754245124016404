// CallDescription: what a library is asked to compute as one call: the CPU's engines and the plug-ins of devices take
// the same description (backend.h carries it as a C struct). It knows nothing of graphs.
// Read next: describe.hpp (from an op to its call), engines/call_spec.hpp (the CPU), run/call_question.hpp (plug-ins).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/shape.hpp>

namespace rosin {
struct Op;
}

namespace rosin::plan {

/// What is computed. The numbers, and those of the enums below, are those of backend.h. Ops of graphs become products,
/// convolutions, poolings, attention and recurrent layers (describe.hpp); normalisations can be described, but no op
/// becomes such a call yet. Kinds whose arrays backend.h does not define (optimiser, collective) are none here.
enum class CallKind : uint8_t {
  matmul,
  convolution,          // input, weights -> output
  convolution_data,     // output_gradient, weights -> input_gradient
  convolution_weights,  // input, output_gradient -> weights_gradient
  pooling,              // input -> output
  pooling_data,         // [input, output,] output_gradient -> input_gradient
  normalisation,
  normalisation_data,
  attention,
  attention_data,
  recurrent,      // input, weights, first_state, [first_cell] -> [output, last_state, last_cell, reserve]
  recurrent_data  // the same operands, output, reserve, [slopes of results] -> [slopes of operands]
};

/// What an operand or result is to its call.
enum class CallRole : uint8_t {
  left,  // of a matmul, whose result is `output`
  right,
  input,
  weights,
  output,
  input_gradient,
  weights_gradient,
  output_gradient,
  bias,           // epilogue: one element a row of the product, or a channel
  residual,       // epilogue: as large as the result, added to it
  auxiliary,      // epilogue: what the activation's gradient needs
  bias_gradient,  // epilogue: receives the sums of output_gradient
  mean,
  deviation,
  query,
  key,
  value,
  state,
  query_gradient,
  key_gradient,
  value_gradient,
  first_state,
  first_cell,
  last_state,
  last_cell,
  reserve,
  first_state_gradient,
  first_cell_gradient,
  last_state_gradient,
  last_cell_gradient,
  center,  // epilogue, of calls that no plug-in is asked for: like a bias, is subtracted
  factor,  // like a bias, multiplies
  shift    // like a bias, is added behind them
};

/// An array of a call: element (i, j, ...) stands at the sum of index * stride, in elements. In a question that is
/// asked before sizes are known the sizes and strides are 0.
struct CallArray {
  DType type = DType::Float32;
  Shape shape;
  int64_t strides[Shape::max_rank] = {};
  CallRole role = CallRole::input;

  bool contiguous() const;
  /// Images (spatial..., channels, batch) in CWHN, or in an order that is the same in memory.
  bool channels_first() const;
};

/// Windows of convolutions and poolings, up to three spatial dims, the fastest first.
struct CallWindow {
  int32_t spatial = 0;
  int32_t stride[3] = {1, 1, 1};
  int32_t dilation[3] = {1, 1, 1};
  int32_t pad_low[3] = {};
  int32_t pad_high[3] = {};
  int32_t window[3] = {};  // pooling: its size
  int32_t groups = 1;      // convolution: of channels
  bool flipped = false;    // convolution: a true one (the kernel is flipped), else a cross-correlation
  bool mean = false;       // pooling: of the mean, else of the maximum
};

/// The gradients of activations are that of the result by the activation's operand, times the result. Plug-ins know
/// those up to the gradients (rosin_activation).
enum class Activation : uint8_t { none, relu, sigmoid, tanh, gelu, relu_gradient, gelu_gradient, relu6 };

constexpr bool is_gradient(Activation activation) {
  return activation == Activation::relu_gradient || activation == Activation::gelu_gradient;
}
/// Of these the auxiliary is bits, where the activation's operand is positive; of others it is that operand.
constexpr bool has_bits(Activation activation) {
  return activation == Activation::relu || activation == Activation::relu_gradient;
}

/// What is done with the result before it is stored, in this order; each step rounds as if it had been stored before:
/// times a number, + bias, - center, * factor, + shift (as a BatchNorm with running statistics does), + residual, the
/// activation.
struct Epilogue {
  bool scaled = false;  // each run brings the number
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::none;
  bool auxiliary = false;      // of the activation: written, by its gradient read
  bool bias_gradient = false;  // sums over all but channels or rows: of output_gradient, of the left operand of a
                               // matmul, of the result of one whose activation is a gradient
  bool center = false, factor = false, shift = false;

  bool none() const { return *this == Epilogue{}; }
  bool reads_auxiliary() const { return auxiliary && is_gradient(activation); }
  bool normalises() const { return center || factor || shift; }
  bool writes_auxiliary() const { return auxiliary && !is_gradient(activation); }
  bool operator==(const Epilogue&) const = default;
};

/// In what products are computed: the operands' own type (sums of halves in Float32), or less exactly.
enum class ComputeMode : uint8_t { exact, tf32, float16, bfloat16 };

/// A step of a recurrent layer, as rosin_cell of backend.h.
enum class Cell : uint8_t { tanh, relu, lstm, gru };

/// Numbers of some kinds; what they mean is said in backend.h (rosin_attribute_key).
struct CallAttributes {
  double epsilon = 0;      // normalisation
  double scale = 1;        // attention: of the products of queries and keys
  bool causal = false;     // attention: no query sees a later key
  double dropout = 0;      // attention: the probability that a weight is dropped
  Cell cell = Cell::tanh;  // recurrent

  bool operator==(const CallAttributes&) const = default;
};

struct CallDescription {
  CallKind kind = CallKind::matmul;
  std::vector<CallArray> arrays;  // operands in the order of buffers, the epilogue's after the op's, then the result
  CallWindow window;
  CallAttributes attributes;
  Epilogue epilogue;
  bool accumulate = false;  // the result is added to what stands there, before the epilogue
  ComputeMode compute = ComputeMode::exact;
  bool deterministic = true;  // the same operands give the same bits, always
  bool unrounded = false;     // steps of the epilogue may keep digits that they would lose if they were stored between

  /// What the mode allows.
  void take(MathMode mode);

  const CallArray& result() const { return arrays.back(); }
  /// The array of that role, or null.
  const CallArray* find(CallRole role) const;
};

/// How a call wishes an array to lie.
enum class Order : uint8_t {
  contiguous,     // column-major without gaps
  strided,        // any strides
  channels_first  // images: channels, spatial dims, batch (CWHN)
};

/// The gradient by filters of single channels with more taps than this (3x3) is computed by planes, of any size.
inline constexpr int64_t most_taps_in_blocks = 9;

/// What an executor says of the plans that are made for it. Immutable, asked from any thread.
class Target {
 public:
  virtual ~Target() = default;
  /// Whether the executor computes this as one call, with this epilogue. Without sizes: whether it may; with sizes it
  /// is asked again when a layout is prepared, and a call refused then is computed by kernels.
  virtual bool takes(const CallDescription& call) const = 0;
  /// The wished order of array `i` of the call, whose sizes are not known. Of calls that are not taken: what the
  /// kernels that compute them read.
  virtual Order order(const CallDescription& call, size_t i) const = 0;
  /// Whether a call that wishes images in CWHN is as well computed where all of them stand in logical order: a pool, or
  /// a convolution if each group has one input channel, or if windows are single points.
  virtual bool takes_logical_images(const CallDescription&) const { return false; }
  /// Elements of a channel's image of Float32 from which on that is so.
  virtual int64_t least_plane() const { return 0; }
  /// Up to how many taps of a filter of a single channel that is so, forward and as a gradient of the input.
  virtual int64_t most_plane_taps() const { return std::numeric_limits<int64_t>::max(); }
  /// Whether all results of the call may stand in memory with any strides.
  virtual bool writes_strided(const CallDescription&) const { return false; }
  /// Elements of the longest row that is reduced and then used within one kernel; and of the longest that is one dim.
  virtual int64_t longest_row() const = 0;
  virtual int64_t longest_line() const { return longest_row(); }
  /// Rows may be longer where they are many: of so many elements for each of them.
  virtual int64_t elements_for_each_row() const { return 0; }
  /// Primitives that computing a value once more may take where it saves memory traffic; 0: nothing is computed twice.
  virtual int recomputed_work() const = 0;
  /// The math mode of what says none.
  virtual MathMode usual_mode() const { return MathMode::exact; }
  /// Bytes that an item loads and stores at a time at best.
  virtual int vector_bytes() const = 0;
  /// Whether rows that read which labels are classes may find that out, from the labels: no call does it beforehand.
  virtual bool rows_check_labels() const { return false; }
  /// Whether a scatter's result may take over the memory of its target, of which only what is written then changes.
  virtual bool scatters_in_place() const { return false; }
  /// What becomes of a kernel: a walk over compiled loops, machine code, or text that the device's compiler takes.
  enum class Form : uint8_t { loops, machine_code, text };
  virtual Form form() const = 0;
  /// Whether a kernel's walk adds up what it stores at little cost: no call is asked for these sums then.
  virtual bool sums_stores() const { return form() == Form::text; }
};

}  // namespace rosin::plan
