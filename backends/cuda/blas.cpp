// See blas.hpp.
#include "cuda/blas.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuda/device_libraries.hpp"
#include "cuda/scratch.hpp"

namespace rosin::cuda {
namespace {

using blas::Candidate;
using driver::Address;
using driver::Failure;

constexpr int most_candidates = 8;
constexpr int oldest_of_11 = 11;  // 11.11 came with CUDA 11.8

std::vector<std::string> names_for(int driver_version) {
  std::vector<std::string> names;
  for (int major = driver_version / 1000; major >= 11; --major) {
    names.push_back("libcublasLt.so." + std::to_string(major));
  }
  return names;
}

blas::Type type_of(int32_t type) {
  switch (type) {
    case ROSIN_FLOAT16: return blas::Type::float16;
    case ROSIN_BFLOAT16: return blas::Type::bfloat16;
    case ROSIN_FLOAT64: return blas::Type::float64;
    default: return blas::Type::float32;
  }
}

/// Halves are summed in Float32 in any case.
blas::Compute compute_of(const Product& product) {
  if (product.type == ROSIN_FLOAT64) return blas::Compute::float64;
  if (product.type != ROSIN_FLOAT32) return blas::Compute::float32;
  switch (product.compute) {
    case ROSIN_COMPUTE_TF32: return blas::Compute::fast_tf32;
    case ROSIN_COMPUTE_FLOAT16: return blas::Compute::fast_float16;
    case ROSIN_COMPUTE_BFLOAT16: return blas::Compute::fast_bfloat16;
    default: return blas::Compute::float32;
  }
}

uint32_t epilogue_of(const rosin_epilogue& epilogue) {
  uint32_t all = 0;
  if (epilogue.bias) all |= blas::bias;
  if (epilogue.auxiliary) all |= blas::auxiliary;
  switch (epilogue.activation) {
    case ROSIN_ACTIVATION_RELU: all |= blas::relu; break;
    case ROSIN_ACTIVATION_GELU: all |= blas::gelu; break;
    case ROSIN_ACTIVATION_RELU_GRADIENT: all |= blas::relu_gradient; break;
    case ROSIN_ACTIVATION_GELU_GRADIENT: all |= blas::gelu_gradient; break;
    default: break;
  }
  if (epilogue.bias_gradient) all |= all == 0 ? blas::sums_of_left : blas::sums_of_result;
  return all == 0 ? static_cast<uint32_t>(blas::plain) : all;
}

/// Alpha, or beta: in the type that sums are kept in.
class Factor {
 public:
  Factor(int32_t type, double value)
      : single_(static_cast<float>(value)), wide_(value), is_wide_(type == ROSIN_FLOAT64) {}
  const void* place() const { return is_wide_ ? static_cast<const void*>(&wide_) : &single_; }

 private:
  float single_;
  double wide_;
  bool is_wide_;
};

}  // namespace

BlasLibrary::BlasLibrary(int driver_version) {
  const Library library = open_library(names_for(driver_version));
  if (!library.handle) {
    reason_ = "cuBLASLt is missing: " + library.reason +
              " (the CUDA toolkit has it, and Python's package nvidia-cublas); name its folder in ROSIN_CUDA_LIBRARIES";
    return;
  }
  find_functions(library);
  if (reason_.empty()) find_version();
}

void BlasLibrary::find_functions(const Library& library) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && reason_.empty()) reason_ = std::string("cuBLASLt is too old: it has no ") + name;
  };
  find(functions_.property, "cublasLtGetProperty");
  find(functions_.create, "cublasLtCreate");
  find(functions_.destroy, "cublasLtDestroy");
  find(functions_.operation_create, "cublasLtMatmulDescCreate");
  find(functions_.operation_destroy, "cublasLtMatmulDescDestroy");
  find(functions_.operation_set, "cublasLtMatmulDescSetAttribute");
  find(functions_.layout_create, "cublasLtMatrixLayoutCreate");
  find(functions_.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(functions_.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(functions_.preference_create, "cublasLtMatmulPreferenceCreate");
  find(functions_.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(functions_.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(functions_.candidates, "cublasLtMatmulAlgoGetHeuristic");
  find(functions_.check, "cublasLtMatmulAlgoCheck");
  find(functions_.matmul, "cublasLtMatmul");
}

void BlasLibrary::find_version() {
  int parts[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (functions_.property(static_cast<blas::Property>(i), &parts[i]) != blas::success) {
      reason_ = "cuBLASLt does not say its version";
      return;
    }
  }
  version_ = std::to_string(parts[0]) + "." + std::to_string(parts[1]) + "." + std::to_string(parts[2]);
  if (parts[0] < 11 || (parts[0] == 11 && parts[1] < oldest_of_11)) {
    reason_ = "cuBLASLt is too old: it is " + version_ + ", 11.11 is needed (that of CUDA 11.8)";
  }
}

void check_blas(int status, const char* what) {
  struct Meaning {
    int status;
    rosin_status meaning;
    const char* text;
  };
  constexpr Meaning meanings[] = {{blas::alloc_failed, ROSIN_OUT_OF_MEMORY, "out of memory"},
                                  {blas::arch_mismatch, ROSIN_UNSUPPORTED, "not on this device"},
                                  {blas::not_supported, ROSIN_UNSUPPORTED, "not supported"},
                                  {blas::not_initialized, ROSIN_UNSUPPORTED, "it does not start on this device"},
                                  {blas::mapping_error, ROSIN_DEVICE_FAULT, "the device failed"},
                                  {blas::execution_failed, ROSIN_DEVICE_FAULT, "the device failed"},
                                  {blas::internal_error, ROSIN_DEVICE_FAULT, "the device failed"}};
  if (status == blas::success) return;
  const auto* known =
      std::find_if(std::begin(meanings), std::end(meanings), [&](const Meaning& one) { return one.status == status; });
  const bool is_known = known != std::end(meanings);
  throw Failure{is_known ? known->meaning : ROSIN_INVALID, std::string("cuBLASLt: ") + what + ": " +
                                                               (is_known ? known->text : "the arguments are refused") +
                                                               " (status " + std::to_string(status) + ")"};
}

BlasPlan::BlasPlan(blas::Handle handle, const Product& product, uint64_t workspace)
    : handle_(handle), product_(product), workspace_limit_(workspace), operation_(operation_of()),
      left_(layout_of(product.left)), right_(layout_of(product.right)), residual_(layout_of(product.residual)),
      result_(layout_of(product.result)) {
  find_candidates();
}

BlasPlan::Owned<blas::Layout> BlasPlan::layout_of(const StoredMatrix& matrix) const {
  const blas::Functions& f = blas_library().functions();
  blas::Layout made = nullptr;
  check_blas(f.layout_create(&made, type_of(product_.type), static_cast<uint64_t>(matrix.rows),
                             static_cast<uint64_t>(matrix.columns), matrix.leading),
             "layout of a matrix");
  Owned<blas::Layout> layout(made, {f.layout_destroy});
  if (product_.batch > 1) {
    const auto count = static_cast<int32_t>(product_.batch);
    if (count != product_.batch) throw Failure{ROSIN_UNSUPPORTED, "cuBLASLt: a batch that is too large"};
    check_blas(f.layout_set(made, blas::LayoutAttribute::batch_count, &count, sizeof count), "count of a batch");
    check_blas(f.layout_set(made, blas::LayoutAttribute::batch_stride, &matrix.batch_stride, sizeof(int64_t)),
               "stride of a batch");
  }
  return layout;
}

BlasPlan::Owned<blas::Operation> BlasPlan::operation_of() const {
  const blas::Functions& f = blas_library().functions();
  const blas::Type scale = product_.type == ROSIN_FLOAT64 ? blas::Type::float64 : blas::Type::float32;
  blas::Operation made = nullptr;
  check_blas(f.operation_create(&made, compute_of(product_), scale), "description of a product");
  Owned<blas::Operation> operation(made, {f.operation_destroy});
  const auto set = [&](blas::OperationAttribute which, auto value) {
    check_blas(f.operation_set(made, which, &value, sizeof value), "description of a product");
  };
  if (product_.left.transposed) set(blas::OperationAttribute::transpose_a, blas::transposed);
  if (product_.right.transposed) set(blas::OperationAttribute::transpose_b, blas::transposed);
  const uint32_t epilogue = epilogue_of(product_.epilogue);
  if (epilogue != blas::plain) set(blas::OperationAttribute::epilogue, epilogue);
  // Algorithms are chosen for the alignment of these, which is that of all places.
  constexpr uint64_t some_place = 64;
  if (product_.vector_at >= 0) set(blas::OperationAttribute::bias_pointer, some_place);
  if (product_.auxiliary_at >= 0) {
    set(blas::OperationAttribute::auxiliary_pointer, some_place);
    set(blas::OperationAttribute::auxiliary_leading, product_.auxiliary.leading);
    if (product_.batch > 1) set(blas::OperationAttribute::auxiliary_batch_stride, product_.auxiliary.batch_stride);
  }
  return operation;
}

void BlasPlan::find_candidates() {
  const blas::Functions& f = blas_library().functions();
  blas::Preference made = nullptr;
  check_blas(f.preference_create(&made), "preferences");
  const Owned<blas::Preference> preference(made, {f.preference_destroy});
  const auto set = [&](blas::PreferenceAttribute which, auto value) {
    check_blas(f.preference_set(made, which, &value, sizeof value), "preferences");
  };
  set(blas::PreferenceAttribute::workspace, workspace_limit_);
  // Sums of halves are kept in Float32 to the end, and no order of additions depends on which group comes first.
  const bool exact = product_.deterministic || product_.compute == ROSIN_COMPUTE_EXACT;
  set(blas::PreferenceAttribute::reductions,
      static_cast<uint32_t>(exact ? blas::in_compute_type : blas::any_reduction));
  for (const auto which : {blas::PreferenceAttribute::alignment_a, blas::PreferenceAttribute::alignment_b,
                           blas::PreferenceAttribute::alignment_c, blas::PreferenceAttribute::alignment_d}) {
    set(which, static_cast<uint32_t>(product_.alignment));
  }
  candidates_.resize(most_candidates);
  int count = 0;
  const int status = f.candidates(handle_, operation_.get(), left_.get(), right_.get(), residual_.get(), result_.get(),
                                  made, most_candidates, candidates_.data(), &count);
  // What it does not compute is an error of many names.
  if (status == blas::alloc_failed) check_blas(status, "search for an algorithm");
  candidates_.resize(status == blas::success ? static_cast<size_t>(std::max(count, 0)) : 0);
  std::erase_if(candidates_,
                [&](const Candidate& one) { return one.status != blas::success || one.workspace > workspace_limit_; });
  if (candidates_.empty()) throw Failure{ROSIN_UNSUPPORTED, "cuBLASLt: it has no algorithm for this product"};
  chosen_ = candidates_.front();
}

bool BlasPlan::choose(const blas::Algorithm& algorithm) {
  Candidate checked{};
  const int status = blas_library().functions().check(handle_, operation_.get(), left_.get(), right_.get(),
                                                      residual_.get(), result_.get(), &algorithm, &checked);
  if (status != blas::success || checked.workspace > workspace_limit_) return false;
  checked.algorithm = algorithm;
  chosen_ = checked;
  return true;
}

void BlasPlan::point(blas::OperationAttribute which, int array, const Address* arrays) const {
  if (array < 0) return;
  check_blas(blas_library().functions().operation_set(operation_.get(), which, &arrays[array], sizeof(Address)),
             "place of an array");
}

void BlasPlan::run(driver::Stream stream, const BlasRun& run) const {
  const blas::Functions& f = blas_library().functions();
  const Address* arrays = run.arrays;
  point(blas::OperationAttribute::bias_pointer, product_.vector_at, arrays);
  point(blas::OperationAttribute::auxiliary_pointer, product_.auxiliary_at, arrays);
  const Factor alpha(product_.type, run.alpha), beta(product_.type, product_.adds() ? run.beta : 0);
  const auto at = [&](int array, int64_t offset) {
    return arrays[array] + static_cast<uint64_t>(offset) * element_bytes(product_.type);
  };
  for (const Product::Part& part : product_.parts) {
    const Address result = at(product_.result_at, part.result);
    const Address added = product_.residual_at >= 0 ? at(product_.residual_at, part.residual) : result;
    const auto pointer = [](Address address) { return reinterpret_cast<void*>(address); };
    check_blas(f.matmul(handle_, operation_.get(), alpha.place(), pointer(at(product_.left_at, part.left)), left_.get(),
                        pointer(at(product_.right_at, part.right)), right_.get(), beta.place(), pointer(added),
                        residual_.get(), pointer(result), result_.get(), &chosen_.algorithm, pointer(run.workspace),
                        chosen_.workspace, stream),
               "product");
  }
}

Blas::Blas() : reason_(blas_library().reason()) {
  if (!reason_.empty()) return;
  try {
    check_blas(blas_library().functions().create(&handle_), "start");
    try_out();
  } catch (const Failure& failure) {
    reason_ = failure.text;
  }
}

Blas::~Blas() {
  if (handle_) blas_library().functions().destroy(handle_);
}

namespace {

constexpr int64_t tried = 16;

/// (16, 16) = (16, 16) x (16, 16), with bias and relu or without.
Product tried_product(bool with_epilogue) {
  Product product;
  for (StoredMatrix* matrix : {&product.left, &product.right, &product.residual, &product.result}) {
    *matrix = {tried, tried, tried, 0, false};
  }
  product.parts = {{}};
  product.deterministic = true;
  product.left_at = 0;
  product.right_at = 1;
  product.result_at = 2;
  if (with_epilogue) {
    product.vector_at = 3;
    product.epilogue.bias = 1;
    product.epilogue.activation = ROSIN_ACTIVATION_RELU;
  }
  return product;
}

/// Computes left * right of small integers; the bias is 1 everywhere.
std::vector<float> tried_result(blas::Handle handle, bool with_epilogue, const std::vector<float>& left,
                                const std::vector<float>& right) {
  BlasPlan plan(handle, tried_product(with_epilogue), 0);
  const std::vector<float> ones(tried, 1.0f);
  std::vector<float> got(tried * tried);
  const ScratchMemory a(left.size() * 4), b(right.size() * 4), c(got.size() * 4), bias(ones.size() * 4);
  ScratchStream stream;
  stream.copy_in(a, left.data());
  stream.copy_in(b, right.data());
  stream.copy_in(bias, ones.data());
  const Address arrays[] = {a.address(), b.address(), c.address(), bias.address()};
  plan.run(stream.stream(), {.arrays = arrays});
  stream.copy_out(got.data(), c);
  stream.sync();
  return got;
}

}  // namespace

/// A product of small integers must be exact; of one with NaN, relu must leave the NaN.
void Blas::try_out() {
  std::vector<float> left(tried * tried), right(tried * tried), wanted(tried * tried);
  for (int64_t i = 0; i < tried * tried; ++i) {
    left[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 3);
    right[static_cast<size_t>(i)] = static_cast<float>(i % 5 - 2);
  }
  for (int64_t i = 0; i < tried * tried; ++i) {
    for (int64_t l = 0; l < tried; ++l) {
      wanted[static_cast<size_t>(i)] +=
          left[static_cast<size_t>(i % tried + l * tried)] * right[static_cast<size_t>(l + i / tried * tried)];
    }
  }
  if (tried_result(handle_, false, left, right) != wanted) {
    throw Failure{ROSIN_UNSUPPORTED, "cuBLASLt " + blas_library().version() + " computes a small product wrongly"};
  }
  constexpr int64_t spoilt = 5;  // a column
  right[spoilt * tried] = NAN;
  try {
    const std::vector<float> got = tried_result(handle_, true, left, right);
    relu_keeps_nan_ = true;
    for (int64_t i = 0; i < tried * tried; ++i) {
      const float value = got[static_cast<size_t>(i)], sum = wanted[static_cast<size_t>(i)] + 1;
      const bool right_value = i / tried == spoilt ? std::isnan(value) : value == std::max(sum, 0.0f);
      relu_keeps_nan_ = relu_keeps_nan_ && right_value;
    }
  } catch (const Failure& failure) {
    if (failure.status != ROSIN_UNSUPPORTED) throw;
  }
}

Blas& blas_of(rosin_device& device) { return DeviceLibraries::of<Blas>(device); }

}  // namespace rosin::cuda
