// The registry: every op, in the order of its making.
#include <deque>

#include <rosin/error.hpp>

#include "graph/hooks.hpp"
#include "graph/kinds.hpp"

namespace rosin {

Hooks hooks;

namespace {

struct Registry {
  std::deque<Op> ops;  // stable addresses
  std::vector<const Op*> list;
  std::vector<std::pair<Array (*)(const Array&), std::string_view>> functions;
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

bool name_function(Array (*function)(const Array&), std::string_view name) {
  the_registry().functions.emplace_back(function, name);
  return true;
}

std::string_view name_of(Array (*function)(const Array&)) noexcept {
  for (const auto& [named, name] : the_registry().functions) {
    if (named == function) return name;
  }
  return {};
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (const auto& [function, name] : the_registry().functions) names.push_back(name);
  return names;
}

Op& Op::called(Array (*function)(const Array&), std::string_view shown) {
  name_function(function, shown.empty() ? name : shown);
  return *this;
}

void throw_unknown(const Op& op, std::string_view who) {
  std::string text(op.name);
  text.append(": ops of this kind and form must be known to ").append(who);
  text.append("; got one of the kind ").append(info(op.kind).name).append("; report it");
  throw Error(ErrorKind::internal, text);
}

const Op* find_op(std::string_view name) {
  for (const Op* op : registry()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace rosin
