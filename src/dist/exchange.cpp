// What training shares: the gradients of a step, and the observations. Read next: synchronize.cpp.
#include <rosin/distributed.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "dist/buckets.hpp"
#include "dist/group.hpp"
#include "dist/host.hpp"
#include "dist/words.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "optim/shares.hpp"
#include "optim/step.hpp"

namespace rosin::distributed {
namespace {

/// What is sent of each gradient: it says what messages there are.
class GradientList : public ListToAgreeOn {
 public:
  GradientList(std::span<const rosin::detail::NamedGradient> gradients, std::span<const Array> sent)
      : gradients_(gradients), sent_(sent) {}
  uint64_t hash() const override {
    uint64_t hash = sent_.size();
    for (size_t i = 0; i < sent_.size(); ++i) {
      hash = mix(mix(hash, hash_of(gradients_[i].parameter)), hash_of(sent_[i]));
    }
    return hash;
  }
  std::string text() const override {
    std::string text;
    for (size_t i = 0; i < sent_.size(); ++i) text += described(gradients_[i].parameter, sent_[i]) + "\n";
    return text;
  }

 private:
  std::span<const rosin::detail::NamedGradient> gradients_;
  std::span<const Array> sent_;
};

Array as_sent(const Array& gradient, const OptimizerOptions& options) {
  return options.dtype && is_float(gradient.dtype()) ? cast(gradient, *options.dtype) : gradient;
}

/// Where they are, if that is one place, and pending, so that messages can go while the rest is computed.
std::vector<Array> as_given(const std::vector<Array>& sent) {
  return are_together(sent) ? sent : placed_together(sent);
}

/// What a rank says when all agree on what they send; what one of them says holds for all.
enum Says : uint64_t {
  no_common = 1,    // the sums do not suit memory in common
  on_device = 2,    // a device has its run, instead of the CPU, which computes later
  refused = 4,      // a device does not take it, or there is no memory
  needs_memory = 8  // what is made of the sums takes memory that may not be there
};

/// What fails on a device is thrown on all ranks: before anything is sent, or by the end of its run, as checks find it.
/// They agree on that while the last messages are under way; a rank that does not come is named by that.
std::vector<Array> agreed_sums(Group& group, Buckets& buckets, const GradientList& list) {
  const std::optional<Error> error = error_in([&] { buckets.begin(); });
  Step& step = Step::of_thread();
  uint64_t own = 0;
  if (!buckets.suit_common()) own |= no_common;
  if (error) own |= refused;
  if (buckets.are_on_device()) own |= on_device;
  if (!step.needs_no_memory) own |= needs_memory;
  const uint64_t all = require_same(group, "update", list, "every rank must have gradients of the same parameters",
                                    "let every rank compute the same loss of the same model", own);
  if (all & refused) group.agree(error ? &*error : nullptr, true);
  std::vector<Array> summed = buckets.sums(!(all & no_common));
  step.is_agreed_on = all & needs_memory;
  if (!(all & on_device)) return summed;
  const std::optional<Error> found = error_in([&] { agreed(group, [&] { return buckets.look(), true; }); });
  const std::optional<Error> lost = error_in([&] { group.settle("update"); });
  if (found) throw Error(*found);
  if (lost) throw Error(*lost);
  return summed;
}

}  // namespace

void detail::check_options(const OptimizerOptions& options) {
  if (!options.dtype || is_float(*options.dtype)) return;
  throw Error(ErrorKind::argument, std::string("Optimizer: gradients are sent in a floating type; got ") +
                                       to_string(*options.dtype) + "; BFloat16 halves what is sent of Float32");
}

void detail::check_whole(const OptimizerOptions& options) {
  if (!options.shard) return;
  throw Error(ErrorKind::argument,
              "Optimizer: gradients that are shared out are on no rank together; got a rule that looks at all of them "
              "and {.shard = true}; leave one of both, or clip with ClipNorm");
}

void detail::check_inside(const OptimizerOptions& options) {
  if (!options.shard && options.statistics == Statistics::own) return;
  throw Error(ErrorKind::argument,
              "Optimizer: shard and statistics are options of the outermost rule; it is inside another one; "
              "write Optimizer(backend, OptimiserChain(...), {.shard = true})");
}

void detail::exchange(const Backend& backend, std::span<rosin::detail::NamedGradient> gradients,
                      const OptimizerOptions& options) {
  Group& group = backend.group();
  if (group.ranks() == 1) return;
  std::vector<Array> sent;
  for (const auto& [name, g, owner] : gradients) sent.push_back(as_sent(g, options));
  Buckets buckets(group, gradients, as_given(sent));
  const std::vector<Array> summed = agreed_sums(group, buckets, GradientList(gradients, sent));
  Step::of_thread().companions = &group;
  for (size_t i = 0; i < gradients.size(); ++i) {
    Array& g = gradients[i].gradient;
    if (summed[i].is_nothing()) g = Array();
    else g = cast(placed_like(summed[i], g), g.dtype()) * (1.0 / group.ranks());
  }
}

void detail::exchange_statistics(const Backend& backend, std::span<rosin::detail::NamedGradient> written,
                                 const OptimizerOptions& options) {
  if (options.statistics == Statistics::averaged) exchange(backend, written, {});
}

void detail::show(const Backend& backend, RuleVisitor& visitor) { visitor.label(backend.group().name() + " backend"); }

void detail::show(const OptimizerOptions& options, RuleVisitor& visitor) {
  if (options.dtype) visitor.label("dtype = " + std::string(to_string(*options.dtype)));
  if (options.shard) visitor.label("shard = true");
  if (options.statistics == Statistics::averaged) visitor.label("statistics = averaged");
}

Array detail::averaged(const Backend& backend, const Array& gradient, const OptimizerOptions& options) {
  if (Step::of_thread().is_exchanged) return gradient;
  check_inside(options);
  return cast(allreduce(backend, as_sent(gradient, options), avg), gradient.dtype());
}

std::vector<int64_t> detail::shard(const Backend& backend, int64_t n) {
  const int64_t ranks = backend.group().ranks(), share = (n + ranks - 1) / ranks;
  const int64_t begin = std::min(backend.group().rank() * share, n), end = std::min(begin + share, n);
  std::vector<int64_t> indices;
  for (int64_t i = begin; i < end; ++i) indices.push_back(i);
  return indices;
}

}  // namespace rosin::distributed
