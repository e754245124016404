// Vendor calls of the CPU: matmul, convolution and pooling, prepared once and run many times.
//
// A plan prepares each call when it is made; the executor then runs it at every step:
//   call->begin(buffers);                                           // one thread, before the first chunk
//   for each chunk, on any thread: call->run_chunk(chunk, buffers, scratch of that thread);
//   call->finish(buffers);                                          // one thread, after the last chunk
// begin and finish do nothing for most calls (has_begin, has_finish). How the work is cut depends on the shape only, so
// results are equal for any number of threads. No function here touches the caller's OpenMP settings.
// Who answers (oneDNN, the tile kernels, packed panels, AMX, filters of planes, Winograd's filtering, plain loops) is
// decided in vendor.cpp; read that next, then tile_kernel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <rosin/dtype.hpp>

#include "plan/call.hpp"

namespace rosin::engines {

using plan::Activation;
using plan::Epilogue;

/// An activation that the engines have no code for: out[i] = f(in[0][i]), where out may be in[0].
using ActivationLoop = void (*)(void* out, const void* const* in, int64_t count);

/// C(m, n) = [C +] A(m, k) * B(k, n) for each of `batch` items, all column-major, strides in elements.
/// Types: Float32, Float64, BFloat16, Float16 and the integers; operands, bias and result have the same type.
struct MatmulSpec {
  DType type = DType::Float32;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_transposed = false;                                           // the buffer holds (k, m)
  bool b_transposed = false;                                           // the buffer holds (n, k)
  int64_t lda = 0, ldb = 0, ldc = 0;                                   // distance of columns in the buffer
  int64_t a_batch_stride = 0, b_batch_stride = 0, c_batch_stride = 0;  // 0: every item reads the same operand
  bool accumulate = false;                                             // C is added to, before the epilogue
  Epilogue epilogue;                    // its arrays have m elements, along dim 0; the residual lies as C does
  ActivationLoop activation = nullptr;  // of the epilogue, unless that is relu or relu6
};

enum class ConvKind : uint8_t { forward, backward_data, backward_weights };

/// Cross-correlation in 1, 2 or 3 spatial dims; entry 0 of each array is the fastest dim (w, then h, then d).
/// Images are CWHN: (channels, w, h, d, batch) column-major, contiguous; where takes_logical says so they may be
/// `logical` instead: (w, h, d, channels, batch). Weights are logical and contiguous: (w, h, d, in_channels / groups,
/// out_channels) column-major; `flipped` says that the buffer holds the kernel of a true convolution (reversed in every
/// spatial dim), for backward_weights the result is written reversed too. Types: Float32, Float64, BFloat16.
struct ConvSpec {
  ConvKind kind = ConvKind::forward;
  DType type = DType::Float32;
  int spatial = 2;
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad_low[3] = {0, 0, 0}, pad_high[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};  // 1: dense
  bool flipped = false;
  bool logical = false;       // images stand in logical order
  bool weights_stay = false;  // most runs have the same: who runs the call keeps forms of them
  Epilogue epilogue;          // of y, or of dx as the result of a transposed one, whose channels its arrays have
  ActivationLoop activation = nullptr;  // of the epilogue, unless that is relu or relu6
};

/// Mean divides by the whole window, padding counted. Max takes the lowest finite value for padding and passes NaN on;
/// its gradient goes to the first largest element of a window (w fastest).
enum class PoolKind : uint8_t { max_forward, max_backward, mean_forward, mean_backward };
constexpr bool is_forward(PoolKind kind) { return kind == PoolKind::max_forward || kind == PoolKind::mean_forward; }

/// Pooling of images in CWHN: (channels, w, h, d, batch). In logical order each channel is an image of one channel.
/// Types: of floats.
struct PoolSpec {
  PoolKind kind = PoolKind::max_forward;
  DType type = DType::Float32;
  int spatial = 2;
  int64_t batch = 1, channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad_low[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};
};

/// The memory of one execution. Which operand is which:
///   call                    first  second  third  result
///   matmul                  A      B       bias   C         (bias: where the epilogue has one)
///   conv forward            x      w       bias   y
///   conv backward_data      dy     w       bias   dx
///   conv backward_weights   x      dy      -      dw
///   max_forward, mean_forward   x  -       -      y
///   max_backward            x      y       dy     dx
///   mean_backward           dy     -       -      dx
/// The result overlaps no operand. `workspace` has workspace_bytes() bytes, the same for begin, all chunks and finish.
struct VendorBuffers {
  const void* first = nullptr;
  const void* second = nullptr;
  const void* third = nullptr;
  void* result = nullptr;
  void* workspace = nullptr;
  const void* residual = nullptr;
  const void* forms[2] = {};     // of the first and the second operand, where they were made before (VendorCall::form)
  const void* center = nullptr;  // like the bias, where the epilogue has them
  const void* factor = nullptr;
  const void* shift = nullptr;
};

/// Another form of an operand, in which a call reads it, made of the operand's values alone: who runs a call several
/// times with the same ones may keep it. Forms of the same name have the same bytes, whichever call makes them.
struct Form {
  uint64_t name = 0;
  size_t bytes = 0;  // 0: there is none
};

/// Ranges of a result: of its items, columns and rows. Images are one matrix: (channels, all pixels of the batch), or
/// in logical order (pixels, all channels of the batch), of points (pixels, channels) for each image.
struct MatmulPart {
  int64_t first_item, last_item, first_column, last_column, first_row, last_row;
};

/// One prepared call, shared by all threads: chunks of one execution may run at the same time, and so may executions,
/// each with a workspace of its own. Workspace and scratch are aligned to 64 bytes; they may hold anything before, and
/// hold nothing of use after.
class VendorCall {
 public:
  virtual ~VendorCall() = default;
  VendorCall(const VendorCall&) = delete;
  VendorCall& operator=(const VendorCall&) = delete;

  int64_t chunks() const noexcept { return chunks_; }  // 0: there is nothing to compute
  size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  size_t scratch_bytes_per_chunk() const noexcept { return scratch_bytes_; }
  bool has_begin() const noexcept { return has_begin_; }
  bool has_finish() const noexcept { return has_finish_; }
  /// About what the call itself takes, for the budget of plans.
  virtual size_t bytes() const noexcept { return 512; }
  /// Whether running can throw.
  bool may_fail() const noexcept { return may_fail_; }
  /// What of the result has its final value when the chunk has run; nothing where that takes finish().
  virtual std::optional<MatmulPart> part_of(int64_t) const { return std::nullopt; }

  /// What each run makes of the first operand (0) or the second (1), unless it is given one.
  virtual Form form(int) const { return {}; }
  /// Makes it, on all threads; `to` is aligned to 64 bytes.
  virtual void make_form(int, const void* /*operand*/, void* /*to*/) const {}

  virtual void begin(const VendorBuffers&) const {}
  /// `scratch` has scratch_bytes_per_chunk() bytes that no other running chunk uses.
  virtual void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const = 0;
  virtual void finish(const VendorBuffers&) const {}
  /// Behind the last chunk, before finish(): whether the result is what the definition gives. A fast way to it may not
  /// know what values that are not finite give; the call says so, and another engine answers (checked.hpp).
  virtual bool sure(const VendorBuffers&) const { return true; }

  /// Who computes: "onednn", "tile", "packed", "amx", "winograd", "planes", "plain", or "rows" and "few" of the room
  /// above (cpu/row_conv.cpp, few_conv.cpp); for reports and tests.
  virtual const char* engine() const noexcept = 0;

 protected:
  VendorCall() = default;

  int64_t chunks_ = 1;
  size_t workspace_bytes_ = 0;
  size_t scratch_bytes_ = 0;
  bool has_begin_ = false;
  bool has_finish_ = false;
  bool may_fail_ = false;
};

/// Which answer prepare may choose; everything but `best` is for tests and measurements and throws where it cannot.
enum class Engine : uint8_t { best, onednn, tile, packed, amx, winograd, plain };

/// Each throws Error(dtype) for a type it does not compute, Error(argument) for a spec that breaks a rule above, and
/// Error(backend) when oneDNN refuses.
std::unique_ptr<VendorCall> prepare_matmul(const MatmulSpec& spec, Engine engine = Engine::best);
/// Whether a product takes less time when transposed operand 0 or 1 has been copied as it is read.
bool turning_pays(const MatmulSpec& spec, int operand);
/// Error(argument) for a spec that breaks a rule above.
void check_conv(const ConvSpec& spec);
/// Of images in logical order plane_conv.cpp and point_conv.cpp answer, whatever the engine asked for.
std::unique_ptr<VendorCall> prepare_conv(const ConvSpec& spec, Engine engine = Engine::best);
bool planes_can(const ConvSpec& spec);
bool points_can(const ConvSpec& spec);
/// Whether images may stand in logical order, of Float32 or Float64: where each channel has filters of its own; where
/// windows are single points one beside the other, and so convolutions products.
inline bool takes_logical(const ConvSpec& spec) { return planes_can(spec) || points_can(spec); }
std::unique_ptr<VendorCall> prepare_pool(const PoolSpec& spec);

}  // namespace rosin::engines
