// See convolution.hpp.
#include "vendor/convolution.hpp"

#include <algorithm>
#include <array>

#include "common/failure.hpp"
#include "vendor/matmul.hpp"
#include "vendor/roles.hpp"

namespace rosin::vendor {
namespace {

[[noreturn]] void refuse(const char* why) {
  throw plugin::Failure{ROSIN_UNSUPPORTED, std::string("convolution: ") + why};
}
[[noreturn]] void reject(const char* why) { throw plugin::Failure{ROSIN_INVALID, std::string("convolution: ") + why}; }

/// The roles of x, w and y, which are those of the arrays in this order but for what a gradient makes.
std::array<int32_t, 3> roles_of(int32_t kind) {
  switch (kind) {
    case ROSIN_CALL_CONVOLUTION: return {ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_OUTPUT};
    case ROSIN_CALL_CONVOLUTION_DATA:
      return {ROSIN_ROLE_INPUT_GRADIENT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_OUTPUT_GRADIENT};
    case ROSIN_CALL_CONVOLUTION_WEIGHTS:
      return {ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS_GRADIENT, ROSIN_ROLE_OUTPUT_GRADIENT};
    default: refuse("a call of another kind");
  }
}

int needed_place(const rosin_call_description& call, int32_t role) {
  const int place = place_of(call, role);
  if (place < 0) refuse("not the arrays of a convolution");
  return place;
}

void check_arrays(const rosin_call_description& call) {
  const uint32_t wanted = call.epilogue.bias ? 4 : 3;
  if (!call.arrays || call.array_count != wanted) refuse("not the arrays of a convolution");
  for (const int32_t role : roles_of(call.kind)) needed_place(call, role);
  if (call.epilogue.bias) needed_place(call, ROSIN_ROLE_BIAS);
  const int32_t type = call.arrays[0].type;
  const bool is_float =
      type == ROSIN_FLOAT32 || type == ROSIN_FLOAT64 || type == ROSIN_FLOAT16 || type == ROSIN_BFLOAT16;
  if (!is_float) refuse("floats are convolved");
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].type != type) refuse("one type for all arrays");
  }
}

/// A bias with or without relu behind it is what the libraries have in every shape. Halves are rounded once there.
void check_epilogue(const rosin_call_description& call) {
  const rosin_epilogue& epilogue = call.epilogue;
  const bool relu = epilogue.activation == ROSIN_ACTIVATION_RELU;
  if (epilogue.residual || epilogue.auxiliary || epilogue.bias_gradient || call.accumulate || call.scaled) {
    refuse("a bias and relu go along with a convolution, no more");
  }
  if (!relu && epilogue.activation != ROSIN_ACTIVATION_NONE) refuse("no such activation");
  if (!epilogue.bias && !relu) return;
  if (!epilogue.bias || call.kind != ROSIN_CALL_CONVOLUTION) refuse("relu goes with a bias, and not with gradients");
  if (call.arrays[0].type == ROSIN_FLOAT64) refuse("Float64 has no epilogues");
  if (call.arrays[0].type != ROSIN_FLOAT32 && !call.unrounded) {
    refuse("its library rounds once where rosin rounds at each step");
  }
}

/// The dims of the library by those of rosin: the last two, then the spatial ones from the slowest.
std::vector<int> dims_of(int rank) {
  std::vector<int> dims{rank - 1, rank - 2};
  for (int d = rank - 3; d >= 0; --d) dims.push_back(d);
  return dims;
}

/// Strides of an array without gaps.
std::vector<int64_t> packed(const std::vector<int64_t>& sizes, DimOrder order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  const auto next = [&](size_t d) {
    strides[d] = stride;
    stride *= sizes[d];
  };
  if (order == DimOrder::channels_first) next(1);
  for (size_t d = sizes.size() - 1; d >= 2; --d) next(d);
  if (order == DimOrder::planes) next(1);
  next(0);
  return strides;
}

bool same_places(const std::vector<int64_t>& sizes, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

/// Channels first, which cuDNN's engines read as it is, or planes.
std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& given) {
  for (const DimOrder order : {DimOrder::channels_first, DimOrder::planes}) {
    if (std::vector<int64_t> strides = packed(sizes, order); same_places(sizes, strides, given)) return strides;
  }
  refuse("an array with gaps, or in another order");
}

Tensor tensor_of(const rosin_call_description& call, int32_t role) {
  Tensor tensor;
  tensor.at = needed_place(call, role);
  const rosin_call_array& array = call.arrays[tensor.at];
  if (array.rank != call.window.spatial + 2) reject("its arrays have two dims beside the spatial ones");
  std::vector<int64_t> given;
  for (const int d : dims_of(array.rank)) {
    if (array.sizes[d] < 1) refuse("a size below 1");
    tensor.sizes.push_back(array.sizes[d]);
    given.push_back(array.strides[d]);
  }
  tensor.strides = strides_of(tensor.sizes, given);
  return tensor;
}

/// One element a channel of y, whatever dims of one element stand around it.
Tensor bias_of(const rosin_call_description& call, const Tensor& y) {
  Tensor bias;
  bias.at = needed_place(call, ROSIN_ROLE_BIAS);
  const rosin_call_array& array = call.arrays[bias.at];
  int64_t count = 1;
  for (int d = 0; d < array.rank; ++d) {
    if (array.sizes[d] > 1 && (count > 1 || array.strides[d] != 1)) refuse("a bias with gaps");
    count *= array.sizes[d];
  }
  if (count != y.sizes[1]) reject("a bias that does not fit its channels");
  bias.sizes.assign(y.sizes.size(), 1);
  bias.strides.assign(y.sizes.size(), count);
  bias.sizes[1] = count;
  bias.strides[1] = 1;
  return bias;
}

std::vector<int64_t> reversed(const int32_t (&all)[3], int32_t count) {
  std::vector<int64_t> made(all, all + count);
  std::reverse(made.begin(), made.end());
  return made;
}

void take_window(Convolution& convolution, const rosin_call_window& window) {
  convolution.stride = reversed(window.stride, window.spatial);
  convolution.dilation = reversed(window.dilation, window.spatial);
  convolution.pad_low = reversed(window.pad_low, window.spatial);
  convolution.pad_high = reversed(window.pad_high, window.spatial);
  for (size_t d = 0; d < convolution.stride.size(); ++d) {
    if (convolution.stride[d] < 1 || convolution.dilation[d] < 1) reject("a stride or dilation below 1");
    if (convolution.pad_low[d] < 0 || convolution.pad_high[d] < 0) refuse("padding below 0");
  }
}

void check_sizes(const Convolution& convolution, int64_t groups) {
  const auto &x = convolution.x.sizes, &w = convolution.w.sizes, &y = convolution.y.sizes;
  const bool channels_fit = x[0] == y[0] && groups >= 1 && x[1] == w[1] * groups && y[1] == w[0] && w[0] % groups == 0;
  if (!channels_fit) reject("the sizes of its arrays do not fit");
  for (size_t d = 2; d < x.size(); ++d) {
    const size_t s = d - 2;
    const int64_t reach = convolution.dilation[s] * (w[d] - 1) + 1;
    const int64_t room = x[d] + convolution.pad_low[s] + convolution.pad_high[s] - reach;
    if (room < 0 || y[d] != room / convolution.stride[s] + 1) reject("the sizes of its images do not fit");
  }
}

uint64_t bytes_of(const rosin_call_array& array) {
  uint64_t count = 1;
  for (int d = 0; d < array.rank; ++d) count *= static_cast<uint64_t>(array.sizes[d]);
  return count * element_bytes(array.type);
}

}  // namespace

Tensor tensor_in(const std::vector<int64_t>& sizes, DimOrder order, int at) {
  return {sizes, packed(sizes, order), at};
}

bool lies(const Tensor& tensor, DimOrder order) {
  return same_places(tensor.sizes, tensor.strides, packed(tensor.sizes, order));
}

void check_convolution(const rosin_call_description& call) {
  roles_of(call.kind);
  if (call.attribute_count != 0) refuse("a convolution has no attributes");
  if (call.compute < ROSIN_COMPUTE_EXACT || call.compute > ROSIN_COMPUTE_BFLOAT16) refuse("no such way to compute");
  check_arrays(call);
  check_epilogue(call);
}

Convolution convolution_of(const rosin_call_description& call) {
  check_convolution(call);
  if (call.window.spatial < 1 || call.window.spatial > 3) refuse("images of one to three spatial dims");
  Convolution convolution;
  convolution.kind = call.kind;
  convolution.type = call.arrays[0].type;
  convolution.compute = call.compute;
  convolution.deterministic = call.deterministic != 0;
  convolution.flipped = call.window.flipped != 0;
  convolution.relu = call.epilogue.activation == ROSIN_ACTIVATION_RELU;
  const std::array<int32_t, 3> roles = roles_of(call.kind);
  convolution.x = tensor_of(call, roles[0]);
  convolution.w = tensor_of(call, roles[1]);
  convolution.y = tensor_of(call, roles[2]);
  take_window(convolution, call.window);
  check_sizes(convolution, call.window.groups);
  if (call.epilogue.bias) convolution.bias = bias_of(call, convolution.y);
  for (uint32_t i = 0; i < call.array_count; ++i) convolution.bytes.push_back(bytes_of(call.arrays[i]));
  return convolution;
}

std::string key_of(const Convolution& c) {
  std::string key;
  const auto add = [&](int64_t number) { key.append(std::to_string(number)).append(" "); };
  for (const int32_t number : {c.kind, c.type, c.compute}) add(number);
  for (const bool flag : {c.deterministic, c.flipped, c.relu}) add(flag);
  for (const Tensor* tensor : {&c.x, &c.w, &c.y, &c.bias}) {
    add(tensor->at);
    for (const int64_t number : tensor->sizes) add(number);
    for (const int64_t number : tensor->strides) add(number);
  }
  for (const auto* numbers : {&c.stride, &c.dilation, &c.pad_low, &c.pad_high}) {
    for (const int64_t number : *numbers) add(number);
  }
  return key;
}

}  // namespace rosin::vendor
