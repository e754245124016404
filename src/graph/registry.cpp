// The registry: every op, in the order of its making.
#include <deque>

#include <rosin/error.hpp>

#include "graph/hooks.hpp"
#include "graph/op.hpp"

namespace rosin {

Hooks hooks;

namespace {

struct Registry {
  std::deque<Op> ops;  // stable addresses
  std::vector<const Op*> list;
};

// Never destroyed: globals of the user may record in their destructors.
Registry& the_registry() {
  static Registry* registry = new Registry;
  return *registry;
}

}  // namespace

const std::vector<const Op*>& registry() { return the_registry().list; }

Op* register_op(const Op& op) {
  Registry& all = the_registry();
  all.ops.push_back(op);
  Op* made = &all.ops.back();
  made->id = static_cast<uint16_t>(all.list.size() + 1);
  all.list.push_back(made);
  return made;
}

const Op* find_op(std::string_view name) {
  for (const Op* op : registry()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace rosin
