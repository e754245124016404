// ZeRO stage 1: each rank keeps the optimiser state of its share of the parameters and makes their steps for all. Whole
// parameters are shared out, so that rules which look at all of one (ClipNorm) are as they were.
#include <algorithm>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/error.hpp>

#include "dist/group.hpp"
#include "dist/host.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "optim/shares.hpp"

namespace rosin::distributed {
namespace {

using rosin::detail::OwnedArray;

/// The arrays that a rule keeps for a parameter.
std::vector<Array*> kept_by(StateLeaf& leaf) {
  class List : public ModelEditor {
   public:
    void array(Array& x, const ModelPath&) override {
      if (!x.is_nothing()) arrays.push_back(&x);
    }
    std::vector<Array*> arrays;
  };
  List list;
  leaf.rule->visit_state(list, {});
  return list.arrays;
}

}  // namespace

rosin::detail::Sharing* detail::sharing(const Backend& backend, const OptimizerOptions& options) noexcept {
  return options.shard ? &backend.group() : nullptr;
}

/// The largest first, each to the rank that has the fewest bytes so far.
std::vector<int> Group::owners(std::span<const int64_t> bytes) const {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<int64_t> given(static_cast<size_t>(ranks()));
  std::vector<int> owners(bytes.size());
  for (const size_t i : order) {
    const auto least = std::min_element(given.begin(), given.end());
    owners[i] = static_cast<int>(least - given.begin());
    *least += bytes[i];
  }
  return owners;
}

bool Group::agree(const Error* failed, bool holds) {
  if (ranks() == 1) {
    if (failed) throw Error(*failed);
    return holds;
  }
  const Array own = few_elements(Int64, 1), all = few_elements(Int64, ranks());
  *static_cast<int64_t*>(own.node()->data()) = failed ? static_cast<int64_t>(failed->kind()) : holds ? -1 : -2;
  const Piece piece{own, all, 1};
  run({ROSIN_COMM_ALLGATHER, "update", Int64}, {&piece, 1}, "how the steps ended");
  const auto* const kinds = static_cast<const int64_t*>(all.node()->data());
  int first = 0;
  while (first < ranks() && kinds[first] < 0) ++first;
  if (first == ranks()) return std::none_of(kinds, kinds + ranks(), [](int64_t each) { return each == -2; });
  const std::string text = text_of(*this, "update", failed ? failed->what() : "", first);
  throw Error(static_cast<ErrorKind>(kinds[first]), text + " (on rank " + std::to_string(first) + ")");
}

void Group::spread(const char* op, std::span<OwnedArray> arrays) {
  if (ranks() == 1) return;
  std::vector<Array> values;
  for (const auto& [whose, x] : arrays) values.push_back(x);
  const std::vector<Array> given = placed_together(values);
  int last = 0;
  for (const OwnedArray& each : arrays) last = std::max(last, each.owner);
  for (int owner = 0; owner <= last; ++owner) {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].owner != owner) continue;
      const Array& x = given[i];
      const Array moved = owner == rank() ? x : fresh_beside(x, x.dtype(), x.shape());
      pieces.push_back({moved, moved, x.count() * static_cast<int64_t>(size_of(x.dtype()))});
    }
    if (pieces.empty()) continue;
    const Verb verb{ROSIN_COMM_BROADCAST, op, UInt8, Reduction::sum, owner, owner < last};
    run(verb, pieces, "share of rank " + std::to_string(owner));
    auto got = pieces.begin();
    for (auto& [whose, x] : arrays) {
      if (whose != owner) continue;
      if (owner != rank()) x = placed_like(got->receive, x);
      ++got;
    }
  }
}

State gathered(const State& state) {
  State whole = state;
  StateTree* const tree = whole.tree();
  rosin::detail::Sharing* const sharing = tree ? sharing_of(*tree) : nullptr;
  if (!sharing) return whole;
  std::vector<Array*> places;
  std::vector<OwnedArray> arrays;
  for (StateLeaf& leaf : tree->leaves) {
    if (is_elsewhere(leaf)) begin(leaf, zeros(leaf.shape, leaf.dtype));
    for (Array* x : kept_by(leaf)) {
      places.push_back(x);
      // (Counters and what is elsewhere are numbers and zeros of the host: all come there.)
      arrays.push_back({leaf.owner, is_scalar(*x->node()) ? *x : host_array(*x)});
    }
  }
  sharing->spread("gathered", arrays);
  for (size_t i = 0; i < places.size(); ++i) {
    if (arrays[i].owner != sharing->process()) *places[i] = std::move(arrays[i].value);
  }
  for (StateLeaf& leaf : tree->leaves) leaf.owner = -1;
  return whole;
}

State sharded(const State& state) {
  State own = state;
  StateTree* const tree = own.tree();
  if (tree) assign_owners(*tree);
  if (!tree || !sharing_of(*tree)) {
    throw Error(ErrorKind::argument,
                "sharded: the state must be one that ranks share out; its rule does not; make it with "
                "setup(Optimizer(backend, rule, {.shard = true}), model)");
  }
  for (StateLeaf& leaf : tree->leaves) {
    if (!is_elsewhere(leaf)) continue;
    for (Array* x : kept_by(leaf)) *x = Array();
  }
  return own;
}

State synchronize(const Backend& backend, const State& state, RootOptions options) {
  State copy = state;
  if (!copy.tree() || !sharing_of(*copy.tree())) detail::synchronize_arrays(backend, copy, options.root);
  return copy;
}

void check_synchronized(const Backend& backend, const State& state) {
  if (!state.tree() || !sharing_of(*state.tree())) detail::check_synchronized(backend, state);
}

}  // namespace rosin::distributed
