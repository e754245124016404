// CallDescription: what a library is asked to compute as one call: the CPU's engines and the plug-ins of devices take
// the same description (backend.h carries it as a C struct). It knows nothing of graphs.
// Read next: describe.hpp (from an op to its call), engines/call_spec.hpp (the CPU), run/vendor_call.hpp (plug-ins).
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

namespace rosin::plan {

/// What is computed. The numbers, and those of the enums below, are those of backend.h.
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
  recurrent,
  recurrent_data,
  optimiser,
  collective
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
  auxiliary,      // epilogue: receives what the activation's gradient needs
  bias_gradient,  // epilogue: receives the sums of output_gradient
  mean,
  deviation,
  query,
  key,
  value,
  state
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

enum class Activation : uint8_t { none, relu, sigmoid, tanh };

/// What is done with the result before it is stored, in this order; each step rounds as if it had been stored before:
/// times a number, + bias, + residual, the activation.
struct Epilogue {
  bool scaled = false;  // each run brings the number
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::none;
  bool auxiliary = false;      // the value before the activation is stored too
  bool bias_gradient = false;  // gradients: output_gradient is summed over all but its channels (rows) too

  bool none() const { return *this == Epilogue{}; }
  bool operator==(const Epilogue&) const = default;
};

/// In what products are computed: the operands' own type (sums of halves in Float32), or less exactly.
enum class ComputeMode : uint8_t { exact, tf32, float16, bfloat16 };

struct CallDescription {
  CallKind kind = CallKind::matmul;
  std::vector<CallArray> arrays;  // operands in the order of buffers, the epilogue's after the op's, then the result
  CallWindow window;
  Epilogue epilogue;
  bool accumulate = false;  // the result is added to what stands there, before the epilogue
  ComputeMode compute = ComputeMode::exact;
  bool deterministic = true;  // the same operands give the same bits, always

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
  /// Elements of the longest row that is reduced and then used within one kernel.
  virtual int64_t longest_row() const = 0;
  /// Primitives that computing a value once more may take where it saves memory traffic; 0: nothing is computed twice.
  virtual int recomputed_work() const = 0;
  /// Bytes that an item loads and stores at a time at best.
  virtual int vector_bytes() const = 0;
  /// What becomes of a kernel: a walk over compiled loops, machine code, or text that the device's compiler takes.
  enum class Form : uint8_t { loops, machine_code, text };
  virtual Form form() const = 0;
};

}  // namespace rosin::plan
