// See cudnn_library.hpp.
#include "cuda/cudnn_library.hpp"

#include <algorithm>

#include "common/failure.hpp"

namespace rosin::cuda {
namespace {

using plugin::Failure;

constexpr int major_version = 9;

// The one that is known first; the others so that what is there instead can be named.
const std::vector<std::string> names{"libcudnn.so.9", "libcudnn.so.10", "libcudnn.so.8"};

}  // namespace

DnnLibrary::DnnLibrary(int driver_version) {
  const Library library = open_library(names);
  if (!library.handle) {
    reason_ = "cuDNN is missing: " + library.reason +
              " (NVIDIA has it apart from the toolkit, and Python's package nvidia-cudnn-cu" +
              std::to_string(driver_version / 1000) + "); name its folder in ROSIN_CUDA_LIBRARIES";
    return;
  }
  find_version(library, driver_version);
  if (reason_.empty()) find_functions(library);
  if (reason_.empty()) find_recurrent(library);
}

/// Before other functions: those of another version may be others.
void DnnLibrary::find_version(const Library& library, int driver_version) {
  const auto property = reinterpret_cast<int (*)(dnn::Property, int*)>(library.find("cudnnGetProperty"));
  int parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!property || property(static_cast<dnn::Property>(i), &parts[i]) != dnn::success) {
      reason_ = "cuDNN does not say its version";
      return;
    }
  }
  major_ = parts[0];
  minor_ = parts[1];
  version_ = std::to_string(parts[0]) + "." + std::to_string(parts[1]) + "." + std::to_string(parts[2]);
  if (parts[0] < major_version) reason_ = "cuDNN is too old: it is " + version_ + ", 9 is needed";
  else if (parts[0] > major_version) reason_ = "cuDNN is " + version_ + ", which this rosin does not know: 9 is needed";
  else check_runtime(library, driver_version);
}

/// It must not be built for a CUDA of a later major version than the driver's.
void DnnLibrary::check_runtime(const Library& library, int driver_version) {
  const auto runtime = reinterpret_cast<size_t (*)()>(library.find("cudnnGetCudartVersion"));
  const auto major = [](size_t version) { return std::to_string(version / 1000); };
  const auto driver = static_cast<size_t>(driver_version);
  if (!runtime || runtime() / 1000 <= driver / 1000) return;
  reason_ = "cuDNN " + version_ + " is built for CUDA " + major(runtime()) + ", the driver is of CUDA " +
            major(driver) + "; Python's package nvidia-cudnn-cu" + major(driver) + " fits";
}

void DnnLibrary::find_functions(const Library& library) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && reason_.empty()) reason_ = std::string("cuDNN is too old: it has no ") + name;
  };
  find(functions_.last_error, "cudnnGetLastErrorString");
  find(functions_.create, "cudnnCreate");
  find(functions_.destroy, "cudnnDestroy");
  find(functions_.set_stream, "cudnnSetStream");
  find(functions_.descriptor_create, "cudnnBackendCreateDescriptor");
  find(functions_.descriptor_destroy, "cudnnBackendDestroyDescriptor");
  find(functions_.descriptor_finish, "cudnnBackendFinalize");
  find(functions_.set, "cudnnBackendSetAttribute");
  find(functions_.get, "cudnnBackendGetAttribute");
  find(functions_.execute, "cudnnBackendExecute");
}

void DnnLibrary::find_recurrent(const Library& library) {
  has_recurrent_ = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    has_recurrent_ = has_recurrent_ && function;
  };
  find(recurrent_.tensor_create, "cudnnCreateTensorDescriptor");
  find(recurrent_.tensor_destroy, "cudnnDestroyTensorDescriptor");
  find(recurrent_.tensor_set, "cudnnSetTensorNdDescriptor");
  find(recurrent_.dropout_create, "cudnnCreateDropoutDescriptor");
  find(recurrent_.dropout_destroy, "cudnnDestroyDropoutDescriptor");
  find(recurrent_.dropout_set, "cudnnSetDropoutDescriptor");
  find(recurrent_.create, "cudnnCreateRNNDescriptor");
  find(recurrent_.destroy, "cudnnDestroyRNNDescriptor");
  find(recurrent_.set, "cudnnSetRNNDescriptor_v8");
  find(recurrent_.sequence_create, "cudnnCreateRNNDataDescriptor");
  find(recurrent_.sequence_destroy, "cudnnDestroyRNNDataDescriptor");
  find(recurrent_.sequence_set, "cudnnSetRNNDataDescriptor");
  find(recurrent_.room, "cudnnGetRNNTempSpaceSizes");
  find(recurrent_.weight_bytes, "cudnnGetRNNWeightSpaceSize");
  find(recurrent_.weight_places, "cudnnGetRNNWeightParams");
  find(recurrent_.forward, "cudnnRNNForward");
  find(recurrent_.backward_data, "cudnnRNNBackwardData_v8");
  find(recurrent_.backward_weights, "cudnnRNNBackwardWeights_v8");
}

void DnnLibrary::check(int status, const char* what) const {
  if (status == dnn::success) return;
  char said[512] = "";
  if (functions_.last_error) functions_.last_error(said, sizeof said);
  const bool memory = status == dnn::host_allocation_failed || status == dnn::device_allocation_failed;
  const rosin_status meaning = memory                           ? ROSIN_OUT_OF_MEMORY
                               : status < dnn::execution_failed ? ROSIN_UNSUPPORTED
                                                                : ROSIN_INVALID;
  std::string text = std::string("cuDNN: ") + what + ": ";
  if (memory) text += "out of memory";
  else text += *said ? said : "it gives no reason";
  throw Failure{meaning, text + " (status " + std::to_string(status) + ")"};
}

DnnDescriptor::DnnDescriptor(const DnnLibrary& library, dnn::Kind kind) : library_(&library) {
  library.check(library.functions().descriptor_create(kind, &descriptor_), "a descriptor");
}

DnnDescriptor::~DnnDescriptor() {
  if (descriptor_) library_->functions().descriptor_destroy(descriptor_);
}

void DnnDescriptor::set(dnn::Attribute which, dnn::ValueType type, int64_t count, const void* values) const {
  library_->check(library_->functions().set(descriptor_, which, type, count, values), "an attribute");
}

int64_t DnnDescriptor::get(dnn::Attribute which, dnn::ValueType type, int64_t most, void* values) const {
  int64_t count = 0;
  library_->check(library_->functions().get(descriptor_, which, type, most, &count, values), "a question");
  return std::clamp(count, int64_t{0}, most);
}

std::string DnnDescriptor::text(dnn::Attribute which) const {
  int64_t bytes = 0;
  library_->check(library_->functions().get(descriptor_, which, dnn::ValueType::text, 0, &bytes, nullptr), "a text");
  std::string all(static_cast<size_t>(std::max<int64_t>(bytes, 0)), '\0');
  all.resize(static_cast<size_t>(get(which, dnn::ValueType::text, bytes, all.data())));
  return all;
}

void DnnDescriptor::finish(const char* what) const {
  library_->check(library_->functions().descriptor_finish(descriptor_), what);
}

std::vector<DnnDescriptor> DnnDescriptor::parts(dnn::Attribute which, dnn::Kind kind) const {
  int64_t there = 0;
  library_->check(library_->functions().get(descriptor_, which, dnn::ValueType::descriptor, 0, &there, nullptr),
                  "a question");
  std::vector<DnnDescriptor> all;
  std::vector<dnn::Descriptor> plain;
  for (int64_t i = 0; i < there; ++i) plain.push_back(all.emplace_back(*library_, kind).get());
  if (there > 0) {
    const auto count = static_cast<size_t>(get(which, dnn::ValueType::descriptor, there, plain.data()));
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
  }
  return all;
}

}  // namespace rosin::cuda
