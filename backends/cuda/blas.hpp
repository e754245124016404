// cuBLASLt, opened at run time: the products that it computes for a device. Where it is missing, too old or does not
// work, rosin goes on with kernels of its own. Read first: cuda.hpp, matmul.hpp, blas_types.hpp. Read next:
// blas_call.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/blas_types.hpp"
#include "cuda/libraries.hpp"
#include "cuda/matmul.hpp"
#include "driver/driver.hpp"

namespace rosin::cuda {

/// The library, opened when it is first asked for. `driver_version`: what it is made of must run there.
class BlasLibrary {
 public:
  explicit BlasLibrary(int driver_version);

  /// Why it cannot be used; empty: it can.
  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  const blas::Functions& functions() const { return functions_; }

 private:
  void find_functions(const Library& library);
  void find_version();

  blas::Functions functions_{};
  std::string reason_, version_;
};

/// The one library.
const BlasLibrary& blas_library();

/// Throws what a status of cuBLASLt means; `what` is what was asked for.
void check_blas(int status, const char* what);

/// What differs from run to run.
struct BlasRun {
  const driver::Address* arrays = nullptr;  // of the call, in their order
  driver::Address workspace = 0;
  double alpha = 1, beta = 1;
};

/// How a product is computed, as cuBLASLt takes it.
class BlasPlan {
 public:
  /// Throws ROSIN_UNSUPPORTED where cuBLASLt does not compute it within `workspace` bytes.
  BlasPlan(blas::Handle handle, const Product& product, uint64_t workspace);

  const Product& product() const { return product_; }
  uint64_t workspace_limit() const { return workspace_limit_; }
  const std::vector<blas::Candidate>& candidates() const { return candidates_; }
  void choose(const blas::Candidate& candidate) { chosen_ = candidate; }
  /// Takes an algorithm that was found elsewhere; false where it is none for this product.
  bool choose(const blas::Algorithm& algorithm);
  const blas::Candidate& chosen() const { return chosen_; }
  void run(driver::Stream stream, const BlasRun& run) const;

 private:
  template <class T> struct Destroy {
    int (*function)(T);
    void operator()(T what) const { function(what); }
  };
  template <class T> using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T>>;

  Owned<blas::Layout> layout_of(const StoredMatrix& matrix) const;
  Owned<blas::Operation> operation_of() const;
  void find_candidates();
  void point(blas::OperationAttribute which, int array, const driver::Address* arrays) const;

  blas::Handle handle_;
  Product product_;
  uint64_t workspace_limit_;
  Owned<blas::Operation> operation_;
  Owned<blas::Layout> left_, right_, residual_, result_;
  std::vector<blas::Candidate> candidates_;
  blas::Candidate chosen_{};
};

/// cuBLASLt on one device.
class Blas {
 public:
  /// With the device's context current. A first product is computed; reason() says where that fails.
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  const std::string& reason() const { return reason_; }
  /// Whether relu lets NaN through, as rosin's does.
  bool relu_keeps_nan() const { return relu_keeps_nan_; }
  blas::Handle handle() const { return handle_; }

 private:
  void try_out();

  blas::Handle handle_ = nullptr;
  std::string reason_;
  bool relu_keeps_nan_ = false;
};

/// That of the device, made when it is first asked for.
Blas& blas_of(rosin_device& device);

}  // namespace rosin::cuda
