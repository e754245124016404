// A model as Flux.state has it: named tuples with Flux's names in Flux's order, tuples, arrays, numbers, and () for
// functions. `Flux.loadmodel!` takes it. Read next: flux_state.cpp, bson_writer.hpp (who writes it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/model.hpp>

namespace rosin {

struct StateChild;

struct StateNode {
  enum class Kind : uint8_t {
    named,       // a named tuple
    tuple,       // children in order, their names are not used; without any: ()
    dictionary,  // names in no order
    texts,       // a vector of texts
    array,
    boolean,
    integer,
    real,
    real32,
    text,
    nothing
  };

  StateNode();
  StateNode(const StateNode& other);
  StateNode(StateNode&& other) noexcept;
  StateNode& operator=(const StateNode& other);
  StateNode& operator=(StateNode&& other) noexcept;
  ~StateNode();

  Kind kind = Kind::tuple;
  std::vector<StateChild> children;
  Array array;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::string type;  // of a class, while the tree is built
  std::string line;  // what it prints

  StateNode* find(std::string_view name);
};

struct StateChild {
  StateChild() = default;
  StateChild(std::string_view name, StateNode node) : first(name), second(std::move(node)) {}

  std::string first;
  StateNode second;
};

/// The state of a model; what is no layer of Flux keeps its own fields.
StateNode flux_state(ModelView model);
/// Named arrays ("layers.0.weight") as nested named tuples and tuples.
StateNode nested_state(const std::vector<NamedArray>& arrays);

}  // namespace rosin
