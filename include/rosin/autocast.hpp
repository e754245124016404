// Autocast: which ops compute in a half type and which in Float32, without a change to the model, whose parameters stay
// Float32. What it does is recorded as ordinary casts. Read next: docs/mixed_precision.md, loss_scale.hpp.
//
//   auto [loss, grad] = withgradient(
//       [&](const Model& m) {
//         const auto scope = autocast(BFloat16);
//         return logitcrossentropy(m(x), y);
//       },
//       model);
#pragma once

#include <cstdint>
#include <utility>

#include <rosin/dtype.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// The absence of a value: autocast(nothing).
struct Nothing {};
inline constexpr Nothing nothing;

/// While it lives, this thread records by the policy of its type; the innermost of several holds.
class ROSIN_API Autocast {
 public:
  explicit Autocast(DType type);
  explicit Autocast(Nothing) noexcept;
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  DType outer_;
};

/// A scope in which ops choose their types by family, as PyTorch's autocast has them:
///   half type   matmul, einsum, convolutions, attention, and the layers made of them with their biases: Float32
///               operands are converted, sums are kept in Float32 and rounded once;
///   Float32     losses, softmax and its kin, sums, means and other statistics, normalisation (LayerNorm, GroupNorm,
///               RMSNorm), exp, log, pow and others that lose much by rounding: halves are converted;
///   widest      all others: where two float types meet in an op, the result has the wider one, Float32 for Float16
///               beside BFloat16. BatchNorm and InstanceNorm give the type of their input, with statistics in Float32.
/// Float64, integers and complex numbers stay as they are. Inside a gradient call a parameter is converted once. A
/// gradient has the type of what it belongs to: that of a Float32 parameter is Float32; the walk back itself computes
/// in the types that were recorded, wherever it stands. Error (dtype): `type` is neither Float16 nor BFloat16.
/// Source: PyTorch, Automatic Mixed Precision, op lists.
[[nodiscard]] inline Autocast autocast(DType type) { return Autocast(type); }
/// Ops as they are without any scope.
[[nodiscard]] inline Autocast autocast(Nothing none) { return Autocast(none); }
/// The half type of the innermost scope of this thread; Float32 where there is none.
ROSIN_API DType autocast_type() noexcept;

/// f() in the scope: Array y = with(autocast(BFloat16), [&] { return model(x); });
template <class F> decltype(auto) with(const Autocast&, F&& f) { return std::forward<F>(f)(); }

}  // namespace rosin
