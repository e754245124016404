// Moves between devices. The CPU is the only one so far, so that a move is the identity on handles.
#include <rosin/move.hpp>

#include <optional>

#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/model.hpp>

#include "graph/context.hpp"

namespace rosin {
namespace {

/// The device of the first array and its path; an array elsewhere is an error.
class OneDevice : public ModelVisitor {
 public:
  void array(const Array& x, const ModelPath& path) override {
    if (x.is_nothing()) return;
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
  if (x.is_nothing() || x.device() == device) return x;
  throw Error(ErrorKind::device, "move: no way leads from " + to_string(x.device()) + " to " + to_string(device) +
                                     "; its back end is not loaded");
}

void move_arrays(ModelEdit model, const Device& device) {
  const auto call = [](void* target, const Array& x, const ModelPath&) {
    return moved(x, *static_cast<const Device*>(target));
  };
  Device target = device;
  map_arrays(model, {&target, call});
  // Parameters are evaluated when they are moved, so that a model may go to other threads.
  if (Context::current().gradient_depth.load(std::memory_order_relaxed) == 0) eval();
}

Device device_of_gpu() {
  for (const std::string& backend : supported_gpu_backends()) {
    if (functional(backend)) return get_device(backend);
  }
  inform_once(
      "gpu-not-functional",
      "gpu: no functional GPU; data stays on the CPU. \"rosin devices\" says why. (No action is required if you "
      "want to run on the CPU.)");
  return Device();
}

Device device_of_cu() {
  if (functional("CUDA")) return get_device("CUDA");
  throw Error(ErrorKind::device,
              "cu: CUDA is not functional (" + why_not("CUDA") + "); use gpu(x) to fall back to the CPU");
}

Device device_of(ModelView model) {
  OneDevice visitor;
  model.visit_with(visitor);
  return visitor.device.value_or(Device());
}

}  // namespace rosin
