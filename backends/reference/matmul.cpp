// See matmul.hpp.
#include "matmul.hpp"

#include <cmath>
#include <cstring>

namespace rosin::reference {
namespace {

constexpr int most_dims = 8;
constexpr char choice_text[] = "matmul";  // the way follows its end

uint64_t element_bytes(const rosin_call_array& array) {
  return array.type == ROSIN_FLOAT64 ? 8 : array.type == ROSIN_UINT8 ? 1 : 4;
}

/// The place from which an array is read, if all of it lies in the block.
char* checked(const rosin_device& device, const rosin_call_array& array, rosin_place place) {
  int64_t last = 0;
  for (int d = 0; d < array.rank; ++d) {
    need(array.strides[d] >= 0, "call: a stride below 0");
    last += (array.sizes[d] - 1) * array.strides[d];
  }
  need(place.offset % offset_unit == 0, "call: an offset that is not aligned");
  return bytes_at(device, place, (static_cast<uint64_t>(last) + 1) * element_bytes(array));
}

[[noreturn]] void refuse(const char* why) { throw Failure(ROSIN_UNSUPPORTED, why); }

bool is_gradient(int32_t activation) {
  return activation == ROSIN_ACTIVATION_RELU_GRADIENT || activation == ROSIN_ACTIVATION_GELU_GRADIENT;
}
bool has_bits(int32_t activation) {
  return activation == ROSIN_ACTIVATION_RELU || activation == ROSIN_ACTIVATION_RELU_GRADIENT;
}

/// Of matrix number `matrix` of the result's batch, in an operand that may repeat: the place of its first element.
int64_t first_of(const rosin_call_array& array, const rosin_call_array& result, int64_t matrix) {
  int64_t at = 0;
  for (int d = 2; d < result.rank; ++d) {
    const int64_t i = matrix % result.sizes[d];
    matrix /= result.sizes[d];
    if (d < array.rank && array.sizes[d] != 1) at += i * array.strides[d];
  }
  return at;
}

constexpr double gelu_scale = 0.7978845608028654, gelu_cube = 0.044715;

template <class T> T gelu_gradient(T x) {
  const T inner = T(gelu_scale) * (x + T(gelu_cube) * x * x * x), t = std::tanh(inner);
  return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * T(gelu_scale) * (1 + 3 * T(gelu_cube) * x * x);
}

template <class T> T activated(int32_t activation, T x) {
  switch (activation) {
    case ROSIN_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case ROSIN_ACTIVATION_SIGMOID: return 1 / (1 + std::exp(-x));
    case ROSIN_ACTIVATION_TANH: return std::tanh(x);
    case ROSIN_ACTIVATION_GELU: return T(0.5) * x * (1 + std::tanh(T(gelu_scale) * (x + T(gelu_cube) * x * x * x)));
    default: return x;
  }
}

/// One matrix of the batch.
template <class T> class Product {
 public:
  Product(const Matmul& what, const MatmulRun& run, int64_t matrix)
      : what_(what), a_(*start(what, run, matrix, 0)), b_(*start(what, run, matrix, 1)),
        result_(start(what, run, matrix, static_cast<int>(what.arrays.size()) - 1)), alpha_(static_cast<T>(run.alpha)),
        beta_(static_cast<T>(run.beta)) {
    if (const int bias = what.find(ROSIN_ROLE_BIAS); bias >= 0) {
      bias_ = reinterpret_cast<const T*>(run.bytes[static_cast<size_t>(bias)]);
    }
    if (const int residual = what.find(ROSIN_ROLE_RESIDUAL); residual >= 0) {
      residual_ = start(what, run, matrix, residual);
      residual_strides_ = what.arrays[static_cast<size_t>(residual)].strides;
    }
    if (const int auxiliary = what.find(ROSIN_ROLE_AUXILIARY); auxiliary >= 0) {
      const rosin_call_array& array = what.arrays[static_cast<size_t>(auxiliary)];
      auxiliary_strides_ = array.strides;
      auxiliary_ = run.bytes[static_cast<size_t>(auxiliary)] +
                   first_of(array, what.result(), matrix) * static_cast<int64_t>(element_bytes(array));
    }
  }

  void compute() const {
    const int64_t rows = what_.result().sizes[0], columns = what_.result().sizes[1];
    if (what_.way == MatmulWay::columns) {
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) element(i, j);
    } else {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) element(i, j);
    }
  }

 private:
  static T* start(const Matmul& what, const MatmulRun& run, int64_t matrix, int array) {
    const auto at = static_cast<size_t>(array);
    return reinterpret_cast<T*>(run.bytes[at]) + first_of(what.arrays[at], what.result(), matrix);
  }

  void element(int64_t i, int64_t j) const {
    const int64_t *sa = what_.left().strides, *sb = what_.right().strides, *sr = what_.result().strides;
    T& to = result_[i * sr[0] + j * sr[1]];
    T sum = 0;
    for (int64_t l = 0; l < what_.left().sizes[1]; ++l) {
      sum += (&a_)[i * sa[0] + l * sa[1]] * (&b_)[l * sb[0] + j * sb[1]];
    }
    if (what_.scaled) sum *= alpha_;
    if (what_.accumulate) sum += what_.scaled ? beta_ * to : to;
    if (bias_) sum += bias_[i];
    if (residual_) {
      const T other = residual_[i * residual_strides_[0] + j * residual_strides_[1]];
      sum += what_.scaled ? beta_ * other : other;
    }
    to = finished(sum, i, j);
  }

  T finished(T x, int64_t i, int64_t j) const {
    const int32_t activation = what_.epilogue.activation;
    if (!auxiliary_) return activated(activation, x);
    if (has_bits(activation)) {
      char& byte = auxiliary_[i / 8 * auxiliary_strides_[0] + j * auxiliary_strides_[1]];
      const auto bit = static_cast<unsigned char>(1u << (i % 8));
      if (is_gradient(activation)) return byte & bit ? x : 0;
      byte = static_cast<char>(x > 0 ? byte | bit : byte & ~bit);
    } else {
      T& before = reinterpret_cast<T*>(auxiliary_)[i * auxiliary_strides_[0] + j * auxiliary_strides_[1]];
      if (is_gradient(activation)) return x * gelu_gradient(before);
      before = x;
    }
    return activated(activation, x);
  }

  const Matmul& what_;
  const T &a_, &b_;
  T* result_;
  T alpha_, beta_;
  const T* bias_ = nullptr;
  const T* residual_ = nullptr;
  const int64_t* residual_strides_ = nullptr;
  char* auxiliary_ = nullptr;
  const int64_t* auxiliary_strides_ = nullptr;
};

/// The sums along the rows of the result, or of the left operand.
template <class T> void sum_rows(const Matmul& what, const MatmulRun& run, int into) {
  const bool of_result = is_gradient(what.epilogue.activation);
  const rosin_call_array& from = of_result ? what.result() : what.left();
  const T* values = reinterpret_cast<const T*>(of_result ? run.bytes.back() : run.bytes.front());
  for (int64_t i = 0; i < from.sizes[0]; ++i) {
    T sum = 0;
    for (int64_t j = 0; j < from.sizes[1]; ++j) sum += values[i * from.strides[0] + j * from.strides[1]];
    reinterpret_cast<T*>(run.bytes[static_cast<size_t>(into)])[i] = sum;
  }
}

template <class T> void multiply(const Matmul& what, const MatmulRun& run) {
  int64_t batch = 1;
  for (int d = 2; d < what.result().rank; ++d) batch *= what.result().sizes[d];
  for (int64_t q = 0; q < batch; ++q) Product<T>(what, run, q).compute();
  if (const int sums = what.find(ROSIN_ROLE_BIAS_GRADIENT); sums >= 0) sum_rows<T>(what, run, sums);
}

void check_epilogue(const rosin_epilogue& epilogue, int vendor) {
  const int32_t activation = epilogue.activation;
  if (vendor == 1) {
    const bool activates = activation == ROSIN_ACTIVATION_NONE || activation == ROSIN_ACTIVATION_RELU;
    if (!activates || epilogue.residual || epilogue.auxiliary || epilogue.bias_gradient) {
      refuse("call: matmul has bias and relu as epilogues, no others (vendor=2 offers them)");
    }
  }
  if (activation < ROSIN_ACTIVATION_NONE || activation > ROSIN_ACTIVATION_GELU_GRADIENT) {
    refuse("call: no such activation");
  }
  const bool without = activation == ROSIN_ACTIVATION_NONE;
  need(epilogue.auxiliary ? !without : !is_gradient(activation), "call: an auxiliary belongs to an activation");
}

/// The roles of the arrays, in their order.
std::vector<int32_t> roles_of(const rosin_epilogue& epilogue) {
  std::vector<int32_t> roles = {ROSIN_ROLE_LEFT, ROSIN_ROLE_RIGHT};
  if (epilogue.bias) roles.push_back(ROSIN_ROLE_BIAS);
  if (epilogue.residual) roles.push_back(ROSIN_ROLE_RESIDUAL);
  if (epilogue.auxiliary) roles.push_back(ROSIN_ROLE_AUXILIARY);
  if (epilogue.bias_gradient) roles.push_back(ROSIN_ROLE_BIAS_GRADIENT);
  roles.push_back(ROSIN_ROLE_OUTPUT);
  return roles;
}

}  // namespace

int Matmul::find(rosin_role wanted) const {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].role == wanted) return static_cast<int>(i);
  }
  return -1;
}

Matmul checked_matmul(const rosin_device& device, const rosin_call_description& what) {
  const int vendor = static_cast<int>(device.options.vendor);
  if (vendor == 0) refuse("call: vendor calls are off (vendor=1 offers them)");
  if (what.attribute_count > 0) refuse("call: matmul has no attributes");
  const bool plain = !what.accumulate && !what.scaled;
  if (what.kind != ROSIN_CALL_MATMUL || what.compute != ROSIN_COMPUTE_EXACT || (vendor == 1 && !plain)) {
    refuse("call: no such call");
  }
  check_epilogue(what.epilogue, vendor);
  const std::vector<int32_t> roles = roles_of(what.epilogue);
  need(what.arrays != nullptr && what.array_count == roles.size(), "call: not the arrays of a matmul");
  need(!what.scaled || !what.accumulate || !what.epilogue.residual, "call: a scaled call adds one array at most");
  const int32_t type = what.arrays[0].type;
  for (uint32_t i = 0; i < what.array_count; ++i) {
    const rosin_call_array& array = what.arrays[i];
    need(array.role == roles[i], "call: the arrays of a matmul in another order");
    const bool bits = array.role == ROSIN_ROLE_AUXILIARY && has_bits(what.epilogue.activation);
    const bool known = type == ROSIN_FLOAT32 || (type == ROSIN_FLOAT64 && device.options.float64);
    if (!known || array.type != (bits ? ROSIN_UINT8 : type)) refuse("call: matmul of one float type only");
    need(array.rank >= 0 && array.rank <= most_dims, "call: an array has 0 to 8 dims");
  }
  return {{what.arrays, what.arrays + what.array_count},
          what.epilogue,
          what.accumulate != 0,
          what.scaled != 0,
          way_in(what.choice, what.choice_bytes)};
}

void check_sizes(const rosin_device& device, const Matmul& what, uint64_t workspace) {
  if (workspace > 0 && workspace < matmul_workspace) refuse("call: too little workspace is allowed");
  for (const rosin_call_array* array : {&what.left(), &what.right(), &what.result()}) {
    need(array->rank >= 2, "call: a matrix has two dims");
    for (int d = 0; d < array->rank; ++d) need(array->sizes[d] > 0, "call: a size below 1");
  }
  const bool one = what.result().rank == 2;
  need(one || what.find(ROSIN_ROLE_BIAS_GRADIENT) < 0, "call: the bias's gradient is that of one product");
  if (device.options.vendor_rows >= 0 && what.result().sizes[0] > device.options.vendor_rows) {
    refuse("call: too many rows, as vendor_rows=N says");
  }
  const bool plain = what.arrays.size() == 3 && what.epilogue.activation == ROSIN_ACTIVATION_NONE;
  if (!plain && device.options.vendor_epilogues >= 0 && what.result().sizes[0] > device.options.vendor_epilogues) {
    refuse("call: too many rows for an epilogue, as vendor_epilogues=N says");
  }
}

MatmulRun matmul_run(const rosin_call& call, const rosin_place* buffers, const rosin_call_numbers* numbers) {
  need(!call.what.scaled || numbers, "call: a scaled call without its numbers");
  MatmulRun run;
  for (size_t i = 0; i < call.what.arrays.size(); ++i) {
    run.bytes.push_back(checked(*call.device, call.what.arrays[i], buffers[i]));
  }
  if (!call.what.scaled) return run;
  const rosin_call_numbers all = taken(numbers);
  run.alpha = all.alpha;
  run.beta = all.beta;
  return run;
}

void matmul(const Matmul& what, const MatmulRun& run) {
  if (what.left().type == ROSIN_FLOAT32) multiply<float>(what, run);
  else multiply<double>(what, run);
}

MatmulWay way_in(const void* choice, uint64_t bytes) {
  const auto* text = static_cast<const char*>(choice);
  const bool known =
      choice && bytes == sizeof(choice_text) + 1 && std::memcmp(text, choice_text, sizeof(choice_text)) == 0;
  return known && text[sizeof(choice_text)] == 1 ? MatmulWay::rows : MatmulWay::columns;
}

void put_choice(rosin_call& call) {
  static_assert(sizeof(call.choice) == sizeof(choice_text) + 1);
  std::memcpy(call.choice, choice_text, sizeof(choice_text));
  call.choice[sizeof(choice_text)] = static_cast<char>(call.what.way);
}

}  // namespace rosin::reference
