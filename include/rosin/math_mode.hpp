// Math modes: how exactly devices compute. Read next: docs/cuda.md (what each costs in ulp, measured).
#pragma once

#include <cstdint>
#include <utility>

#include <rosin/export.hpp>

namespace rosin {

/// What a device may do for speed. The CPU, OpenCL devices that are no GPUs and the reference device take `exact` by
/// themselves, GPUs `standard`. The CPU computes every mode as `exact`, so a mode changes nothing there. An ulp is the
/// distance to the next number of the type.
///   usual     what the program's mode says; of the program: what the device takes by itself.
///   exact     each step rounds by itself, as its definition says: x*y + z twice, a division as IEEE 754 has it, halves
///             at every op; products of Float32 are computed in Float32. Kernels of rosin's own give the same bits on
///             every device; libraries add in their own order.
///   standard  what is computed together may round less often: x*y + z once, and halves once where a library adds a
///             bias or a number of times the product. Kernels for Float16 and BFloat16 take the device's quick exp,
///             tanh and quotients, which costs them at most 2 ulp more. Float32 and Float64 lose nothing: their ops
///             keep the bounds of `exact`.
///   fast      besides, libraries and matrix units multiply Float32 as TF32 (10 bits of fraction, summed in Float32:
///             each factor is off by 2^-11 of itself), and kernels take the quick functions for Float32 as well: exp(x)
///             is off by 2 + 2|x| ulp, quotients by 4, tanh by 2^-10 of the value, which is 2^13 ulp; results below
///             2^-126 may be 0. Float64 is computed as in `standard`.
enum class MathMode : uint8_t { usual, exact, standard, fast };

/// The mode of the program, for all threads: of what is recorded outside of `with` and not computed yet, and of what is
/// recorded from now on. Modes that take turns have plans of their own: nothing is planned or compiled anew.
ROSIN_API void math_mode(MathMode mode);
/// The mode that this thread records in: that of the innermost `with`, else that of the program; `usual` where neither
/// says anything.
ROSIN_API MathMode math_mode() noexcept;

namespace detail {

/// What this thread records while it lives is computed in that mode.
class ROSIN_API MathModeScope {
 public:
  explicit MathModeScope(MathMode mode);
  ~MathModeScope();
  MathModeScope(const MathModeScope&) = delete;
  MathModeScope& operator=(const MathModeScope&) = delete;

 private:
  MathMode outer_;
};

}  // namespace detail

/// f(), whose ops are computed in `mode`, whenever that happens: the mode belongs to what is recorded, by this thread,
/// not to the moment at which it is computed. Gradients of these ops are in the same mode, wherever the walk back
/// stands; what update() records is in the mode that holds there. The innermost of several counts; `usual` inside
/// another one means the program's mode again. Example: Array y = with(MathMode::exact, [&] { return model(x); });
template <class F> decltype(auto) with(MathMode mode, F&& f) {
  const detail::MathModeScope scope(mode);
  return std::forward<F>(f)();
}

}  // namespace rosin
