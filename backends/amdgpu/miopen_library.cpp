// See miopen_library.hpp.
#include "amdgpu/miopen_library.hpp"

namespace rosin::amdgpu {

using driver::Failure;

DnnLibrary::DnnLibrary() {
  const Library library = open_library(places(), {"libMIOpen.so.1"});
  if (!library.handle) {
    reason_ = "MIOpen is missing: " + library.reason +
              " (ROCm's package miopen-hip has it); name its folder in ROSIN_ROCM_LIBRARIES";
    return;
  }
  find_version(library);
  if (reason_.empty()) find_functions(library);
}

void DnnLibrary::find_version(const Library& library) {
  if (!is_of_this_runtime(library)) {
    reason_ = "MIOpen is built for another HIP runtime than the one in use; both must be of one ROCm";
    return;
  }
  const auto version = reinterpret_cast<int (*)(size_t*, size_t*, size_t*)>(library.find("miopenGetVersion"));
  size_t major = 0, minor = 0, patch = 0;
  if (!version || version(&major, &minor, &patch) != miopen::success) {
    reason_ = "MIOpen does not say its version";
    return;
  }
  number_ = {major, minor};
  version_ = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  if (!is_at_least(2, 20)) {  // of ROCm 5.7
    reason_ = "MIOpen is too old: it is " + version_ + ", 2.20 is needed; install ROCm 5.7 or later";
  }
}

void DnnLibrary::find_functions(const Library& library) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && reason_.empty()) reason_ = std::string("MIOpen is too old: it has no ") + name;
  };
  find(functions_.error_text, "miopenGetErrorString");
  find(functions_.create, "miopenCreate");
  find(functions_.destroy, "miopenDestroy");
  find(functions_.set_stream, "miopenSetStream");
  find(functions_.tensor_create, "miopenCreateTensorDescriptor");
  find(functions_.tensor_destroy, "miopenDestroyTensorDescriptor");
  find(functions_.tensor_set, "miopenSetNdTensorDescriptorWithLayout");
  find(functions_.convolution_create, "miopenCreateConvolutionDescriptor");
  find(functions_.convolution_destroy, "miopenDestroyConvolutionDescriptor");
  find(functions_.convolution_set, "miopenInitConvolutionNdDescriptor");
  find(functions_.convolution_set_groups, "miopenSetConvolutionGroupCount");
  find(functions_.convolution_set_attribute, "miopenSetConvolutionAttribute");
  find(functions_.forward.solutions, "miopenConvolutionForwardGetSolution");
  find(functions_.forward.workspace, "miopenConvolutionForwardGetSolutionWorkspaceSize");
  find(functions_.forward.compile, "miopenConvolutionForwardCompileSolution");
  find(functions_.forward.run, "miopenConvolutionForwardImmediate");
  find(functions_.forward.find, "miopenFindConvolutionForwardAlgorithm");
  find(functions_.data.solutions, "miopenConvolutionBackwardDataGetSolution");
  find(functions_.data.workspace, "miopenConvolutionBackwardDataGetSolutionWorkspaceSize");
  find(functions_.data.compile, "miopenConvolutionBackwardDataCompileSolution");
  find(functions_.data.run, "miopenConvolutionBackwardDataImmediate");
  find(functions_.data.find, "miopenFindConvolutionBackwardDataAlgorithm");
  find(functions_.weights.solutions, "miopenConvolutionBackwardWeightsGetSolution");
  find(functions_.weights.workspace, "miopenConvolutionBackwardWeightsGetSolutionWorkspaceSize");
  find(functions_.weights.compile, "miopenConvolutionBackwardWeightsCompileSolution");
  find(functions_.weights.run, "miopenConvolutionBackwardWeightsImmediate");
  find(functions_.weights.find, "miopenFindConvolutionBackwardWeightsAlgorithm");
}

void DnnLibrary::check(int status, const char* what) const {
  if (status == miopen::success) return;
  const bool memory = status == miopen::allocation_failed;
  const bool fails = status == miopen::internal_error || status == miopen::unknown_error;
  const char* const said = functions_.error_text ? functions_.error_text(status) : nullptr;
  std::string text = std::string("MIOpen: ") + what + ": ";
  text += memory ? "out of memory" : said && *said ? said : "it gives no reason";
  throw Failure{memory  ? ROSIN_OUT_OF_MEMORY
                : fails ? ROSIN_INVALID
                        : ROSIN_UNSUPPORTED,
                text + " (status " + std::to_string(status) + ")"};
}

const DnnLibrary& dnn_library() {
  driver::the_driver();
  static const DnnLibrary library;
  return library;
}

DnnHandle::DnnHandle() { dnn_library().check(dnn_library().functions().create(&handle_), "start"); }

DnnHandle::~DnnHandle() { dnn_library().functions().destroy(handle_); }

/// Setting one takes MIOpen a while.
void DnnHandle::set_stream(driver::Stream stream) {
  if (stream == stream_) return;
  dnn_library().check(dnn_library().functions().set_stream(handle_, stream), "use of a stream");
  stream_ = stream;
}

/// Whether the device is lost is the driver's to say.
void DnnHandle::check(int status, const char* what) {
  if (status == miopen::success) return;
  size_t free = 0, total = 0;
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.memory_info(&free, &total), what);
  dnn_library().check(status, what);
}

}  // namespace rosin::amdgpu
