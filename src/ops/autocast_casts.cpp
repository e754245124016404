// The casts of one gradient call: see autocast_casts.hpp.
#include "ops/autocast_casts.hpp"

#include <vector>

#include "base/of_thread.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"

namespace rosin {
namespace {

/// By the places of the arguments in the order of recording, which begins with them. Its memory stays with the thread.
std::vector<Array>& casts_of_thread() {
  struct Casts;
  return of_thread<std::vector<Array>, Casts>();
}

/// Arguments of nested calls may lie further off: those are converted where they are used.
constexpr uint64_t most_casts = 1 << 16;

/// Where the cast of x is kept; null where it is not.
Array* kept_cast(const Array& x) {
  Context& context = Context::current();
  const Node& node = *x.node();
  const uint64_t start = context.gradient_start.load(std::memory_order_relaxed);
  if (!context.in_gradient() || node.op != &argument_op || node.recorder != &context || node.sequence < start ||
      node.sequence - start >= most_casts) {
    return nullptr;
  }
  std::vector<Array>& casts = casts_of_thread();
  const auto at = static_cast<size_t>(node.sequence - start);
  if (at >= casts.size()) casts.resize(at + 1);
  return &casts[at];
}

}  // namespace

Array cast_once(const Array& x, DType type) {
  Array* const kept = kept_cast(x);
  if (!kept) return cast(x, type);
  if (kept->is_nothing() || kept->dtype() != type) *kept = cast(x, type);
  return *kept;
}

void forget_casts() noexcept { casts_of_thread().clear(); }

}  // namespace rosin
