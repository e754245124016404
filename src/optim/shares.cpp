// See shares.hpp.
#include "optim/shares.hpp"

#include <string>
#include <utility>
#include <vector>

#include <rosin/complex.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"

namespace rosin {

detail::Sharing::~Sharing() = default;

void assign_owners(StateTree& tree) {
  detail::Sharing* const sharing = tree.leaves.empty() ? nullptr : tree.leader().rule->sharing();
  if (!sharing) return;
  std::vector<detail::SharedParameter> parameters;
  parameters.reserve(tree.leaves.size());
  for (const StateLeaf& leaf : tree.leaves) {
    const auto bytes = static_cast<int64_t>(bytes_of(leaf.dtype, leaf.shape));
    parameters.push_back({leaf.shape.count(), bytes, leaf.rule->is_elementwise()});
  }
  const std::vector<detail::Owner> owners = sharing->owners(parameters);
  for (size_t i = 0; i < owners.size(); ++i) tree.leaves[i].owner = owners[i];
}

bool is_elsewhere(const StateLeaf& leaf) {
  return leaf.owner.process >= 0 && leaf.owner.process != leaf.rule->sharing()->process();
}

Elements own_elements(const StateLeaf& leaf) {
  const detail::Sharing& sharing = *leaf.rule->sharing();
  const int64_t begin = sharing.process() * leaf.owner.part;
  const bool is_last = sharing.process() + 1 == sharing.processes();
  return {begin, is_last ? leaf.shape.count() : begin + leaf.owner.part};
}

Array own_part(const StateLeaf& leaf, const Array& x) {
  if (!is_divided(leaf)) return x;
  const int64_t numbers = x.count() / leaf.shape.count();
  const auto [begin, end] = own_elements(leaf);
  const Array part = slice(reshape(x, {-1}), 0, begin * numbers, end * numbers);
  return numbers == 1 ? part : reshape(part, {numbers, -1});
}

void check_parts(const StateLeaf& leaf) {
  class Check : public ModelVisitor {
   public:
    explicit Check(const StateLeaf& of) : leaf_(of) {}
    void array(const Array& x, const ModelPath&) override {
      const auto [begin, end] = own_elements(leaf_);
      if (x.is_nothing() || x.count() == 1 || x.count() % (end - begin) == 0) return;
      throw Error(ErrorKind::argument,
                  "setup: a rule that says it is elementwise keeps arrays of the parameter's shape, and numbers; for " +
                      std::to_string(end - begin) + " elements of " + leaf_.text + " it keeps " + to_string(x.shape()) +
                      "; leave `elementwise` out of the rule");
    }

   private:
    const StateLeaf& leaf_;
  };
  Check check(leaf);
  if (is_divided(leaf)) std::as_const(*leaf.rule).visit_state(check, {});
}

Array with_part(const StateLeaf& leaf, const Array& x, const Array& part) {
  const int64_t numbers = x.count() / leaf.shape.count();
  const auto [begin, end] = own_elements(leaf);
  const Array all = reshape(x, {-1});
  const Array before = slice(all, 0, 0, begin * numbers), after = slice(all, 0, end * numbers, all.count());
  return reshape(concat({before, reshape(part, {-1}), after}, 0), x.shape());
}

detail::Sharing* sharing_of(const StateTree& tree) {
  if (tree.leaves.empty()) return nullptr;
  const StateLeaf& leader = tree.leader();
  if (leader.owner.process < 0 && !is_divided(leader)) return nullptr;
  return leader.rule->sharing();
}

void begin(StateLeaf& leaf, const Array& x) {
  const DeviceScope scope(*x.node());
  leaf.rule->init(is_complex(x.dtype()) ? view_as_real(x) : x);
}

}  // namespace rosin
