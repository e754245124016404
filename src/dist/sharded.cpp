// ZeRO stage 1: each rank keeps the optimiser state of its share of the parameters and makes their steps for all.
// Parameters stay whole unless a rank would keep too much: so rules that look at all of one (ClipNorm) are as they
// were, and small ones are in one message.
#include <algorithm>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "dist/group.hpp"
#include "dist/host.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "optim/shares.hpp"

namespace rosin::distributed {
namespace {

using rosin::detail::OwnedArray;
using rosin::detail::Owner;
using rosin::detail::SharedParameter;

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

/// Which rank keeps what: first each its part of those that are divided, then whole ones, the largest first, each to
/// the rank that has the fewest bytes so far.
class Distribution {
 public:
  Distribution(std::span<const SharedParameter> parameters, int ranks)
      : parameters_(parameters), order_(parameters.size()), owners_(parameters.size()),
        given_(static_cast<size_t>(ranks)) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return parameters[a].bytes > parameters[b].bytes; });
  }

  /// Divides the largest that can be, as long as a rank has much more than its share.
  std::vector<Owner> balanced() {
    give();
    for (const size_t i : order_) {
      if (is_balanced() || parameters_[i].bytes < least_divided) break;
      if (!parameters_[i].divides) continue;
      owners_[i] = {-1, parameters_[i].count / ranks() / aligned * aligned};
      give();
    }
    return owners_;
  }

 private:
  static constexpr int64_t least_divided = int64_t{1} << 16;  // bytes
  static constexpr int64_t aligned = 32;                      // elements: parts begin where rows of vectors do
  static constexpr double allowed = 1.1;                      // times the average

  int64_t ranks() const { return static_cast<int64_t>(given_.size()); }
  bool is_balanced() const {
    const int64_t most = *std::max_element(given_.begin(), given_.end());
    const double average =
        static_cast<double>(std::accumulate(given_.begin(), given_.end(), int64_t{0})) / static_cast<double>(ranks());
    return static_cast<double>(most) <= allowed * average;
  }
  void give() {
    std::fill(given_.begin(), given_.end(), 0);
    for (const size_t i : order_) {
      if (owners_[i].part == 0) continue;
      const auto& [count, bytes, divides] = parameters_[i];
      const int64_t part = owners_[i].part * (bytes / count);
      for (int64_t& to_one : given_) to_one += part;
      given_.back() += bytes - ranks() * part;
    }
    for (const size_t i : order_) {
      if (owners_[i].part != 0) continue;
      const auto least = std::min_element(given_.begin(), given_.end());
      owners_[i].process = static_cast<int>(least - given_.begin());
      *least += parameters_[i].bytes;
    }
  }

  std::span<const SharedParameter> parameters_;
  std::vector<size_t> order_;
  std::vector<Owner> owners_;
  std::vector<int64_t> given_;  // bytes, to each rank
};

}  // namespace

rosin::detail::Sharing* detail::sharing(const Backend& backend, const OptimizerOptions& options) noexcept {
  return options.shard ? &backend.group() : nullptr;
}

std::vector<Owner> Group::owners(std::span<const SharedParameter> parameters) const {
  return Distribution(parameters, ranks()).balanced();
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
  for (const OwnedArray& each : arrays) values.push_back(each.value);
  const std::vector<Array> given = placed_together(values);
  std::vector<std::vector<Piece>> of_owner(static_cast<size_t>(ranks()));
  std::vector<Piece> of_each;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [owner, part] = arrays[i].owner;
    const Array& x = given[i];
    const auto element = static_cast<int64_t>(size_of(x.dtype())), bytes = x.count() * element;
    const int64_t own = part * element, parts = ranks() * own;
    const Array to = part > 0 || owner == rank() ? x : fresh_beside(x, x.dtype(), x.shape());
    if (part == 0) of_owner[static_cast<size_t>(owner)].push_back({to, to, bytes});
    else of_each.push_back({to, to, own, rank() * own, 0});
    if (part > 0 && parts < bytes) of_owner.back().push_back({to, to, bytes - parts, parts, parts});
    arrays[i].value = to;
  }
  const Verb gather{ROSIN_COMM_ALLGATHER, op, UInt8, Reduction::sum, 0, true};
  if (!of_each.empty()) run(gather, of_each, "parts of all ranks");
  for (int owner = 0; owner < ranks(); ++owner) {
    const std::vector<Piece>& pieces = of_owner[static_cast<size_t>(owner)];
    const Verb give{ROSIN_COMM_BROADCAST, op, UInt8, Reduction::sum, owner, true};
    if (!pieces.empty()) run(give, pieces, "share of rank " + std::to_string(owner));
  }
  settle(op);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool is_own = arrays[i].owner.part == 0 && arrays[i].owner.process == rank();
    arrays[i].value = is_own ? values[i] : placed_like(arrays[i].value, values[i]);
  }
}

namespace {

/// A leaf's state as that of the whole parameter, and which arrays of it are to come from other ranks.
void list_whole(StateLeaf& leaf, std::vector<Array*>& places, std::vector<OwnedArray>& arrays) {
  std::vector<Array> parts;
  if (is_divided(leaf)) {
    for (const Array* x : kept_by(leaf)) parts.push_back(*x);
  }
  if (is_divided(leaf) || is_elsewhere(leaf)) begin(leaf, zeros(leaf.shape, leaf.dtype));
  const std::vector<Array*> kept = kept_by(leaf);
  for (size_t i = 0; i < kept.size(); ++i) {
    Array& x = *kept[i];
    if (is_divided(leaf) && parts[i].count() == 1) {  // numbers, the same on all ranks
      x = parts[i];
      continue;
    }
    // (Counters and what is elsewhere are numbers and zeros of the host: all come there.)
    const Array own = is_divided(leaf) ? with_part(leaf, x, host_array(parts[i])) : x;
    const int64_t numbers = is_divided(leaf) ? x.count() / leaf.shape.count() : 0;
    places.push_back(&x);
    arrays.push_back({{leaf.owner.process, leaf.owner.part * numbers}, is_scalar(*own.node()) ? own : host_array(own)});
  }
}

}  // namespace

State gathered(const State& state) {
  State whole = state;
  StateTree* const tree = whole.tree();
  rosin::detail::Sharing* const sharing = tree ? sharing_of(*tree) : nullptr;
  if (!sharing) return whole;
  std::vector<Array*> places;
  std::vector<OwnedArray> arrays;
  for (StateLeaf& leaf : tree->leaves) list_whole(leaf, places, arrays);
  sharing->spread("gathered", arrays);
  for (size_t i = 0; i < places.size(); ++i) {
    if (arrays[i].owner.process != sharing->process()) *places[i] = std::move(arrays[i].value);
  }
  for (StateLeaf& leaf : tree->leaves) leaf.owner = {};
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
    for (Array* x : kept_by(leaf)) {
      if (is_elsewhere(leaf)) *x = Array();
      else if (is_divided(leaf) && x->count() > 1) *x = own_part(leaf, *x);
    }
  }
  eval();
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
