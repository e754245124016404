// A vendor's library of products (cuBLASLt, hipBLASLt), opened at run time: what it computes for a device. Where it is
// missing, too old or does not work, rosin goes on with kernels of its own. Read first: matmul.hpp, blas_types.hpp.
// Read next: blas_call.cpp, cuda/cublaslt.cpp, amdgpu/hipblaslt.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/driver.hpp"
#include "vendor/blas_types.hpp"
#include "vendor/matmul.hpp"

namespace rosin::vendor {

/// A library as its plug-in opens it, once.
struct BlasLibrary {
  const char* name = "";
  char mark[9] = "";      // of the ways that are kept of it
  std::string reason{};   // why it cannot be used; empty: it can
  std::string version{};  // where it says it without a handle
  blas::Functions functions{};
  blas::Numbers numbers{};
  size_t algorithm_words = 0;   // of the library's own
  uint64_t most_room = 0;       // bytes that a product gets to work in
  bool has_relu_bits = false;   // relu's auxiliary is one bit an element, as rosin's
  bool joins_gradients = true;  // slopes of activations within the product, not in a slower pass of its own
  int oldest = 0;               // of the versions that a handle says
  /// Throws with the reason where the library must not be asked to start on a device; null: it always may be.
  void (*check_device)(const rosin_device& device) = nullptr;
};

/// The one library. Defined by each plug-in.
const BlasLibrary& blas_library();

/// Throws what a status of the library means; `what` is what was asked for.
void check_blas(int status, const char* what);

/// What differs from run to run.
struct BlasRun {
  const driver::Address* arrays = nullptr;  // of the call, in their order
  driver::Address workspace = 0;
  double alpha = 1, beta = 1;
};

/// How a product is computed, as the library takes it.
class BlasPlan {
 public:
  /// Throws ROSIN_UNSUPPORTED where the library does not compute it within `workspace` bytes.
  BlasPlan(blas::Handle handle, const Product& product, uint64_t workspace);

  const Product& product() const { return product_; }
  uint64_t workspace_limit() const { return workspace_limit_; }
  /// An algorithm, and the bytes of room that it needs.
  struct Candidate {
    blas::Algorithm algorithm;
    uint64_t workspace = 0;
  };
  const std::vector<Candidate>& candidates() const { return candidates_; }
  void choose(const Candidate& candidate) { chosen_ = candidate; }
  /// Takes an algorithm that was found elsewhere; false where it is none for this product.
  bool choose(const blas::Algorithm& algorithm);
  const Candidate& chosen() const { return chosen_; }
  void run(driver::Stream stream, const BlasRun& run) const;

 private:
  template <class T> struct Destroy {
    int (*function)(T);
    void operator()(T what) const { function(what); }
  };
  template <class T> using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T>>;

  Owned<blas::Layout> layout_of(const StoredMatrix& matrix) const;
  Owned<blas::Operation> operation_of() const;
  Owned<blas::Preference> preference() const;
  void find_candidates();
  void point(int which, int array, const driver::Address* arrays) const;

  blas::Handle handle_;
  Product product_;
  uint64_t workspace_limit_;
  Owned<blas::Operation> operation_;
  Owned<blas::Layout> left_, right_, residual_, result_;
  std::vector<Candidate> candidates_;
  Candidate chosen_;
};

/// The library on one device.
class Blas {
 public:
  /// With the device's context current. A first product is computed; reason() says where that fails.
  explicit Blas(const rosin_device& device);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  /// Whether relu lets NaN through, as rosin's does.
  bool relu_keeps_nan() const { return relu_keeps_nan_; }
  blas::Handle handle() const { return handle_; }

 private:
  void find_version();
  void try_out();

  blas::Handle handle_ = nullptr;
  std::string reason_, version_;
  bool relu_keeps_nan_ = false;
};

/// That of the device, made when it is first asked for. Defined by each plug-in.
Blas& blas_of(rosin_device& device);

}  // namespace rosin::vendor
