// Built in two passes: the walk gives a tree with rosin's names, then each layer that the table knows takes Flux's.
// Hyper-parameters, which Flux stores and ignores when it loads, are fields of the layer or come from the line it
// prints.
#include "io/flux_state.hpp"

#include <algorithm>
#include <cstdlib>

#include <rosin/generator_state.hpp>

#include "io/flux_layers.hpp"

namespace rosin {
namespace {

using Kind = StateNode::Kind;

StateNode node_of(Kind kind) {
  StateNode node;
  node.kind = kind;
  return node;
}
StateNode whole(int64_t value) {
  StateNode node = node_of(Kind::integer);
  node.integer = value;
  return node;
}
StateNode truth(bool value) {
  StateNode node = node_of(Kind::boolean);
  node.integer = value;
  return node;
}
StateNode real32(double value) {
  StateNode node = node_of(Kind::real32);
  node.real = value;
  return node;
}
StateNode tuple_of(const std::vector<int64_t>& values) {
  StateNode node = node_of(Kind::tuple);
  for (int64_t value : values) node.children.emplace_back("", whole(value));
  return node;
}

/// Child `index` of a tuple, which grows up to it.
StateNode& item_of(StateNode& node, int64_t index) {
  const auto at = static_cast<size_t>(index);
  if (node.children.size() <= at) node.children.resize(at + 1);
  return node.children[at].second;
}
StateNode& field_of(StateNode& node, std::string_view name) {
  if (node.kind == Kind::tuple && node.children.empty()) node.kind = Kind::named;
  if (StateNode* known = node.find(name)) return *known;
  return node.children.emplace_back(name, StateNode()).second;
}

/// First pass.
class StateBuilder : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath& path) override {
    StateNode& node = place(path);
    node.kind = x.is_nothing() ? Kind::nothing : Kind::array;
    node.array = x;
  }
  void rng(const Rng& x, const ModelPath& path) override { array(generator_state(x), path); }
  bool enter(const ModelPart& part, const ModelPath& path) override {
    StateNode& node = place(path);
    node.type = part.type;
    if (part.show) node.line = part.show(part.object);
    if (part.kind == PartKind::fields) node.kind = Kind::named;
    if (part.kind == PartKind::map) node.kind = Kind::dictionary;
    if (part.type == "Chain") {
      StateNode& layers = field_of(node, "layers");
      layers.children.resize(static_cast<size_t>(part.count));
    }
    return true;
  }
  void leaf(const ModelPart& part, const ModelPath& path) override {
    StateNode& node = place(path);
    node.integer = part.integer;
    node.real = part.real;
    node.text = part.text;
    switch (part.kind) {
      case PartKind::integer: node.kind = Kind::integer; break;
      case PartKind::real: node.kind = Kind::real; break;
      case PartKind::boolean: node.kind = Kind::boolean; break;
      case PartKind::text: node.kind = Kind::text; break;
      default: node.kind = Kind::tuple; break;  // ()
    }
  }

  StateNode root = node_of(Kind::tuple);

 private:
  StateNode& place(const ModelPath& path) {
    if (path.is_root()) return root;
    StateNode& parent = place(*path.parent());
    if (path.index() < 0) return field_of(named_chain(parent), path.name());
    // Elements of a map with whole numbers as keys have names too.
    if (parent.kind == Kind::dictionary) return field_of(parent, std::to_string(path.index()));
    return item_of(parent, path.index());
  }

  /// The places that were kept for layers of a chain which turns out to have names.
  static StateNode& named_chain(StateNode& node) {
    const auto unused = [](const StateChild& child) {
      return child.first.empty() && child.second.kind == Kind::tuple && child.second.children.empty();
    };
    const bool reserved = !node.children.empty() && std::all_of(node.children.begin(), node.children.end(), unused);
    if (node.kind == Kind::tuple && reserved) node.children.clear();
    return node;
  }
};

/// The numbers after `name=` in what a layer prints: "pad=(1, 2)", "stride=2".
std::vector<int64_t> printed_numbers(const std::string& line, const std::string& name) {
  std::vector<int64_t> values;
  const size_t at = line.find(", " + name + "=");
  if (at == std::string::npos) return values;
  const char* next = line.c_str() + at + name.size() + 3;
  const bool list = *next == '(';
  if (list) ++next;
  for (;;) {
    char* end = nullptr;
    const long long value = std::strtoll(next, &end, 10);
    if (end == next) return values;
    values.push_back(value);
    if (!list || end[0] != ',') return values;
    next = end + 1;
  }
}

/// One number for each of `count` dims: those printed, repeated where there are fewer, or the usual one.
std::vector<int64_t> spread(std::vector<int64_t> values, int64_t usual, size_t count) {
  if (values.empty()) values.push_back(usual);
  std::vector<int64_t> all(count);
  const size_t each = std::max<size_t>(1, count / values.size());
  for (size_t i = 0; i < count; ++i) all[i] = values[std::min(i / each, values.size() - 1)];
  return all;
}

std::vector<int64_t> sizes_of(StateNode* node) {
  if (!node || node->kind != Kind::array) return {};
  const Shape shape = node->array.shape();
  return {shape.begin(), shape.end()};
}

bool has_array(StateNode& layer, const char* name) { return !sizes_of(layer.find(name)).empty(); }

int64_t channels_of(StateNode& layer) {
  for (const char* name : {"scale", "mean"}) {
    if (const auto sizes = sizes_of(layer.find(name)); !sizes.empty()) return sizes[0];
  }
  const size_t open = layer.line.find('(');
  return open == std::string::npos ? 0 : std::strtoll(layer.line.c_str() + open + 1, nullptr, 10);
}

StateNode window_field(StateNode& layer, std::string_view field) {
  const size_t rank = sizes_of(layer.find("weight")).size(), spatial = rank > 2 ? rank - 2 : 0;
  const auto printed = printed_numbers(layer.line, std::string(field));
  if (field == "groups") return whole(printed.empty() ? 1 : printed[0]);
  if (field == "pad") return tuple_of(spread(printed, 0, 2 * spatial));
  return tuple_of(spread(printed, field == "outpad" ? 0 : 1, spatial));
}

/// A number of the layer; where a class of that name has none, what Flux's layer has.
StateNode real_of(StateNode& layer, std::string_view name, double usual) {
  const StateNode* const found = layer.find(name);
  return real32(found && found->kind == Kind::real ? found->real : usual);
}

StateNode norm_field(StateNode& layer, std::string_view field) {
  if (field == "ϵ") return real_of(layer, "eps", 1e-5);
  if (field == "momentum") return real_of(layer, "momentum", 0.1);
  if (field == "affine") return truth(has_array(layer, "scale"));
  if (field == "track_stats") return truth(has_array(layer, "mean"));
  if (field == "chs") return whole(channels_of(layer));
  if (field == "G") {
    const size_t comma = layer.line.find(", ");
    return whole(comma == std::string::npos ? 1 : std::strtoll(layer.line.c_str() + comma + 2, nullptr, 10));
  }
  if (field == "size") return tuple_of(sizes_of(layer.find("scale")));
  return field == "λ" ? StateNode() : node_of(Kind::nothing);
}

/// LayerNorm keeps its scale and bias in a layer of its own.
StateNode diagonal(StateNode& layer) {
  if (!has_array(layer, "scale")) return {};
  StateNode scale = node_of(Kind::named);
  scale.children.emplace_back("scale", *layer.find("scale"));
  scale.children.emplace_back("bias", *layer.find("bias"));
  scale.children.emplace_back("σ", StateNode());
  return scale;
}

StateNode other_field(StateNode& layer, std::string_view type, std::string_view field) {
  if (field == "σ") return {};
  if (type.find("Conv") != std::string_view::npos || type == "CrossCor") return window_field(layer, field);
  if (type.ends_with("Norm")) return norm_field(layer, field);
  if (type == "Dropout" || type == "AlphaDropout") {
    if (field == "p" && layer.find("p")) return *layer.find("p");
    return field == "active" ? node_of(Kind::nothing) : StateNode();
  }
  const auto printed = printed_numbers(layer.line, std::string(field));
  return printed.size() == 1 ? whole(printed[0]) : tuple_of(printed);
}

/// The newest row of a layer that has all its fields; null: the class is no layer of Flux.
const FluxLayer* row_for(StateNode& node) {
  if (node.kind != Kind::named) return nullptr;
  for (const FluxLayer& row : flux_layers()) {
    if (node.type != row.type || !node.line.starts_with(std::string(row.type) + "(")) continue;
    for (uint32_t i = 0; i < listed_count(row.rosin); ++i) {
      const std::string_view name = listed_name(row.rosin, i);
      const std::string_view field = name == "*" ? "scale" : name;
      if (name != "-" && !node.find(field)) return nullptr;
    }
    return &row;
  }
  return nullptr;
}

bool is_pool(std::string_view type) { return type.ends_with("Pool"); }

StateNode part_of_layer(StateNode& node, const FluxLayer& row, uint32_t i) {
  const std::string_view name = listed_name(row.rosin, i), field = listed_name(row.flux, i);
  if (name == "*") return diagonal(node);
  if (name == "-") return other_field(node, row.type, field);
  StateNode part = *node.find(name);
  const bool norm = std::string_view(row.type).ends_with("Norm");
  if (part.kind == Kind::nothing && name == "bias" && !norm) return truth(false);
  return part;
}

/// What layers of layers look like: a chain's line is not its own.
void take_flux_names(StateNode& node) {
  for (auto& [name, child] : node.children) take_flux_names(child);
  if (is_pool(node.type) || (node.kind == Kind::named && node.children.empty() && !node.type.empty())) {
    // loadmodel! takes () for every pooling layer.
    const bool known = row_for(node) && !is_pool(node.type);
    if (!known) node = StateNode();
  }
  if (node.type == "SkipConnection" || node.type == "Parallel" || node.type == "PairwiseFusion") {
    for (const char* name : {"connection", "layers"}) {
      StateNode* part = node.find(name);
      const bool alone = part && (std::string_view(name) == "connection" || node.type == "SkipConnection");
      if (alone && part->kind == Kind::tuple) {
        StateNode only = part->children.empty() ? StateNode() : std::move(part->children[0].second);
        *part = std::move(only);
      }
    }
    return;
  }
  const FluxLayer* row = row_for(node);
  if (!row || node.type == "Chain" || node.type == "Maxout") return;
  StateNode made = node_of(Kind::named);
  for (uint32_t i = 0; i < listed_count(row->flux); ++i) {
    made.children.emplace_back(listed_name(row->flux, i), part_of_layer(node, *row, i));
  }
  node = std::move(made);
}

/// Nodes whose names are 0 ... n - 1 are tuples.
void find_tuples(StateNode& node) {
  bool counts = node.kind == Kind::named && !node.children.empty();
  for (size_t i = 0; i < node.children.size(); ++i) {
    find_tuples(node.children[i].second);
    counts = counts && node.children[i].first == std::to_string(i);
  }
  if (counts) node.kind = Kind::tuple;
}

}  // namespace

StateNode::StateNode() = default;
StateNode::StateNode(const StateNode& other) = default;
StateNode::StateNode(StateNode&& other) noexcept = default;
StateNode& StateNode::operator=(const StateNode& other) = default;
StateNode& StateNode::operator=(StateNode&& other) noexcept = default;
StateNode::~StateNode() = default;

StateNode* StateNode::find(std::string_view name) {
  for (auto& [known, child] : children) {
    if (known == name) return &child;
  }
  return nullptr;
}

StateNode flux_state(ModelView model) {
  StateBuilder builder;
  model.visit_with(builder);
  take_flux_names(builder.root);
  return std::move(builder.root);
}

StateNode nested_state(const std::vector<NamedArray>& arrays) {
  StateNode root = node_of(Kind::named);
  for (const NamedArray& entry : arrays) {
    if (entry.value.is_nothing()) continue;
    StateNode* node = &root;
    std::string_view rest = entry.name;
    for (size_t dot; (dot = rest.find('.')) != std::string_view::npos; rest.remove_prefix(dot + 1)) {
      node = &field_of(*node, rest.substr(0, dot));
    }
    StateNode& place = field_of(*node, rest);
    place.kind = Kind::array;
    place.array = entry.value;
  }
  for (auto& [name, child] : root.children) find_tuples(child);
  return root;
}

}  // namespace rosin
