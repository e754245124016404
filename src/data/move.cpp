// Moves between devices: the rule for element types, then a transfer of each array.
#include <rosin/move.hpp>

#include <optional>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/model.hpp>
#include <rosin/random.hpp>

#include "devices/device_choice.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/transfer.hpp"
#include "run/transfer.hpp"

namespace rosin {
namespace {

/// The device of the first array and its path; an array elsewhere is an error.
class OneDevice : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath& path) override {
    if (x.is_nothing() || is_scalar(*x.node())) return;  // numbers are everywhere
    const Device here = x.device();
    if (!device) {
      device = here;
      first_path_ = path.text();
    } else if (!(*device == here)) {
      throw Error(ErrorKind::device, "device_of: all arrays must be on one device; " + first_path_ + " is on " +
                                         to_string(*device) + ", " + path.text() + " on " + to_string(here) +
                                         "; move the model with model | device");
    }
  }
  std::optional<Device> device;

 private:
  std::string first_path_;
};

}  // namespace

Array moved(const Array& x, const Device& device) {
  if (x.is_nothing()) return x;
  const DType type = device.type_after_move(x.dtype(), x.device());
  if (type == x.dtype()) return transferred(x, device.position());
  if (x.dtype() == Float64 && type == Float32) {
    inform_once("float64-moved",
                "Float64 arrays become Float32 when they are moved to a GPU; device.with(keep) keeps their type.");
  }
  return transferred(cast(x, type), device.position());
}

void detail::move_arrays(ModelEdit model, const Device& device) {
  const auto call = [](void* target, const Array& x, const ModelPath& path) {
    Array there = moved(x, *static_cast<const Device*>(target));
    if (!there.is_nothing()) label_memory(there, path.text());
    return there;
  };
  Device target = device;
  detail::map_arrays(model, {&target, call});
  // Parameters are evaluated when they are moved, so that a model may go to other threads.
  if (Context::current().gradient_depth.load(std::memory_order_relaxed) == 0) eval();
}

Device detail::device_of_gpu() {
  const Device device = chosen_gpu();
  if (device.position() != 0 || cpu_is_preferred()) return device;
  inform_once(
      "gpu-not-functional",
      "gpu: no functional GPU; data stays on the CPU. \"rosin devices\" says why. (No action is required if you "
      "want to run on the CPU.)");
  return device;
}

Device detail::device_of_cu() {
  if (functional("CUDA")) return get_device("CUDA");
  throw Error(ErrorKind::device,
              "cu: CUDA is not functional (" + why_not("CUDA") + "); use gpu(x) to fall back to the CPU");
}

Rng& default_device_rng(const Device&) { return default_rng(); }

Device device_of(ModelView model) {
  OneDevice visitor;
  model.visit_with(visitor);
  return visitor.device.value_or(Device());
}

}  // namespace rosin
