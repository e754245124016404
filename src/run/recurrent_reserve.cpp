// See recurrent_reserve.hpp.
#include "run/recurrent_reserve.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include <rosin/math_mode.hpp>

#include "graph/op.hpp"
#include "plan/describe.hpp"
#include "run/call_question.hpp"
#include "run/device_table.hpp"
#include "run/library_call.hpp"

namespace rosin {
namespace {

using plan::CallArray;
using plan::CallDescription;

/// Contiguous.
CallArray array(DType type, const Shape& shape) {
  CallArray made{type, shape, {}};
  int64_t stride = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    made.strides[d] = stride;
    stride *= shape[d];
  }
  return made;
}

int64_t gates_of(SequenceCell cell) { return cell == SequenceCell::lstm ? 4 : cell == SequenceCell::gru ? 3 : 1; }

/// The layer's call, without anything to be kept; nothing where no library has such a cell.
std::optional<CallDescription> call_of(const RecurrentLayer& layer, MathMode mode) {
  static const Op& op = *find_op("recurrent");
  const int64_t gates = gates_of(layer.cell) * layer.out;
  const CallArray state = array(layer.type, {layer.out, layer.batch});
  std::vector<CallArray> operands{array(layer.type, {layer.features, layer.steps, layer.batch}),
                                  array(layer.type, {gates * (layer.features + layer.out + 1)}), state};
  if (layer.cell == SequenceCell::lstm) operands.push_back(state);
  const Attributes how = Attributes::of(RecurrentAttributes{.cell = layer.cell});
  std::optional<CallDescription> call =
      plan::describe(op, how, operands, array(layer.type, {layer.out, layer.steps, layer.batch}));
  if (call) call->take(mode);
  return call;
}

int64_t ask(const RecurrentLayer& layer, MathMode mode) {
  OpenDevice& device = DeviceTable::instance().open(layer.device);
  if (!device.functions.call_reserve) return -1;
  const std::optional<CallDescription> call = call_of(layer, mode);
  if (!call || !PluginTarget(device).takes(*call)) return -1;
  uint64_t bytes = 0;
  const rosin_status status = device.functions.call_reserve(device.device, CallQuestion(*call).plain(), &bytes);
  if (status == ROSIN_UNSUPPORTED) return -1;
  device.check(status, "recurrent");
  return static_cast<int64_t>(bytes);
}

MathMode mode_on(int device) {
  const MathMode said = math_mode();
  return said == MathMode::usual ? PluginTarget(DeviceTable::instance().open(device)).usual_mode() : said;
}

using Key = std::tuple<int, SequenceCell, DType, int64_t, int64_t, int64_t, int64_t, MathMode>;

struct Answers {
  std::mutex lock;
  std::map<Key, int64_t> known;
};
Answers& answers() {
  static auto* all = new Answers;  // never destroyed: as devices
  return *all;
}

}  // namespace

int64_t recurrent_reserve(const RecurrentLayer& layer) {
  const MathMode mode = mode_on(layer.device);
  if (mode == MathMode::exact) return -1;  // libraries round a step's gates together
  const Key key{layer.device, layer.cell, layer.type, layer.features, layer.out, layer.steps, layer.batch, mode};
  const std::lock_guard guard(answers().lock);
  const auto known = answers().known.find(key);
  if (known != answers().known.end()) return known->second;
  return answers().known.emplace(key, ask(layer, mode)).first->second;
}

}  // namespace rosin
