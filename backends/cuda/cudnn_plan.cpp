// See cudnn_plan.hpp.
#include "cuda/cudnn_plan.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "common/failure.hpp"
#include "vendor/kept.hpp"

namespace rosin::cuda {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::Note;
using dnn::ValueType;
using plugin::Failure;

constexpr size_t most_ways = 8;
constexpr int64_t most_notes = 32;

void mix(uint64_t& hash, int64_t number) {
  for (int i = 0; i < 8; ++i) {
    hash = (hash ^ (static_cast<uint64_t>(number) >> (8 * i) & 255)) * 1099511628211u;
  }
}

/// Of an engine and its settings.
uint64_t mark_of(const DnnDescriptor& configuration, const DnnDescriptor& engine) {
  uint64_t hash = 14695981039346656037u;
  for (const int64_t index : engine.values<int64_t>(Attribute::engine_index, ValueType::int64, 1)) mix(hash, index);
  for (const DnnDescriptor& knob : configuration.parts(Attribute::configuration_knobs, Kind::knob_choice)) {
    for (const int type : knob.values<int>(Attribute::knob_type, ValueType::knob_type, 1)) mix(hash, type);
    for (const int64_t value : knob.values<int64_t>(Attribute::knob_value, ValueType::int64, 1)) mix(hash, value);
  }
  return hash;
}

std::vector<Note> notes_of(const DnnDescriptor& engine) {
  return engine.values<Note>(Attribute::engine_notes, ValueType::numerical_note, most_notes);
}

bool on_tensor_cores(const DnnDescriptor& engine) {
  const std::vector<Note> notes = notes_of(engine);
  return std::find(notes.begin(), notes.end(), Note::tensor_core) != notes.end();
}

}  // namespace

DnnWays::DnnWays(const DnnTarget& target, DnnGraph graph, uint64_t workspace)
    : target_(target), library_(*target.library), graph_(std::move(graph)), workspace_limit_(workspace) {
  find(dnn::HeuristicMode::usual);
  if (ways_.empty()) find(dnn::HeuristicMode::finer);
  find(dnn::HeuristicMode::fallback);
  if (graph_.for_tensor_cores) {
    std::stable_partition(ways_.begin(), ways_.end(), [](const Way& way) { return way.on_tensor_cores; });
  }
  if (ways_.empty()) throw Failure{ROSIN_UNSUPPORTED, std::string("cuDNN: it has no engine for this ") + graph_.name};
}

/// Adds the ways of a mode that are allowed.
void DnnWays::find(dnn::HeuristicMode mode) {
  const DnnDescriptor search(library_, Kind::heuristics);
  search.set(Attribute::heuristics_graph, graph_.parts.back());
  search.set(Attribute::heuristics_mode, ValueType::heuristic_mode, mode);
  if (target_.properties) search.set(Attribute::heuristics_device, *target_.properties);
  const int status = library_.functions().descriptor_finish(search.get());
  if (status == dnn::host_allocation_failed || status == dnn::device_allocation_failed) {
    library_.check(status, "search for an engine");
  }
  if (status != dnn::success) return;
  for (DnnDescriptor& configuration : search.parts(Attribute::heuristics_results, Kind::engine_configuration)) {
    if (ways_.size() == most_ways) return;
    const std::vector<DnnDescriptor> engine = configuration.parts(Attribute::configuration_engine, Kind::engine);
    if (engine.size() != 1 || !allows(engine.front())) continue;
    const uint64_t mark = mark_of(configuration, engine.front());
    const bool known = std::any_of(ways_.begin(), ways_.end(), [&](const Way& way) { return way.mark == mark; });
    if (!known) ways_.push_back({std::move(configuration), mark, on_tensor_cores(engine.front()), false, nullptr, 0});
  }
}

/// Tensor cores round operands in Float32 to TF32, and multiply halves exactly.
bool DnnWays::allows(const DnnDescriptor& engine) const {
  const std::vector<Note> notes = notes_of(engine);
  return std::none_of(notes.begin(), notes.end(), [&](Note note) {
    switch (note) {
      case Note::nondeterministic: return graph_.deterministic;
      case Note::tensor_core: return graph_.compute == ROSIN_COMPUTE_EXACT && graph_.type == ROSIN_FLOAT32;
      case Note::narrower_operands: return graph_.compute < ROSIN_COMPUTE_FLOAT16;
      case Note::narrower_sums:
      case Note::fourier:
      case Note::winograd:
      case Note::winograd_4:
      case Note::winograd_6:
      case Note::winograd_13: return graph_.compute == ROSIN_COMPUTE_EXACT;
      default: return false;
    }
  });
}

std::string DnnWays::kept_key(const Way& way) const {
  return "plan of cuDNN " + library_.version() + " for " + target_.kept_for + ": " + graph_.key +
         std::to_string(way.mark);
}

/// Null where none is kept, or the library does not take it.
std::unique_ptr<DnnDescriptor> DnnWays::kept_plan(const Way& way) const {
  const std::string text = vendor::kept(target_.host, kept_key(way));
  if (text.empty()) return nullptr;
  try {
    auto plan = std::make_unique<DnnDescriptor>(library_, Kind::plan);
    if (target_.handle) plan->set(Attribute::plan_handle, ValueType::handle, target_.handle);
    plan->set_text(Attribute::plan_text, text);
    if (target_.properties) plan->set(Attribute::plan_device, *target_.properties);
    plan->finish("a plan that was kept");
    return plan;
  } catch (const Failure&) {
    return nullptr;
  }
}

/// Null where cuDNN builds none. It is kept where its text can be had.
std::unique_ptr<DnnDescriptor> DnnWays::built_plan(const Way& way) const {
  auto plan = std::make_unique<DnnDescriptor>(library_, Kind::plan);
  if (target_.handle) plan->set(Attribute::plan_handle, ValueType::handle, target_.handle);
  plan->set(Attribute::plan_configuration, way.configuration);
  if (target_.properties) plan->set(Attribute::plan_device, *target_.properties);
  const int status = library_.functions().descriptor_finish(plan->get());
  if (status == dnn::host_allocation_failed || status == dnn::device_allocation_failed) {
    library_.check(status, graph_.name.c_str());
  }
  if (status != dnn::success) return nullptr;
  if (!target_.host) return plan;
  try {
    vendor::keep(target_.host, kept_key(way), plan->text(Attribute::plan_text));
  } catch (const Failure&) {  // some engines have none
  }
  return plan;
}

bool DnnWays::build(size_t number) {
  const std::lock_guard guard(building_);
  Way& way = ways_[number];
  if (way.tried) return way.plan != nullptr;
  std::unique_ptr<DnnDescriptor> plan = kept_plan(way);
  if (!plan) plan = built_plan(way);
  way.tried = true;
  if (!plan) return false;
  const std::vector<int64_t> room = plan->values<int64_t>(Attribute::plan_workspace, ValueType::int64, 1);
  if (room.size() != 1 || room[0] < 0) return false;
  way.workspace = static_cast<uint64_t>(room[0]);
  for (const auto& [id, bytes] : graph_.rooms) way.workspace += bytes;
  if (way.workspace > workspace_limit_) return false;
  way.plan = std::move(plan);
  return true;
}

std::optional<size_t> DnnWays::marked(uint64_t mark) {
  for (size_t way = 0; way < ways_.size(); ++way) {
    if (ways_[way].mark == mark) return build(way) ? std::optional(way) : std::nullopt;
  }
  return std::nullopt;
}

size_t DnnWays::first() {
  for (size_t way = 0; way < ways_.size(); ++way) {
    if (build(way)) return way;
  }
  throw Failure{ROSIN_UNSUPPORTED, std::string("cuDNN: it builds no plan for this ") + graph_.name};
}

}  // namespace rosin::cuda
