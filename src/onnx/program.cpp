// Making a program: names become slots, nodes find their conversions, what is constant is computed.
#include "onnx/program.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "onnx/conversions.hpp"
#include "onnx/joined_attention.hpp"
#include "onnx/runner.hpp"

namespace rosin::onnx {
namespace {

/// Larger constants stand in the model as places, so that moving it moves them; smaller ones are written into plans.
constexpr int64_t most_followed = 64;
/// Larger results are computed at each call.
constexpr int64_t most_folded = int64_t{1} << 20;

using Names = std::map<std::string, int, std::less<>>;

/// Slots that a block reads from outside or inside, with repeats; `take(slot, step, position)`.
template <class Take> void each_read(const Block& block, Take take) {
  for (const Step& step : block.steps) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] >= 0) take(step.inputs[i], &step, i);
    }
    for (const Attribute& attribute : step.attributes) {
      if (attribute.block) each_read(*attribute.block, take);
    }
  }
  for (int slot : block.outputs) take(slot, nullptr, 0);
}

class Builder {
 public:
  Builder(const ModelDefinition& model, const std::string& path) : model_(model), path_(path) {}

  std::shared_ptr<const Program> build() {
    check_opsets();
    program_.graph = make_block(model_.graph, true);
    refuse_unknown();
    sort_initializers();
    fold();
    settle_constants();
    join_attention(program_.graph.steps, program_.constants, reads());
    release();
    return std::make_shared<const Program>(std::move(program_));
  }

 private:
  struct Initializer {
    int slot;
    Array value;
  };

  [[noreturn]] void refuse(const std::string& rule, const std::string& came) const {
    throw Error(ErrorKind::io, "onnx: " + rule + "; got " + came + " in " + path_ + "; the file is damaged");
  }

  void check_opsets() {
    for (const auto& [domain, version] : model_.opsets) {
      if (domain.empty() || domain == "ai.onnx") program_.opset = version;
    }
    const bool wanted =
        std::any_of(model_.graph.nodes.begin(), model_.graph.nodes.end(),
                    [](const NodeDefinition& node) { return node.domain.empty() || node.domain == "ai.onnx"; });
    if (!wanted && program_.opset == 0) program_.opset = newest_opset;
    if (program_.opset < oldest_opset || program_.opset > newest_opset) {
      throw Error(ErrorKind::io, "onnx: ops must be of version " + std::to_string(oldest_opset) + " to " +
                                     std::to_string(newest_opset) + "; got version " + std::to_string(program_.opset) +
                                     " in " + path_ + "; write the model for an older version");
    }
    if (model_.has_functions) {
      throw Error(ErrorKind::io,
                  "onnx: a model must not define functions; got some in " + path_ + "; inline them when writing it");
    }
  }

  int64_t opset_of(std::string_view domain) const {
    if (domain.empty() || domain == "ai.onnx") return program_.opset;
    for (const auto& [name, version] : model_.opsets) {
      if (name == domain) return version;
    }
    return 1;
  }

  int new_slot(std::string_view name) {
    slot_names_.emplace_back(name);
    return program_.slots++;
  }

  int define(std::string_view name) {
    const int slot = new_slot(name);
    if (!scopes_.back().emplace(name, slot).second) {
      refuse("a name must be made once", "\"" + std::string(name) + "\" twice");
    }
    return slot;
  }

  int find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    return -1;
  }

  int needed(std::string_view name, const std::string& reader) const {
    const int slot = find(name);
    if (slot < 0) {
      refuse("what is read must be made before", "\"" + std::string(name) + "\", which " + reader + " reads,");
    }
    return slot;
  }

  Block make_block(const GraphDefinition& graph, bool outermost) {
    Block block;
    scopes_.emplace_back();
    for (const TensorDefinition& tensor : graph.initializers) {
      initializers_.push_back({define(tensor.name), array_of(tensor, path_)});
    }
    for (const ValueDefinition& input : graph.inputs) {
      const auto given = scopes_.back().find(input.name);
      const bool has_default = given != scopes_.back().end();
      block.inputs.push_back(has_default ? given->second : define(input.name));
      if (outermost) {
        program_.inputs.push_back(port_of(input, "input"));
        program_.has_default.push_back(has_default);
      }
    }
    for (const NodeDefinition& node : graph.nodes) block.steps.push_back(make_step(node, block.steps.size()));
    for (const ValueDefinition& output : graph.outputs) {
      if (unknown_.empty()) block.outputs.push_back(needed(output.name, "the graph's end"));
      if (outermost) program_.outputs.push_back(port_of(output, "output"));
    }
    scopes_.pop_back();
    return block;
  }

  Port port_of(const ValueDefinition& value, const char* what) const {
    const std::string subject = std::string(what) + " \"" + std::string(value.name) + "\" of " + path_;
    if (!value.is_tensor) {
      throw Error(ErrorKind::dtype, "onnx: inputs and outputs must be tensors; got " + subject +
                                        "; sequences and optionals are not read");
    }
    Port port{std::string(value.name), array_type(value.type, subject), value.has_sizes, {}};
    port.sizes.assign(value.sizes.rbegin(), value.sizes.rend());
    return port;
  }

  Step make_step(const NodeDefinition& node, size_t position) {
    Step step;
    const bool own = node.domain.empty() || node.domain == "ai.onnx";
    step.shown = "node " + std::to_string(position) + (node.name.empty() ? "" : " \"" + std::string(node.name) + "\"") +
                 " (" + (own ? "" : std::string(node.domain) + ".") + std::string(node.op) + ")";
    step.opset = opset_of(node.domain);
    step.conversion = find_conversion(node.domain, node.op, step.opset);
    if (!step.conversion) unknown_.push_back(step.shown);
    for (std::string_view name : node.inputs) {
      const bool absent = name.empty() || !unknown_.empty();
      step.inputs.push_back(absent ? -1 : needed(name, step.shown));
    }
    if (step.conversion) {
      for (const AttributeDefinition& attribute : node.attributes) step.attributes.push_back(make_attribute(attribute));
    }
    for (std::string_view name : node.outputs) step.outputs.push_back(name.empty() ? -1 : define(name));
    return step;
  }

  Attribute make_attribute(const AttributeDefinition& from) {
    Attribute made{std::string(from.name),
                   from.type,
                   from.real,
                   from.integer,
                   std::string(from.text),
                   {},
                   from.reals,
                   from.integers,
                   {from.texts.begin(), from.texts.end()},
                   nullptr};
    if (from.tensor) made.tensor = array_of(*from.tensor, path_);
    if (from.graph) made.block = std::make_shared<const Block>(make_block(*from.graph, false));
    return made;
  }

  void refuse_unknown() const {
    if (unknown_.empty()) return;
    std::string list;
    for (size_t i = 0; i < unknown_.size() && i < 20; ++i) list += (i ? ", " : "") + unknown_[i];
    if (unknown_.size() > 20) list += " and " + std::to_string(unknown_.size() - 20) + " more";
    throw Error(ErrorKind::io, "onnx: every op must be one that rosin has (docs/onnx.md); got " + list +
                                   " of version " + std::to_string(program_.opset) + " in " + path_ +
                                   "; replace these in the model");
  }

  /// Parameters and statistics become places, everything else constants.
  void sort_initializers() {
    const auto slots = static_cast<size_t>(program_.slots);
    program_.constants.resize(slots);
    program_.place_of.assign(slots, -1);
    std::vector<bool> setting(slots), statistic(slots), used(slots);
    each_read(program_.graph, [&](int slot, const Step* step, size_t input) {
      const auto at = static_cast<size_t>(slot);
      used[at] = true;
      if (!step || input >= 32) return;
      setting[at] = setting[at] || (step->conversion->settings >> input & 1) != 0;
      statistic[at] = statistic[at] || (step->conversion->statistics >> input & 1) != 0;
    });
    for (Initializer& initializer : initializers_) {
      const auto at = static_cast<size_t>(initializer.slot);
      const DType type = initializer.value.dtype();
      const bool weight = (is_float(type) || is_complex(type)) && initializer.value.rank() > 0 && !setting[at];
      if (!used[at]) continue;
      if (weight) add_place(initializer.slot, initializer.value, !statistic[at]);
      else program_.constants[at] = constant(std::move(initializer.value));
    }
  }

  void add_place(int slot, const Array& value, bool trained) {
    std::string name = slot_names_[static_cast<size_t>(slot)];
    while (!place_names_.emplace(name, slot).second) name += "_";
    program_.place_of[static_cast<size_t>(slot)] = static_cast<int>(program_.places.size());
    program_.places.push_back({std::move(name), slot, trained, value});
  }

  bool is_known(int slot) const { return slot < 0 || !program_.constants[static_cast<size_t>(slot)].is_nothing(); }

  /// Computes what depends on constants alone, and leaves out the steps that did.
  void fold() {
    std::vector<bool> changed(static_cast<size_t>(program_.slots));  // inputs with a default are no constants
    for (size_t i = 0; i < program_.graph.inputs.size(); ++i) {
      changed[static_cast<size_t>(program_.graph.inputs[i])] = true;
    }
    std::vector<Step> kept;
    for (Step& step : program_.graph.steps) {
      const bool known = std::all_of(step.inputs.begin(), step.inputs.end(), [&](int slot) {
        return is_known(slot) && (slot < 0 || !changed[static_cast<size_t>(slot)]);
      });
      const bool body = std::any_of(step.attributes.begin(), step.attributes.end(),
                                    [](const Attribute& attribute) { return attribute.block != nullptr; });
      if (!known || body || step.conversion->varies || !fold(step)) kept.push_back(std::move(step));
    }
    program_.graph.steps = std::move(kept);
  }

  bool fold(const Step& step) {
    Runner runner(program_, {});
    runner.run(step);
    int64_t count = 0;
    for (int slot : step.outputs) count += slot < 0 ? 0 : runner.value(slot).count();
    if (count > most_folded) return false;
    for (int slot : step.outputs) {
      if (slot >= 0) program_.constants[static_cast<size_t>(slot)] = constant(copied(runner.value(slot)));
    }
    return true;
  }

  /// A fresh leaf: constants share nothing with what was recorded.
  static Array copied(const Array& x) {
    const Array value = on_cpu(x);
    Array made = fresh_leaf(value.dtype(), value.shape());
    eval(value);
    std::memcpy(made.node()->data(), value.node()->data(), bytes_of(value.dtype(), value.shape()));
    return made;
  }

  void settle_constants() {
    std::vector<bool> used(static_cast<size_t>(program_.slots));
    each_read(program_.graph, [&](int slot, const Step*, size_t) { used[static_cast<size_t>(slot)] = true; });
    for (size_t at = 0; at < used.size(); ++at) {
      Array& value = program_.constants[at];
      if (value.is_nothing()) continue;
      if (used[at] && value.count() > most_followed) add_place(static_cast<int>(at), copied(value), false);
      if (!used[at] || value.count() > most_followed) value = Array();
    }
  }

  /// What nobody reads is not kept; the rest goes after its last use by a step of the outermost graph.
  std::vector<int> reads() const {
    std::vector<int> count(static_cast<size_t>(program_.slots));
    each_read(program_.graph, [&](int slot, const Step*, size_t) { ++count[static_cast<size_t>(slot)]; });
    return count;
  }

  void release() {
    std::vector<int> last(static_cast<size_t>(program_.slots), -1);
    std::vector<Step>& steps = program_.graph.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto note = [&](int slot, const Step*, size_t) { last[static_cast<size_t>(slot)] = static_cast<int>(i); };
      for (int slot : steps[i].inputs) {
        if (slot >= 0) note(slot, nullptr, 0);
      }
      for (const Attribute& attribute : steps[i].attributes) {
        if (attribute.block) each_read(*attribute.block, note);
      }
    }
    for (int slot : program_.graph.outputs) last[static_cast<size_t>(slot)] = static_cast<int>(steps.size());
    for (Step& step : steps) {
      for (int& slot : step.outputs) {
        if (slot >= 0 && last[static_cast<size_t>(slot)] < 0) slot = -1;
      }
    }
    for (size_t at = 0; at < last.size(); ++at) {
      if (last[at] < 0 || last[at] >= static_cast<int>(steps.size())) continue;
      steps[static_cast<size_t>(last[at])].released.push_back(static_cast<int>(at));
    }
  }

  const ModelDefinition& model_;
  const std::string& path_;
  Program program_;
  std::vector<Names> scopes_;
  std::vector<std::string> slot_names_;
  Names place_names_;
  std::vector<Initializer> initializers_;
  std::vector<std::string> unknown_;
};

}  // namespace

std::shared_ptr<const Program> make_program(const ModelDefinition& model, const std::string& path) {
  return Builder(model, path).build();
}

}  // namespace rosin::onnx
