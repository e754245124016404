// See cudnn.hpp.
#include "cuda/cudnn.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/device_libraries.hpp"
#include "vendor/convolution_trial.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using vendor::ConvolutionTrial;
using vendor::DimOrder;

constexpr uint64_t part_of_large_room = 32;

}  // namespace

const rosin_host* host_of_plans = nullptr;

Dnn::Dnn(const rosin_device& device) : reason_(dnn_library().reason()) {
  char name[256] = "";
  driver::the_driver().functions.device_name(name, sizeof name - 1, device.number);
  kept_for_ = device.target + " " + name;
  if (!reason_.empty()) return;
  try {
    dnn_library().check(dnn_library().functions().create(&handle_), "start");
    size_t free = 0, total = 0;
    driver::the_driver().check(driver::the_driver().functions.memory_info(&free, &total), "question for memory");
    large_room_ = total / part_of_large_room;
    try_out();
  } catch (const Failure& failure) {
    reason_ = failure.text;
  }
}

Dnn::~Dnn() {
  found_.forget();
  if (handle_) dnn_library().functions().destroy(handle_);
}

DnnTarget Dnn::target() const { return {&dnn_library(), handle_, nullptr, host_of_plans, kept_for_}; }

void Dnn::run(driver::Stream stream, const DnnWays& ways, size_t way, const Address* arrays, Address workspace) {
  const DnnLibrary& library = dnn_library();
  const DnnGraph& graph = ways.graph();
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, at] : graph.arrays) {
    ids.push_back(id);
    pointers.push_back(reinterpret_cast<void*>(arrays[at]));
  }
  for (const auto& [id, number] : graph.numbers) {
    ids.push_back(id);
    pointers.push_back(const_cast<float*>(&number));
  }
  for (const auto& [id, bytes] : graph.rooms) {
    ids.push_back(id);
    pointers.push_back(reinterpret_cast<void*>(workspace));
    workspace += bytes;
  }
  const DnnDescriptor pack(library, dnn::Kind::variant_pack);
  pack.set(dnn::Attribute::pack_ids, dnn::ValueType::int64, ids);
  pack.set(dnn::Attribute::pack_pointers, dnn::ValueType::pointer, pointers);
  pack.set(dnn::Attribute::pack_workspace, dnn::ValueType::pointer, reinterpret_cast<void*>(workspace));
  pack.finish("arrays of a call");
  use(stream, graph.name.c_str(),
      [&](dnn::Handle handle) { return library.functions().execute(handle, ways.plan(way), pack.get()); });
}

void Dnn::check(int status, const char* what) {
  if (status == dnn::success) return;
  // Whether the device is lost is the driver's to say.
  size_t free = 0, total = 0;
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.memory_info(&free, &total), what);
  dnn_library().check(status, what);
}

/// A convolution of small integers must be exact; of one with NaN, relu must leave the NaN.
void Dnn::try_out() {
  ConvolutionTrial trial(DimOrder::channels_first, DimOrder::channels_first, false);
  if (computed(*this, trial, false) != trial.wanted()) {
    throw Failure{ROSIN_UNSUPPORTED, "cuDNN " + dnn_library().version() + " computes a small convolution wrongly"};
  }
  trial.x[0] = NAN;
  const std::vector<float> wanted = trial.wanted();
  try {
    const std::vector<float> got = computed(*this, trial, true);
    takes_epilogues_ = true;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool same = std::isnan(wanted[i]) ? std::isnan(got[i]) : got[i] == std::max(wanted[i] + 1, 0.0f);
      takes_epilogues_ = takes_epilogues_ && same;
    }
  } catch (const Failure& failure) {
    if (failure.status != ROSIN_UNSUPPORTED) throw;
  }
}

Dnn& dnn_of(rosin_device& device) { return DeviceLibraries::of<Dnn>(device); }

}  // namespace rosin::cuda
