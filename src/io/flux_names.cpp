// One function says what the parts of a value are called here; listing and finding both stand on it.
#include "io/flux_names.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "io/flux_layers.hpp"
#include "io/julia_arrays.hpp"

namespace rosin {
namespace {

constexpr size_t most_entries = size_t{1} << 20;
constexpr int deepest = 500;

/// A part of a value: by name, by index, or (fields without names) by position.
struct Part {
  enum class By : uint8_t { name, index, position };
  By by;
  std::string name;
  uint32_t index;
  uint32_t value;
  FluxStorage storage = FluxStorage::plain;
  double eps = 0;
  bool alone = false;  // here the only element of a list

  std::string step() const { return (by == By::name ? name : std::to_string(index)) + (alone ? ".0" : ""); }
};

/// What an array or a structure is without its wrappers.
struct Unwrapped {
  uint32_t value;
  FluxStorage storage = FluxStorage::plain;
};

/// Which child of a wrapper holds what it wraps; nothing: it is none.
std::optional<uint32_t> wrapped_child(const JuliaTree& tree, const JuliaValue& value) {
  // In JLD2 a tracked array in a layer has no type of its own.
  const bool tracked = value.kind == JuliaKind::named && value.count == 3 && tree.named_child(value, "tracker") &&
                       tree.named_child(value, "grad");
  if (tracked) return tree.named_child(value, "data");
  if (value.kind != JuliaKind::structure) return std::nullopt;
  struct Wrapper {
    std::string_view type;
    std::string_view field;
    uint32_t position;
  };
  constexpr Wrapper wrappers[] = {
      {"TrackedArray", "data", 1}, {"Params", "order", 0},     {"Buffer", "data", 0},
      {"Adjoint", "parent", 0},    {"Transpose", "parent", 0},
  };
  const std::string& type = tree.text_of(value);
  const std::string_view last = std::string_view(type).substr(type.rfind('.') + 1);
  const bool known = type.starts_with("Tracker.") || type.starts_with("Flux.Tracker.") || type.starts_with("Zygote.") ||
                     type.starts_with("LinearAlgebra.");
  if (!known) return std::nullopt;
  for (const Wrapper& wrapper : wrappers) {
    if (last != wrapper.type) continue;
    if (const auto named = tree.named_child(value, wrapper.field)) return named;
    if (wrapper.position < value.count) return tree.child(value, wrapper.position).value;
  }
  return std::nullopt;
}

Unwrapped unwrapped(const JuliaTree& tree, uint32_t at) {
  Unwrapped found{at};
  for (int i = 0; i < 8; ++i) {
    const JuliaValue& value = tree.values[found.value];
    const auto inner = wrapped_child(tree, value);
    if (!inner) break;
    const std::string& type = tree.text_of(value);
    const bool turns = type.ends_with("Adjoint") || type.ends_with("Transpose");
    if (turns) found.storage = found.storage == FluxStorage::turned ? FluxStorage::plain : FluxStorage::turned;
    found.value = *inner;
  }
  return found;
}

bool is_absent(const JuliaTree& tree, const JuliaValue& value) {
  const bool zeros = value.kind == JuliaKind::structure && tree.text_of(value) == "Flux.Zeros";
  return zeros || value.kind == JuliaKind::nothing || (value.kind == JuliaKind::boolean && value.integer == 0);
}

/// Flux 0.6 kept the deviation where later versions keep the variance, in as many fields. Its parameters are
/// Flux.Tracker's.
bool has_deviation(const JuliaTree& tree, const JuliaValue& layer, const FluxLayer& row) {
  if (std::string_view(row.type) != "BatchNorm" || layer.count != 8) return false;
  for (uint32_t i = 0; i < layer.count; ++i) {
    const JuliaValue& field = tree.values[tree.child(layer, i).value];
    if (field.kind == JuliaKind::structure && tree.text_of(field).starts_with("Flux.Tracker.")) return true;
  }
  return false;
}

double eps_of(const JuliaTree& tree, const JuliaValue& layer) {
  const auto named = tree.named_child(layer, "ϵ");
  const JuliaValue& eps = tree.values[named ? *named : tree.child(layer, 5).value];
  return eps.kind == JuliaKind::real ? eps.real : 0;
}

std::vector<Part> parts_of(const JuliaTree& tree, uint32_t at);

/// Child i of a layer under the name that its row gives it.
void add_layer_part(std::vector<Part>& parts, const JuliaTree& tree, const JuliaValue& layer, const FluxLayer& row,
                    uint32_t i) {
  const JuliaChild& child = tree.child(layer, i);
  uint32_t column = i;
  if (child.name != JuliaTree::no_name) {
    for (column = 0; listed_name(row.flux, column) != tree.text(child.name);) ++column;
  }
  const std::string_view name = listed_name(row.rosin, column);
  if (name == "-") return;
  if (name == "*") {
    for (Part& part : parts_of(tree, unwrapped(tree, child.value).value)) {
      if (part.by == Part::By::name) parts.push_back(std::move(part));
    }
    return;
  }
  Part part{Part::By::name, std::string(name), i, child.value};
  if (name.ends_with(".0")) part.name.resize(name.size() - 2), part.alone = true;
  const bool deviation = name == "deviation" || (name == "variance" && has_deviation(tree, layer, row));
  if (deviation) {
    part.name = "variance";
    part.storage = FluxStorage::deviation;
    part.eps = eps_of(tree, layer);
  }
  parts.push_back(std::move(part));
}

/// Elements of a tuple in JLD2 are called "1", "2", and those without content are missing.
uint32_t element_index(const JuliaTree& tree, const JuliaChild& child, uint32_t position) {
  if (child.name == JuliaTree::no_name) return position;
  const std::string& name = tree.text(child.name);
  const bool number = !name.empty() && name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos;
  return number && name != "0" ? static_cast<uint32_t>(std::stoul(name)) - 1 : position;
}

std::vector<Part> parts_of(const JuliaTree& tree, uint32_t at) {
  const JuliaValue& value = tree.values[at];
  std::vector<Part> parts;
  if (const FluxLayer* row = find_layer(tree, value)) {
    for (uint32_t i = 0; i < value.count; ++i) add_layer_part(parts, tree, value, *row, i);
    return parts;
  }
  const bool elements = value.kind == JuliaKind::list || value.kind == JuliaKind::tuple;
  for (uint32_t i = 0; i < value.count; ++i) {
    const JuliaChild& child = tree.child(value, i);
    if (elements) parts.push_back({Part::By::index, {}, element_index(tree, child, i), child.value});
    else if (child.name == JuliaTree::no_name) parts.push_back({Part::By::position, {}, i, child.value});
    else parts.push_back({Part::By::name, tree.text(child.name), i, child.value});
  }
  return parts;
}

/// Goes through all parts of a value, those that contain themselves once.
class Lister {
 public:
  Lister(const JuliaTree& tree, const std::string& path) : tree_(tree), path_(path), open_(tree.values.size()) {}

  void list(uint32_t at, const std::string& name, FluxStorage storage, double eps, int depth) {
    const Unwrapped inner = unwrapped(tree_, at);
    const JuliaValue& value = tree_.values[inner.value];
    if (++seen_ > most_entries)
      refuse_at(path_, 0, "a file has at most 2^20 values, shared ones counted", "it has more");
    if (depth > deepest) refuse_at(path_, 0, "values are nested at most 500 deep", "these are deeper");
    if (is_array_or_number(value)) {
      const bool bias = name == "bias" || name.ends_with(".bias");
      if (!(bias && is_absent(tree_, value))) {
        entries.push_back({name, inner.value, storage == FluxStorage::plain ? inner.storage : storage, eps});
      }
      return;
    }
    if (value.count == 0 || open_[inner.value]) return;
    open_[inner.value] = true;
    for (const Part& part : parts_of(tree_, inner.value)) {
      list(part.value, name.empty() ? part.step() : name + "." + part.step(), part.storage, part.eps, depth + 1);
    }
    open_[inner.value] = false;
  }

  std::vector<FluxEntry> entries;

 private:
  const JuliaTree& tree_;
  const std::string& path_;
  std::vector<bool> open_;
  size_t seen_ = 0;
};

/// One step to a place of a model.
struct Step {
  std::string name;  // empty: an index
  int64_t index;
  uint32_t position;  // of the field in its class
};

struct Place {
  std::string name;  // as in files
  std::vector<Step> steps;
  std::string owner;  // type of the class that has it
  bool trained;
  Array value;  // now; nothing for a generator
};

/// The places of a model with the positions of their fields.
class ListPlaces : public ModelEditor {
 public:
  void array(Array& x, const ModelPath& path) override {
    note(path);
    if (!x.is_nothing()) add(path, path.trainable(), x);
  }
  void rng(Rng&, const ModelPath& path) override {
    note(path);
    add(path, false, {});
  }
  void mode(LayerMode&, const ModelPath& path) override { note(path); }
  void leaf(const ModelPart&, const ModelPath& path) override { note(path); }
  bool enter(const ModelPart& part, const ModelPath& path) override {
    note(path);
    types_.emplace_back(part.type);
    return true;
  }
  void leave(const ModelPart&, const ModelPath&) override { types_.pop_back(); }

  std::vector<Place> places;

 private:
  void note(const ModelPath& path) {
    if (path.is_root()) return;
    note(*path.parent());
    if (path.index() < 0) position_of(path);
  }
  uint32_t position_of(const ModelPath& path) {
    std::vector<std::string>& names = fields_[path.parent()->file_text()];
    const auto found = std::find(names.begin(), names.end(), path.name());
    if (found != names.end()) return static_cast<uint32_t>(found - names.begin());
    names.emplace_back(path.name());
    return static_cast<uint32_t>(names.size() - 1);
  }
  void add(const ModelPath& path, bool trained, const Array& value) {
    Place place{path.file_text(), {}, types_.empty() ? std::string() : types_.back(), trained, value};
    for (const ModelPath* step = &path; !step->is_root(); step = step->parent()) {
      place.steps.push_back({std::string(step->name()), step->index(), step->index() < 0 ? position_of(*step) : 0});
    }
    std::reverse(place.steps.begin(), place.steps.end());
    places.push_back(std::move(place));
  }

  std::map<std::string, std::vector<std::string>> fields_;  // of each path, in their order
  std::vector<std::string> types_;
};

/// What the file has for a place.
struct Found {
  uint32_t value;
  FluxStorage storage;
  double eps;
};

class Finder {
 public:
  explicit Finder(const JuliaTree& tree) : tree_(tree) {}

  std::optional<Found> find(uint32_t start, const Place& place) {
    Found found{unwrapped(tree_, start).value, FluxStorage::plain, 0};
    bool alone = false;
    for (const Step& step : place.steps) {
      // Where the file has one thing, rosin may have a list of one (SkipConnection).
      const bool first = step.name.empty() && step.index == 0;
      if (first && (std::exchange(alone, false) || find_layer(tree_, tree_.values[found.value]))) continue;
      const Part* part = choose(found.value, step);
      if (!part) return std::nullopt;
      alone = part->alone;
      const Unwrapped inner = unwrapped(tree_, part->value);
      found = {inner.value, part->storage == FluxStorage::plain ? inner.storage : part->storage, part->eps};
    }
    const JuliaValue& value = tree_.values[found.value];
    const bool bias = place.steps.empty() ? false : place.steps.back().name == "bias";
    if (is_array_or_number(value) || (bias && is_absent(tree_, value))) return found;
    return std::nullopt;
  }

 private:
  const std::vector<Part>& parts(uint32_t value) {
    const auto [entry, fresh] = parts_.try_emplace(value);
    if (fresh) entry->second = parts_of(tree_, value);
    return entry->second;
  }

  /// A field by its name, where the file has names, else by its position; an element by its index, and one of a chain
  /// with names in the file only by its position.
  const Part* choose(uint32_t value, const Step& step) {
    const std::vector<Part>& parts = this->parts(value);
    const bool field = !step.name.empty();
    for (const Part& part : parts) {
      if (part.by == Part::By::name ? field && part.name == step.name : !field && part.index == step.index)
        return &part;
    }
    const bool layer = find_layer(tree_, tree_.values[value]) != nullptr;
    if (parts.empty() || layer) return nullptr;
    const bool names = parts.front().by == Part::By::name;
    const auto at = static_cast<size_t>(field ? step.position : step.index);
    return names == field || at >= parts.size() ? nullptr : &parts[at];
  }

  const JuliaTree& tree_;
  std::map<uint32_t, std::vector<Part>> parts_;
};

/// The values of a list of nothing but arrays, such as `Flux.params(m)` is; empty: it is none.
std::vector<uint32_t> parameter_list(const JuliaTree& tree, uint32_t at) {
  const JuliaValue& list = tree.values[unwrapped(tree, at).value];
  std::vector<uint32_t> values;
  if (list.kind != JuliaKind::list && list.kind != JuliaKind::tuple) return values;
  for (uint32_t i = 0; i < list.count; ++i) {
    values.push_back(unwrapped(tree, tree.child(list, i).value).value);
    if (tree.values[values.back()].kind != JuliaKind::array) return {};
  }
  return values;
}

/// Trained places in the order of Flux.params: normalisations have their bias (β) before their scale (γ).
std::vector<const Place*> parameter_order(const std::vector<Place>& places) {
  std::vector<const Place*> order;
  for (const Place& place : places) {
    if (place.trained) order.push_back(&place);
  }
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const std::string& owner = order[i]->owner;
    const bool norm = owner == "BatchNorm" || owner == "InstanceNorm" || owner == "GroupNorm";
    const bool pair = order[i]->steps.back().name == "scale" && order[i + 1]->steps.back().name == "bias";
    if (norm && pair) std::swap(order[i], order[i + 1]), ++i;
  }
  return order;
}

/// Where in the file the model may begin: the root, or its only entry.
std::vector<uint32_t> starts_of(const JuliaTree& tree) {
  const JuliaValue& root = tree.values[tree.root];
  std::vector<uint32_t> starts{tree.root};
  for (uint32_t i = 0; i < root.count && root.kind == JuliaKind::named; ++i) {
    const JuliaChild& child = tree.child(root, i);
    const std::string& name = tree.text(child.name);
    if (root.count == 1 || name == "model_state" || name == "model") starts.push_back(child.value);
  }
  return starts;
}

class EntriesFor {
 public:
  EntriesFor(const JuliaTree& tree, const InputFile& file) : tree_(tree), file_(file), finder_(tree) {}

  std::vector<NamedArray> made(ModelEdit model) {
    ListPlaces list;
    model.edit_with(list);
    uint32_t start = tree_.root;
    size_t most = 0;
    for (uint32_t each : starts_of(tree_)) {
      size_t count = 0;
      for (const Place& place : list.places) count += finder_.find(each, place).has_value();
      if (count > most) most = count, start = each;
    }
    for (const Place& place : list.places) {
      names_.insert(place.name);
      if (const auto found = finder_.find(start, place)) take(place.name, found->value, found->storage, found->eps);
    }
    if (most == 0) take_parameters(list.places);
    add_others(start);
    return std::move(entries_);
  }

 private:
  void take(const std::string& name, uint32_t value, FluxStorage storage, double eps) {
    used_.insert(value);
    const bool absent = is_absent(tree_, tree_.values[value]) && name.ends_with("bias");
    entries_.push_back({name, absent ? Array() : read(value, storage, eps)});
  }

  Array read(uint32_t value, FluxStorage storage, double eps) {
    const auto known = arrays_.find(value);
    if (known != arrays_.end() && storage == FluxStorage::plain) return known->second;
    const Array x = entry_array(tree_, {{}, value, storage, eps}, file_);
    if (storage == FluxStorage::plain) arrays_.emplace(value, x);
    return x;
  }

  void take_parameters(const std::vector<Place>& places) {
    const std::vector<const Place*> order = parameter_order(places);
    for (uint32_t start : starts_of(tree_)) {
      const std::vector<uint32_t> values = parameter_list(tree_, start);
      if (values.empty() || values.size() != order.size()) continue;
      for (size_t i = 0; i < values.size(); ++i) take(order[i]->name, values[i], FluxStorage::plain, 0);
      // Such a list has no running statistics; the model keeps its own.
      for (const Place& place : places) {
        if (!place.trained && !place.value.is_nothing()) entries_.push_back({place.name, place.value});
      }
      return;
    }
  }

  /// Arrays below the start, and numbers that are entries themselves, for which the model has no place.
  void add_others(uint32_t start) {
    for (const FluxEntry& entry : list_entries(tree_, start, file_.path())) {
      const bool counts = tree_.values[entry.value].kind == JuliaKind::array ||
                          (start == tree_.root && entry.name.find('.') == std::string::npos);
      if (!counts || used_.contains(entry.value) || names_.contains(entry.name)) continue;
      entries_.push_back({entry.name, read(entry.value, entry.storage, entry.eps)});
    }
  }

  const JuliaTree& tree_;
  const InputFile& file_;
  Finder finder_;
  std::set<std::string> names_;
  std::set<uint32_t> used_;
  std::map<uint32_t, Array> arrays_;
  std::vector<NamedArray> entries_;
};

}  // namespace

std::vector<FluxEntry> list_entries(const JuliaTree& tree, uint32_t root, const std::string& path) {
  Lister lister(tree, path);
  lister.list(root, "", FluxStorage::plain, 0, 0);
  return std::move(lister.entries);
}

Array entry_array(const JuliaTree& tree, const FluxEntry& entry, const InputFile& file) {
  const Array x = array_of(tree, entry.value, file);
  if (entry.storage == FluxStorage::turned && x.rank() == 1) return unsqueeze(x, 0);
  if (entry.storage == FluxStorage::turned && x.rank() == 2) return permute(x, {1, 0});
  if (entry.storage == FluxStorage::deviation) return square(x) - entry.eps;
  return x;
}

std::vector<NamedArray> entries_for(ModelEdit model, const JuliaTree& tree, const InputFile& file) {
  return EntriesFor(tree, file).made(model);
}

}  // namespace rosin
