// hipBLASLt: its file, functions and version, and which devices it may be asked for. Read first: vendor/blas.hpp,
// blas_types.hpp.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "amdgpu/blas_types.hpp"
#include "amdgpu/device_libraries.hpp"
#include "amdgpu/hip.hpp"
#include "vendor/blas.hpp"

namespace rosin::amdgpu {
namespace {

namespace fs = std::filesystem;

using driver::Failure;
using vendor::BlasLibrary;

/// The folders in which hipBLASLt looks for its kernels, by its own rules.
std::vector<fs::path> kernel_folders() {
  if (const std::string named = driver::variable("HIPBLASLT_TENSILE_LIBPATH"); !named.empty()) return {named};
  Dl_info file{};
  if (dladdr(reinterpret_cast<void*>(vendor::blas_library().functions.create), &file) == 0) return {};
  const fs::path beside = fs::path(file.dli_fname).parent_path();
  return {beside / "../Tensile/library", beside / "library", beside / "hipblaslt/library"};
}

bool has_kernels_for(const std::string& architecture, const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().find(architecture) != std::string::npos) return true;
  }
  return false;
}

/// Without kernels for a device the library crashes where it is asked for an algorithm; where it gets no memory for a
/// handle (26 MB in ROCm 7) it ends the process.
void check_device(const rosin_device& device) {
  const std::string architecture = device.target.substr(0, device.target.find(':'));
  bool found = false;
  for (const fs::path& folder : kernel_folders()) found = found || has_kernels_for(architecture, folder);
  if (!found) throw Failure{ROSIN_UNSUPPORTED, "hipBLASLt has no kernels for " + architecture};
  constexpr size_t wanted = size_t{64} << 20;
  size_t left = 0, total = 0;
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.memory_info(&left, &total), "question for free memory");
  if (left < wanted) throw Failure{ROSIN_UNSUPPORTED, "hipBLASLt: less than 64 MiB of device memory are free"};
}

void find_functions(const Library& library, BlasLibrary& made) {
  blas::Functions& functions = made.functions;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && made.reason.empty()) made.reason = std::string("hipBLASLt is too old: it has no ") + name;
  };
  find(functions.create, "hipblasLtCreate");
  find(functions.destroy, "hipblasLtDestroy");
  find(functions.version, "hipblasLtGetVersion");
  find(functions.operation_create, "hipblasLtMatmulDescCreate");
  find(functions.operation_destroy, "hipblasLtMatmulDescDestroy");
  find(functions.operation_set, "hipblasLtMatmulDescSetAttribute");
  find(functions.layout_create, "hipblasLtMatrixLayoutCreate");
  find(functions.layout_destroy, "hipblasLtMatrixLayoutDestroy");
  find(functions.layout_set, "hipblasLtMatrixLayoutSetAttribute");
  find(functions.preference_create, "hipblasLtMatmulPreferenceCreate");
  find(functions.preference_destroy, "hipblasLtMatmulPreferenceDestroy");
  find(functions.preference_set, "hipblasLtMatmulPreferenceSetAttribute");
  find(functions.candidates, "hipblasLtMatmulAlgoGetHeuristic");
  find(functions.matmul, "hipblasLtMatmul");
}

/// No room for sums: algorithms that want it add in an order that the library does not promise, and share flags in
/// their handle.
BlasLibrary opened() {
  driver::the_driver();
  BlasLibrary made{.name = "hipBLASLt",
                   .mark = "hipblslt",
                   .algorithm_words = blas::algorithm_words,
                   .oldest = 300,  // 0.3.0, of ROCm 5.7
                   .check_device = check_device};
  const Library library = open_library(places(), {"libhipblaslt.so.1", "libhipblaslt.so.0"});
  if (!library.handle) {
    made.reason = "hipBLASLt is missing: " + library.reason +
                  " (ROCm's package hipblaslt has it); name its folder in ROSIN_ROCM_LIBRARIES";
    return made;
  }
  find_functions(library, made);
  const bool of_5 = !library.find("hipblasLtMatrixTransform");  // which ROCm 6.0 brought
  made.numbers = of_5 ? blas::numbers_of_5() : blas::numbers();
  return made;
}

}  // namespace
}  // namespace rosin::amdgpu

namespace rosin::vendor {

const BlasLibrary& blas_library() {
  static const BlasLibrary library = amdgpu::opened();
  return library;
}

Blas& blas_of(rosin_device& device) { return amdgpu::DeviceLibraries::of<Blas>(device); }

}  // namespace rosin::vendor
