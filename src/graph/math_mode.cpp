// The math modes of the program and of threads; nodes carry what their thread was in. Read next: recorded_in.hpp.
#include "graph/math_mode.hpp"

#include <atomic>

#include "graph/context.hpp"

namespace rosin {
namespace {

std::atomic<MathMode> of_program{MathMode::usual};

}  // namespace

MathMode program_math_mode() noexcept { return of_program.load(std::memory_order_relaxed); }

void math_mode(MathMode mode) { of_program.store(mode, std::memory_order_relaxed); }

MathMode math_mode() noexcept {
  const Context* const here = Context::current_or_null();
  const MathMode recorded = here ? here->recorded_in.mode() : MathMode::usual;
  return recorded == MathMode::usual ? program_math_mode() : recorded;
}

detail::MathModeScope::MathModeScope(MathMode mode) : outer_(Context::current().recorded_in.mode()) {
  Context& context = Context::current();
  context.recorded_in = context.recorded_in.with(mode);
}

detail::MathModeScope::~MathModeScope() {
  Context& context = Context::current();
  context.recorded_in = context.recorded_in.with(outer_);
}

}  // namespace rosin
