// See blas.hpp.
#include "vendor/blas.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "vendor/scratch.hpp"

namespace rosin::vendor {
namespace {

using driver::Address;
using driver::Failure;

constexpr int most_candidates = 8;

std::string named(const char* text) { return std::string(blas_library().name) + text; }

int type_of(int32_t type) {
  const auto& types = blas_library().numbers.type;
  switch (type) {
    case ROSIN_FLOAT16: return types.float16;
    case ROSIN_BFLOAT16: return types.bfloat16;
    case ROSIN_FLOAT64: return types.float64;
    default: return types.float32;
  }
}

/// Halves are summed in Float32 in any case.
int compute_of(const Product& product) {
  const auto& ways = blas_library().numbers.compute;
  if (product.type == ROSIN_FLOAT64) return ways.float64;
  if (product.type != ROSIN_FLOAT32) return ways.float32;
  switch (product.compute) {
    case ROSIN_COMPUTE_TF32: return ways.fast_tf32;
    case ROSIN_COMPUTE_FLOAT16: return ways.fast_float16;
    case ROSIN_COMPUTE_BFLOAT16: return ways.fast_bfloat16;
    default: return ways.float32;
  }
}

/// A library's number; refuses what it has not.
int known(int number) {
  if (number == blas::none) throw Failure{ROSIN_UNSUPPORTED, named(": it has no such type")};
  return number;
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

void check_blas(int status, const char* what) {
  if (status == blas::success) return;
  struct Meaning {
    int status;
    rosin_status meaning;
    const char* text;
  };
  const auto& known = blas_library().numbers.status;
  const Meaning meanings[] = {{known.alloc_failed, ROSIN_OUT_OF_MEMORY, "out of memory"},
                              {known.arch_mismatch, ROSIN_UNSUPPORTED, "not on this device"},
                              {known.not_supported, ROSIN_UNSUPPORTED, "not supported"},
                              {known.not_initialized, ROSIN_UNSUPPORTED, "it does not start on this device"},
                              {known.mapping_error, ROSIN_DEVICE_FAULT, "the device failed"},
                              {known.execution_failed, ROSIN_DEVICE_FAULT, "the device failed"},
                              {known.internal_error, ROSIN_DEVICE_FAULT, "the device failed"}};
  Meaning said{status, ROSIN_INVALID, "the arguments are refused"};
  for (const Meaning& each : meanings) {
    if (each.status == status) said = each;
  }
  throw Failure{said.meaning, named(": ") + what + ": " + said.text + " (status " + std::to_string(status) + ")"};
}

namespace {

/// A type that the library does not know is one that it does not compute.
void check_types(int status, const char* what) {
  if (status == blas_library().numbers.status.invalid_value) {
    throw Failure{ROSIN_UNSUPPORTED, named(": ") + what + ": no such type"};
  }
  check_blas(status, what);
}

}  // namespace

BlasPlan::BlasPlan(blas::Handle handle, const Product& product, uint64_t workspace)
    : handle_(handle), product_(product), workspace_limit_(workspace), operation_(operation_of()),
      left_(layout_of(product.left)), right_(layout_of(product.right)), residual_(layout_of(product.residual)),
      result_(layout_of(product.result)) {
  find_candidates();
}

BlasPlan::Owned<blas::Layout> BlasPlan::layout_of(const StoredMatrix& matrix) const {
  const blas::Functions& f = blas_library().functions;
  blas::Layout made = nullptr;
  check_types(f.layout_create(&made, known(type_of(product_.type)), static_cast<uint64_t>(matrix.rows),
                              static_cast<uint64_t>(matrix.columns), matrix.leading),
              "layout of a matrix");
  Owned<blas::Layout> layout(made, {f.layout_destroy});
  if (product_.batch > 1) {
    const auto count = static_cast<int32_t>(product_.batch);
    if (count != product_.batch) throw Failure{ROSIN_UNSUPPORTED, named(": a batch that is too large")};
    const auto& numbers = blas_library().numbers.layout;
    check_blas(f.layout_set(made, numbers.batch_count, &count, sizeof count), "count of a batch");
    check_blas(f.layout_set(made, numbers.batch_stride, &matrix.batch_stride, sizeof(int64_t)), "stride of a batch");
  }
  return layout;
}

BlasPlan::Owned<blas::Operation> BlasPlan::operation_of() const {
  const blas::Functions& f = blas_library().functions;
  const blas::Numbers& n = blas_library().numbers;
  blas::Operation made = nullptr;
  const int scale = product_.type == ROSIN_FLOAT64 ? n.type.float64 : n.type.float32;
  check_types(f.operation_create(&made, known(compute_of(product_)), scale), "description of a product");
  Owned<blas::Operation> operation(made, {f.operation_destroy});
  const auto set = [&](int which, auto value) {
    check_blas(f.operation_set(made, which, &value, sizeof value), "description of a product");
  };
  if (product_.left.transposed) set(n.operation.transpose_a, n.transposed);
  if (product_.right.transposed) set(n.operation.transpose_b, n.transposed);
  const uint32_t epilogue = epilogue_of(product_.epilogue);
  if (epilogue != blas::plain) set(n.operation.epilogue, epilogue);
  // Algorithms are chosen for the alignment of these, which is that of all places.
  constexpr uint64_t some_place = 64;
  if (product_.vector_at >= 0) {
    set(n.operation.bias_pointer, some_place);
    if (n.operation.bias_type != blas::none) set(n.operation.bias_type, static_cast<int32_t>(type_of(product_.type)));
  }
  if (product_.auxiliary_at >= 0) {
    set(n.operation.auxiliary_pointer, some_place);
    set(n.operation.auxiliary_leading, product_.auxiliary.leading);
    if (product_.batch > 1) set(n.operation.auxiliary_batch_stride, product_.auxiliary.batch_stride);
  }
  return operation;
}

BlasPlan::Owned<blas::Preference> BlasPlan::preference() const {
  const blas::Functions& f = blas_library().functions;
  const blas::Numbers& n = blas_library().numbers;
  blas::Preference made = nullptr;
  check_blas(f.preference_create(&made), "preferences");
  Owned<blas::Preference> preference(made, {f.preference_destroy});
  const auto set = [&](int which, auto value) {
    if (which != blas::none) check_blas(f.preference_set(made, which, &value, sizeof value), "preferences");
  };
  set(n.preference.workspace, workspace_limit_);
  // Sums of halves are kept in Float32 to the end, and no order of additions depends on which group comes first.
  const bool exact = product_.deterministic || product_.compute == ROSIN_COMPUTE_EXACT;
  set(n.preference.reductions, exact ? n.in_compute_type : n.any_reduction);
  for (const int which : n.preference.alignments) set(which, static_cast<uint32_t>(product_.alignment));
  return preference;
}

namespace {

/// What a library writes of the algorithms that it finds: Found, of its number of words.
class FoundList {
 public:
  explicit FoundList(int count) : bytes_(static_cast<size_t>(count) * stride()) {}
  void* data() { return bytes_.data(); }
  blas::Algorithm algorithm(int at) const {
    blas::Algorithm read;
    std::memcpy(read.words, bytes_.data() + static_cast<size_t>(at) * stride(), own_bytes());
    return read;
  }
  blas::Facts facts(int at) const {
    blas::Facts read;
    std::memcpy(&read, bytes_.data() + static_cast<size_t>(at) * stride() + own_bytes(), sizeof read);
    return read;
  }

 private:
  static size_t own_bytes() { return blas_library().algorithm_words * sizeof(uint64_t); }
  static size_t stride() { return own_bytes() + sizeof(blas::Facts); }
  std::vector<char> bytes_;
};

}  // namespace

void BlasPlan::find_candidates() {
  const Owned<blas::Preference> wishes = preference();
  FoundList found(most_candidates);
  int count = 0;
  const int status =
      blas_library().functions.candidates(handle_, operation_.get(), left_.get(), right_.get(), residual_.get(),
                                          result_.get(), wishes.get(), most_candidates, found.data(), &count);
  // What it does not compute is an error of many names.
  if (status == blas_library().numbers.status.alloc_failed) check_blas(status, "search for an algorithm");
  for (int i = 0; status == blas::success && i < std::min(count, most_candidates); ++i) {
    const blas::Facts facts = found.facts(i);
    if (facts.status != blas::success || facts.workspace > workspace_limit_) continue;
    candidates_.push_back({found.algorithm(i), facts.workspace});
  }
  if (candidates_.empty()) throw Failure{ROSIN_UNSUPPORTED, named(": it has no algorithm for this product")};
  chosen_ = candidates_.front();
}

bool BlasPlan::choose(const blas::Algorithm& algorithm) {
  if (const auto check = blas_library().functions.check) {
    FoundList checked(1);
    const int status = check(handle_, operation_.get(), left_.get(), right_.get(), residual_.get(), result_.get(),
                             algorithm.words, checked.data());
    if (status != blas::success || checked.facts(0).workspace > workspace_limit_) return false;
    chosen_ = {algorithm, checked.facts(0).workspace};
    return true;
  }
  const auto same = std::find_if(candidates_.begin(), candidates_.end(),
                                 [&](const Candidate& one) { return one.algorithm == algorithm; });
  if (same == candidates_.end()) return false;
  chosen_ = *same;
  return true;
}

void BlasPlan::point(int which, int array, const Address* arrays) const {
  if (array < 0) return;
  check_blas(blas_library().functions.operation_set(operation_.get(), which, &arrays[array], sizeof(Address)),
             "place of an array");
}

void BlasPlan::run(driver::Stream stream, const BlasRun& run) const {
  const blas::Functions& f = blas_library().functions;
  const Address* arrays = run.arrays;
  const auto& numbers = blas_library().numbers.operation;
  point(numbers.bias_pointer, product_.vector_at, arrays);
  point(numbers.auxiliary_pointer, product_.auxiliary_at, arrays);
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
                        residual_.get(), pointer(result), result_.get(), chosen_.algorithm.words,
                        pointer(run.workspace), chosen_.workspace, stream),
               "product");
  }
}

Blas::Blas(const rosin_device& device) : reason_(blas_library().reason), version_(blas_library().version) {
  if (!reason_.empty()) return;
  try {
    if (blas_library().check_device) blas_library().check_device(device);
    check_blas(blas_library().functions.create(&handle_), "start");
    find_version();
    try_out();
  } catch (const Failure& failure) {
    reason_ = failure.text;
  }
}

Blas::~Blas() {
  if (handle_) blas_library().functions.destroy(handle_);
}

void Blas::find_version() {
  if (!blas_library().functions.version) return;
  const auto text = [](int number) {
    return std::to_string(number / 100000) + "." + std::to_string(number / 100 % 1000) + "." +
           std::to_string(number % 100);
  };
  int number = 0;
  check_blas(blas_library().functions.version(handle_, &number), "version");
  version_ = text(number);
  if (number >= blas_library().oldest) return;
  throw Failure{ROSIN_UNSUPPORTED,
                named(" is too old: it is ") + version_ + ", " + text(blas_library().oldest) + " is needed"};
}

namespace {

constexpr int64_t tried = 16;
using Numbers = std::vector<float>;

/// (16, 16) = (16, 16) x (16, 16), with bias and relu or without.
Product tried_product(int32_t type, bool with_epilogue) {
  Product product;
  product.type = type;
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

/// Small integers, which BFloat16 has too: as the upper half of a Float32.
class TriedArray {
 public:
  TriedArray(int32_t type, ScratchStream& stream, const Numbers& numbers)
      : is_half_(type == ROSIN_BFLOAT16), count_(numbers.size()), memory_(count_ * (is_half_ ? 2 : 4)),
        stream_(stream) {
    halves_.resize(is_half_ ? count_ : 0);
    for (size_t i = 0; i < halves_.size(); ++i) {
      halves_[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(numbers[i]) >> 16);
    }
    stream.copy_in(memory_, is_half_ ? static_cast<const void*>(halves_.data()) : numbers.data());
  }
  Address address() const { return memory_.address(); }
  Numbers read() {
    Numbers numbers(count_);
    stream_.copy_out(is_half_ ? static_cast<void*>(halves_.data()) : numbers.data(), memory_);
    stream_.sync();
    for (size_t i = 0; i < halves_.size(); ++i) numbers[i] = std::bit_cast<float>(uint32_t{halves_[i]} << 16);
    return numbers;
  }

 private:
  bool is_half_;
  size_t count_;
  ScratchMemory memory_;
  ScratchStream& stream_;
  std::vector<uint16_t> halves_;
};

/// Computes left * right of small integers; the bias is 1 everywhere.
Numbers tried_result(const BlasPlan& plan, const Numbers& left, const Numbers& right) {
  const int32_t type = plan.product().type;
  ScratchStream stream;
  TriedArray a(type, stream, left), b(type, stream, right), c(type, stream, Numbers(tried * tried)),
      bias(type, stream, Numbers(tried, 1.0f));
  const Address arrays[] = {a.address(), b.address(), c.address(), bias.address()};
  plan.run(stream.stream(), {.arrays = arrays});
  return c.read();
}

Numbers integers(int64_t period) {
  Numbers all;
  for (int64_t i = 0; i < tried * tried; ++i) all.push_back(static_cast<float>(i % period - period / 2));
  return all;
}

Numbers product_by_definition(const Numbers& left, const Numbers& right) {
  Numbers made(tried * tried);
  for (int64_t i = 0; i < tried * tried; ++i) {
    for (int64_t l = 0; l < tried; ++l) {
      made[static_cast<size_t>(i)] +=
          left[static_cast<size_t>(i % tried + l * tried)] * right[static_cast<size_t>(l + i / tried * tried)];
    }
  }
  return made;
}

/// Devices without products of Float32 may have those of BFloat16.
int32_t type_to_try(blas::Handle handle) {
  try {
    const BlasPlan plan(handle, tried_product(ROSIN_FLOAT32, false), 0);
    return ROSIN_FLOAT32;
  } catch (const Failure& failure) {
    if (failure.status != ROSIN_UNSUPPORTED) throw;
    return ROSIN_BFLOAT16;
  }
}

}  // namespace

/// A product of small integers must be exact; of one with NaN, relu must leave the NaN.
void Blas::try_out() {
  const int32_t type = type_to_try(handle_);
  const Numbers left = integers(7), wanted = product_by_definition(left, integers(5));
  Numbers right = integers(5);
  if (tried_result(BlasPlan(handle_, tried_product(type, false), 0), left, right) != wanted) {
    throw Failure{ROSIN_UNSUPPORTED, named(" ") + version_ + " computes a small product wrongly"};
  }
  constexpr int64_t spoilt = 5;  // a column
  right[spoilt * tried] = NAN;
  try {
    const Numbers got = tried_result(BlasPlan(handle_, tried_product(type, true), 0), left, right);
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

}  // namespace rosin::vendor
