// cuBLASLt: its file, functions and version. Read first: vendor/blas.hpp, blas_types.hpp.
#include "cuda/blas_types.hpp"
#include "cuda/cuda.hpp"
#include "cuda/device_libraries.hpp"
#include "cuda/libraries.hpp"
#include "vendor/blas.hpp"
#include "vendor/calls.hpp"

namespace rosin::cuda {
namespace {

using vendor::BlasLibrary;

constexpr int oldest_of_11 = 11;  // 11.11 came with CUDA 11.8

std::vector<std::string> names_for(int driver_version) {
  std::vector<std::string> names;
  for (int major = driver_version / 1000; major >= 11; --major) {
    names.push_back("libcublasLt.so." + std::to_string(major));
  }
  return names;
}

void find_functions(const Library& library, BlasLibrary& made) {
  blas::Functions& functions = made.functions;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && made.reason.empty()) made.reason = std::string("cuBLASLt is too old: it has no ") + name;
  };
  find(functions.create, "cublasLtCreate");
  find(functions.destroy, "cublasLtDestroy");
  find(functions.operation_create, "cublasLtMatmulDescCreate");
  find(functions.operation_destroy, "cublasLtMatmulDescDestroy");
  find(functions.operation_set, "cublasLtMatmulDescSetAttribute");
  find(functions.layout_create, "cublasLtMatrixLayoutCreate");
  find(functions.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(functions.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(functions.preference_create, "cublasLtMatmulPreferenceCreate");
  find(functions.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(functions.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(functions.candidates, "cublasLtMatmulAlgoGetHeuristic");
  find(functions.check, "cublasLtMatmulAlgoCheck");
  find(functions.matmul, "cublasLtMatmul");
}

void find_version(const Library& library, BlasLibrary& made) {
  const auto property = reinterpret_cast<blas::PropertyFunction>(library.find("cublasLtGetProperty"));
  int parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!property || property(static_cast<blas::Property>(i), &parts[i]) != blas::success) {
      made.reason = "cuBLASLt does not say its version";
      return;
    }
  }
  made.version = std::to_string(parts[0]) + "." + std::to_string(parts[1]) + "." + std::to_string(parts[2]);
  if (parts[0] < 11 || (parts[0] == 11 && parts[1] < oldest_of_11)) {
    made.reason = "cuBLASLt is too old: it is " + made.version + ", 11.11 is needed (that of CUDA 11.8)";
  }
}

BlasLibrary opened() {
  BlasLibrary made{.name = "cuBLASLt",
                   .mark = "cublaslt",
                   .numbers = blas::numbers(),
                   .algorithm_words = blas::algorithm_words,
                   .most_room = vendor::Workspace::most,
                   .has_relu_bits = true,
                   .joins_gradients = false};  // that pass takes three times as long as a kernel of rosin's (13.1)
  const Library library = open_library(names_for(driver_version()));
  if (!library.handle) {
    made.reason =
        "cuBLASLt is missing: " + library.reason +
        " (the CUDA toolkit has it, and Python's package nvidia-cublas); name its folder in ROSIN_CUDA_LIBRARIES";
    return made;
  }
  find_functions(library, made);
  if (made.reason.empty()) find_version(library, made);
  return made;
}

}  // namespace
}  // namespace rosin::cuda

namespace rosin::vendor {

const BlasLibrary& blas_library() {
  static const BlasLibrary library = cuda::opened();
  return library;
}

Blas& blas_of(rosin_device& device) { return cuda::DeviceLibraries::of<Blas>(device); }

}  // namespace rosin::vendor
