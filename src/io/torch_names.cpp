// What PyTorch calls the arrays of our layers, and how it stores them: one table, and a walk that spells its paths.
#include "io/torch_names.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "io/row_major.hpp"
#include "io/torch_parts.hpp"

namespace rosin {
namespace {

using Storage = TorchStorage;

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
    {"RNNCell", "input_weight", "weight_ih", Storage::plain},
    {"RNNCell", "recurrent_weight", "weight_hh", Storage::plain},
    {"RNNCell", "bias", "bias_ih", Storage::summed},
    {"LSTMCell", "input_weight", "weight_ih", Storage::plain},
    {"LSTMCell", "recurrent_weight", "weight_hh", Storage::plain},
    {"LSTMCell", "bias", "bias_ih", Storage::summed},
    {"GRUCell", "input_weight", "weight_ih", Storage::plain},
    {"GRUCell", "recurrent_weight", "weight_hh", Storage::plain},
    {"GRUCell", "bias", "bias_ih", Storage::gated},
    {"GRUCell", "reset_bias", "bias_hh", Storage::inside},
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

/// Steps that PyTorch's names do not have: the layers of a Chain, the cell of a recurrent layer, both directions.
bool is_hidden(std::string_view type, std::string_view step) {
  if (type == "Chain") return step == "layers";
  if (type == "RNN" || type == "LSTM" || type == "GRU") return step == "cell";
  return type == "Bidirectional" && (step == "forward" || step == "backward");
}

/// Follows a walk and spells the place of each array.
class TorchSpelling {
 public:
  void enter(const ModelPart& part, const ModelPath& path) {
    std::string suffix;
    if (!levels_.empty() && path.parent() == levels_.back().path) {
      const Level& outside = levels_.back();
      if (outside.type == "Bidirectional" && path.name() == "backward") suffix = "_reverse";
      else if (path.name() == "cell" && is_hidden(outside.type, "cell")) suffix = "_l0" + outside.suffix;
    }
    levels_.push_back({std::string(part.type), spelled(path), std::move(suffix), &path});
  }
  void leave() { levels_.pop_back(); }

  TorchPlace place(const Array& x, const ModelPath& path) const {
    const int64_t rows = x.is_nothing() || x.rank() == 0 ? 0 : x.size(0);
    const TorchField* row = levels_.empty() ? nullptr : find_field(levels_.back().type, path.name());
    if (row) {
      const Level& level = levels_.back();
      return {path.file_text(), joined(level.prefix, row->torch_field) + level.suffix, row->storage, "", "", rows};
    }
    TorchPlace place{path.file_text(), spelled(path), Storage::plain, "", "", rows};
    if (is_projection()) {
      const Level& outside = levels_[levels_.size() - 2];
      place.whole = joined(outside.prefix, "in_proj_" + std::string(path.name()));
      place.alone = joined(outside.prefix, std::string(levels_.back().path->name()) + "_" + std::string(path.name()));
    }
    return place;
  }

 private:
  struct Level {
    std::string type;
    std::string prefix;
    std::string suffix;     // of the names of its arrays
    const ModelPath* path;  // valid until the walk leaves the level
  };

  /// Whether the walk is in one of the three layers before attention.
  bool is_projection() const {
    if (levels_.size() < 2 || levels_[levels_.size() - 2].type != "MultiHeadAttention") return false;
    const std::string_view name = levels_.back().path->name();
    return name == "q_proj" || name == "k_proj" || name == "v_proj";
  }

  static std::string joined(const std::string& prefix, const std::string& step) {
    return prefix.empty() || step.empty() ? prefix + step : prefix + "." + step;
  }

  std::string spelled(const ModelPath& path) const {
    if (levels_.empty()) return path.file_text();
    const Level& level = levels_.back();
    std::string steps;
    for (const ModelPath* step = &path; step != level.path && !step->is_root(); step = step->parent()) {
      if (step->parent() == level.path && is_hidden(level.type, step->name())) break;
      steps = joined(step->index() >= 0 ? std::to_string(step->index()) : std::string(step->name()), steps);
    }
    return joined(level.prefix, steps);
  }

  std::vector<Level> levels_;
};

/// Takes the place of each array that the model would save, tied ones once.
class ListTorchPlaces : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath& path) override { places.push_back(spelling_.place(x, path)); }
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
  void array(Array& x, const ModelPath& path) override { places.push_back(spelling_.place(x, path)); }
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
  for (const TorchPlace& place : list.places) places.emplace(place.name, place);
  std::vector<OutgoingArray> arrays;
  for (const NamedArray& entry : state(model)) {
    const auto found = places.find(entry.name);
    if (found == places.end()) continue;  // a generator; PyTorch has none in its models
    const TorchPlace& place = found->second;
    OutgoingArray outgoing{place.torch_name, entry.value, entry.value.shape()};
    if (place.storage == Storage::backwards || place.storage == Storage::flipped) {
      outgoing.shape = reversed_shape(outgoing.shape);
      outgoing.make = place.storage == Storage::flipped ? flipped_to_torch : backwards;
    }
    arrays.push_back(std::move(outgoing));
  }
  join_parts(list.places, arrays);
  return arrays;
}

std::vector<NamedArray> from_torch(ModelEdit model, const std::vector<NamedArray>& entries) {
  ListTorchPlacesForEdit list;
  model.edit_with(list);
  std::map<std::string, TorchPlace> places;
  for (const TorchPlace& place : list.places) places.emplace(place.torch_name, place);
  std::vector<NamedArray> arrays;
  for (const NamedArray& entry : parted(list.places, entries)) {
    const auto found = places.find(entry.name);
    if (found == places.end()) {
      const bool counter = entry.name == batch_counter || entry.name.ends_with(std::string(".") + batch_counter);
      if (!counter) arrays.push_back(entry);
      continue;
    }
    const TorchPlace& place = found->second;
    const Array value = place.storage == Storage::backwards ? backwards(entry.value)
                        : place.storage == Storage::flipped ? flipped_from_torch(entry.value)
                                                            : entry.value;
    arrays.push_back({place.name, value});
  }
  return arrays;
}

}  // namespace rosin
