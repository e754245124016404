// What PyTorch calls the arrays of our layers, and how it stores them: one table, and a walk that spells its paths.
#include "io/torch_names.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "io/row_major.hpp"

namespace rosin {
namespace {

enum class Storage : uint8_t {
  plain,
  backwards,  // dims in reverse order: (kernel..., in, out) here, (out, in, ...kernel) there
  flipped     // the same, and every spatial dim is reversed: true convolutions here, cross-correlations there
};

struct TorchField {
  const char* layer;
  const char* field;
  const char* torch_field;
  Storage storage;
};

// Fields that are not here have the same name and order on both sides.
constexpr TorchField torch_fields[] = {
    {"Conv", "weight", "weight", Storage::flipped},
    {"ConvTranspose", "weight", "weight", Storage::flipped},
    {"CrossCor", "weight", "weight", Storage::backwards},
    {"CrossCorTranspose", "weight", "weight", Storage::backwards},
    {"Embedding", "weight", "weight", Storage::backwards},
    {"EmbeddingBag", "weight", "weight", Storage::backwards},
    {"BatchNorm", "scale", "weight", Storage::plain},
    {"BatchNorm", "mean", "running_mean", Storage::plain},
    {"BatchNorm", "variance", "running_var", Storage::plain},
    {"InstanceNorm", "scale", "weight", Storage::plain},
    {"InstanceNorm", "mean", "running_mean", Storage::plain},
    {"InstanceNorm", "variance", "running_var", Storage::plain},
    {"GroupNorm", "scale", "weight", Storage::plain},
    {"LayerNorm", "scale", "weight", Storage::backwards},
    {"RMSNorm", "scale", "weight", Storage::backwards},
    {"LayerNorm", "bias", "bias", Storage::backwards},
};

constexpr const char* batch_counter = "num_batches_tracked";

const TorchField* find_field(std::string_view layer, std::string_view field) {
  const auto* found = std::find_if(std::begin(torch_fields), std::end(torch_fields),
                                   [&](const TorchField& row) { return layer == row.layer && field == row.field; });
  return found == std::end(torch_fields) ? nullptr : found;
}

/// Dims of `x` backwards; from ours to theirs or back, as both are the same rearrangement but for which dims are
/// flipped.
Array reversed(const Array& x, bool flip_first, bool flip_last) {
  const int rank = x.rank();
  int order[Shape::max_rank];
  bool flipped[Shape::max_rank] = {};
  for (int d = 0; d < rank; ++d) {
    order[d] = rank - 1 - d;
    flipped[d] = (flip_first && d < rank - 2) || (flip_last && d >= 2);
  }
  const auto n = static_cast<size_t>(rank);
  return rearranged(x, {order, n}, {flipped, n});
}

Array backwards(const Array& x) { return reversed(x, false, false); }
Array flipped_to_torch(const Array& x) { return reversed(x, false, true); }
Array flipped_from_torch(const Array& x) { return reversed(x, true, false); }

/// A place of a model with both names.
struct TorchPlace {
  std::string name;
  std::string torch_name;
  Storage storage;
};

/// Follows a walk and spells the place of each array; a Chain's `layers` is no step of PyTorch's names.
class TorchSpelling {
 public:
  void enter(const ModelPart& part, const ModelPath& path) {
    levels_.push_back({std::string(part.type), spelled(path), &path});
  }
  void leave() { levels_.pop_back(); }

  TorchPlace place(const ModelPath& path) const {
    const TorchField* row = levels_.empty() ? nullptr : find_field(levels_.back().type, path.name());
    if (!row) return {path.file_text(), spelled(path), Storage::plain};
    return {path.file_text(), joined(levels_.back().prefix, row->torch_field), row->storage};
  }

 private:
  struct Level {
    std::string type;
    std::string prefix;
    const ModelPath* path;  // valid until the walk leaves the level
  };

  static std::string joined(const std::string& prefix, const std::string& step) {
    return prefix.empty() || step.empty() ? prefix + step : prefix + "." + step;
  }

  std::string spelled(const ModelPath& path) const {
    if (levels_.empty()) return path.file_text();
    const Level& level = levels_.back();
    std::string steps;
    for (const ModelPath* step = &path; step != level.path && !step->is_root(); step = step->parent()) {
      const bool hidden = level.type == "Chain" && step->parent() == level.path && step->name() == "layers";
      if (hidden) break;
      steps = joined(step->index() >= 0 ? std::to_string(step->index()) : std::string(step->name()), steps);
    }
    return joined(level.prefix, steps);
  }

  std::vector<Level> levels_;
};

/// Takes the place of each array that the model would save, tied ones once.
class ListTorchPlaces : public ModelVisitor {
 public:
  void array(const Array&, const ModelPath& path) override { places.push_back(spelling_.place(path)); }
  bool enter(const ModelPart& part, const ModelPath& path) override {
    spelling_.enter(part, path);
    return true;
  }
  void leave(const ModelPart&, const ModelPath&) override { spelling_.leave(); }

  std::vector<TorchPlace> places;

 private:
  TorchSpelling spelling_;
};

class ListTorchPlacesForEdit : public ModelEditor {
 public:
  void array(Array&, const ModelPath& path) override { places.push_back(spelling_.place(path)); }
  bool enter(const ModelPart& part, const ModelPath& path) override {
    spelling_.enter(part, path);
    return true;
  }
  void leave(const ModelPart&, const ModelPath&) override { spelling_.leave(); }

  std::vector<TorchPlace> places;

 private:
  TorchSpelling spelling_;
};

Shape reversed_shape(const Shape& shape) {
  int64_t sizes[Shape::max_rank];
  std::reverse_copy(shape.begin(), shape.end(), sizes);
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(shape.rank())));
}

}  // namespace

std::vector<OutgoingArray> to_torch(ModelView model) {
  ListTorchPlaces list;
  model.visit_with(list);
  std::map<std::string, TorchPlace> places;
  for (TorchPlace& place : list.places) places.emplace(place.name, place);
  std::vector<OutgoingArray> arrays;
  for (const NamedArray& entry : state(model)) {
    const auto found = places.find(entry.name);
    if (found == places.end()) continue;  // a generator; PyTorch has none in its models
    const TorchPlace& place = found->second;
    OutgoingArray outgoing{place.torch_name, entry.value, entry.value.shape()};
    if (place.storage != Storage::plain) {
      outgoing.shape = reversed_shape(outgoing.shape);
      outgoing.make = place.storage == Storage::flipped ? flipped_to_torch : backwards;
    }
    arrays.push_back(std::move(outgoing));
  }
  return arrays;
}

std::vector<NamedArray> from_torch(ModelEdit model, const std::vector<NamedArray>& entries) {
  ListTorchPlacesForEdit list;
  model.edit_with(list);
  std::map<std::string, TorchPlace> places;
  for (TorchPlace& place : list.places) places.emplace(place.torch_name, place);
  std::vector<NamedArray> arrays;
  for (const NamedArray& entry : entries) {
    const auto found = places.find(entry.name);
    if (found == places.end()) {
      const bool counter = entry.name == batch_counter || entry.name.ends_with(std::string(".") + batch_counter);
      if (!counter) arrays.push_back(entry);
      continue;
    }
    const TorchPlace& place = found->second;
    const Array value = place.storage == Storage::plain     ? entry.value
                        : place.storage == Storage::flipped ? flipped_from_torch(entry.value)
                                                            : backwards(entry.value);
    arrays.push_back({place.name, value});
  }
  return arrays;
}

}  // namespace rosin
