// Vendor calls of Metal: products, convolutions and attention by MPSGraph. A call is a compiled graph; calls that are
// alike share it. Read first: graph.hpp, attention.hpp.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "metal/attention.hpp"
#include "metal/graph.hpp"
#include "metal/graph_messages.hpp"

struct rosin_call {
  std::shared_ptr<const rosin::metal::Executable> graph;
};

namespace rosin::metal {
namespace {

/// A copy, whose fields beyond the size that it states are zero.
rosin_call_description known_fields(const rosin_call_description& call) {
  rosin_call_description known{};
  std::memcpy(&known, &call, std::min(call.size, sizeof known));
  return known;
}

/// The roles of what is computed from, and of the result.
std::array<int32_t, 3> roles_of(int32_t kind) {
  switch (kind) {
    case ROSIN_CALL_MATMUL: return {ROSIN_ROLE_LEFT, ROSIN_ROLE_RIGHT, ROSIN_ROLE_OUTPUT};
    case ROSIN_CALL_CONVOLUTION: return {ROSIN_ROLE_INPUT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_OUTPUT};
    case ROSIN_CALL_CONVOLUTION_DATA:
      return {ROSIN_ROLE_OUTPUT_GRADIENT, ROSIN_ROLE_WEIGHTS, ROSIN_ROLE_INPUT_GRADIENT};
    case ROSIN_CALL_CONVOLUTION_WEIGHTS:
      return {ROSIN_ROLE_INPUT, ROSIN_ROLE_OUTPUT_GRADIENT, ROSIN_ROLE_WEIGHTS_GRADIENT};
    default: refuse("it is asked for products, convolutions and attention, no more");
  }
}

/// A bias, a residual and relu go along; of halves only where steps need not round one by one.
void check_epilogue(const rosin_call_description& call) {
  const rosin_epilogue& epilogue = call.epilogue;
  const bool relu = epilogue.activation == ROSIN_ACTIVATION_RELU;
  if (epilogue.auxiliary || epilogue.bias_gradient || call.accumulate || call.scaled) refuse("no such epilogue");
  if (!relu && epilogue.activation != ROSIN_ACTIVATION_NONE) refuse("no such activation");
  if (!epilogue.bias && !epilogue.residual) return;
  if (call.kind != ROSIN_CALL_MATMUL && call.kind != ROSIN_CALL_CONVOLUTION) refuse("gradients have no epilogue");
  if (call.arrays[0].type != ROSIN_FLOAT32 && !call.unrounded) refuse("it rounds once where rosin rounds at each step");
}

/// Refuses what graphs do not compute, whatever the sizes.
void check(const rosin_device& device, const rosin_call_description& call) {
  if (is_attention(call)) {
    check_attention(call);
    const std::string why_not = known_why_no_attention(device);
    if (!why_not.empty()) throw Failure{ROSIN_UNSUPPORTED, why_not};
    return;
  }
  if (!the_metal().why_no_graphs.empty()) throw Failure{ROSIN_UNSUPPORTED, the_metal().why_no_graphs};
  const uint32_t wanted = 3u + (call.epilogue.bias ? 1 : 0) + (call.epilogue.residual ? 1 : 0);
  if (!call.arrays || call.array_count != wanted) refuse("not the arrays of this call");
  for (const int32_t role : roles_of(call.kind)) place_of(call, role);
  if (call.epilogue.bias) place_of(call, ROSIN_ROLE_BIAS);
  if (call.epilogue.residual) place_of(call, ROSIN_ROLE_RESIDUAL);
  data_type(call.arrays[0].type);
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].type != call.arrays[0].type) refuse("one type for all arrays");
  }
  if (call.attribute_count != 0) refuse("no attributes");
  if (call.compute != ROSIN_COMPUTE_EXACT) refuse("it computes exactly");
  check_epilogue(call);
}

/// `shape`: of the bias, as it goes along the result.
Id with_epilogue(GraphWriter& graph, const rosin_call_description& call, Id result, const Sizes& shape) {
  if (call.epilogue.bias) {
    const int at = place_of(call, ROSIN_ROLE_BIAS);
    int64_t count = 1, wanted = 1;
    for (const int64_t size : graph.array(at).sizes) count *= size;
    for (const int64_t size : shape) wanted *= size;
    if (count != wanted) refuse("a bias of another size");
    result = graph.sum(result, graph.reshaped(graph.input(at), shape));
  }
  if (call.epilogue.residual) {
    const int at = place_of(call, ROSIN_ROLE_RESIDUAL);
    result = graph.sum(result, graph.reshaped(graph.input(at), graph.array(place_of(call, ROSIN_ROLE_OUTPUT)).sizes));
  }
  return call.epilogue.activation == ROSIN_ACTIVATION_RELU ? graph.relu(result) : result;
}

// ---- Products. Tensors have their dims from the last to the first, so (n, k) times (k, m) makes the result (n, m).

struct Matrix {
  int64_t batch = 1, rows = 1, columns = 1;
  Sizes sizes() const { return {batch, rows, columns}; }
};

/// With all dims of the batch as one, which is that of the result, or 1.
Matrix matrix_of(const Sizes& sizes, const Sizes& of_result) {
  if (sizes.size() < 2) refuse("a matrix has two dims at least");
  const size_t batches = sizes.size() - 2;
  Matrix made{1, sizes[batches], sizes[batches + 1]};
  for (size_t i = 0; i < batches; ++i) made.batch *= sizes[i];
  if (made.batch == 1) return made;
  if (sizes.size() > of_result.size()) refuse("batches that do not fit");
  const auto from = of_result.end() - static_cast<ptrdiff_t>(sizes.size());
  if (!std::equal(sizes.begin(), sizes.end() - 2, from)) refuse("batches that repeat in part");
  if (std::any_of(of_result.begin(), from, [](int64_t size) { return size != 1; }))
    refuse("batches that repeat in part");
  return made;
}

Executable product_of(const rosin_device& device, const rosin_call_description& call) {
  GraphWriter graph(call);
  const int left_at = place_of(call, ROSIN_ROLE_LEFT), right_at = place_of(call, ROSIN_ROLE_RIGHT);
  const int result_at = place_of(call, ROSIN_ROLE_OUTPUT);
  const Sizes& of_result = graph.array(result_at).sizes;
  const Matrix left = matrix_of(graph.array(left_at).sizes, of_result);
  const Matrix right = matrix_of(graph.array(right_at).sizes, of_result), result = matrix_of(of_result, of_result);
  if (left.columns != result.columns || right.rows != result.rows || right.columns != left.rows)
    throw Failure{ROSIN_INVALID, "matmul: the sizes of its matrices do not fit"};
  const Id product = graph.multiplied(graph.reshaped(graph.input(right_at), right.sizes()),
                                      graph.reshaped(graph.input(left_at), left.sizes()));
  Sizes bias(of_result.size(), 1);
  bias.back() = of_result.back();
  return graph.finish(device, with_epilogue(graph, call, graph.reshaped(product, of_result), bias), result_at);
}

// ---- Convolutions. Tensors are (batch, channels, y, x) and (out, in / groups, y, x); images of one dim have one row.

Sizes with_rows(Sizes sizes) {
  if (sizes.size() == 3) sizes.insert(sizes.begin() + 2, 1);
  return sizes;
}

/// The roles of the images that the forward convolution reads and makes, and of the weights.
struct Roles {
  int32_t input, weights, output;
};
Roles forward_roles(int32_t kind) {
  return {kind == ROSIN_CALL_CONVOLUTION_DATA ? ROSIN_ROLE_INPUT_GRADIENT : ROSIN_ROLE_INPUT,
          kind == ROSIN_CALL_CONVOLUTION_WEIGHTS ? ROSIN_ROLE_WEIGHTS_GRADIENT : ROSIN_ROLE_WEIGHTS,
          kind == ROSIN_CALL_CONVOLUTION ? ROSIN_ROLE_OUTPUT : ROSIN_ROLE_OUTPUT_GRADIENT};
}

/// Throws ROSIN_INVALID where the sizes do not fit. Sizes: from the slowest dim; entries of the window: the other way.
void check_window(const rosin_call_window& window, const Sizes& x, const Sizes& w, const Sizes& y) {
  const auto invalid = [](const char* why) { throw Failure{ROSIN_INVALID, std::string("convolution: ") + why}; };
  const int64_t groups = window.groups;
  if (groups < 1 || x[0] != y[0] || x[1] != w[1] * groups || y[1] != w[0] || w[0] % groups != 0)
    invalid("the sizes of its arrays do not fit");
  for (int d = 0; d < window.spatial; ++d) {
    const size_t at = x.size() - 1 - static_cast<size_t>(d);
    if (window.stride[d] < 1 || window.dilation[d] < 1) invalid("a stride or dilation below 1");
    if (window.pad_low[d] < 0 || window.pad_high[d] < 0) refuse("padding below 0");
    const int64_t room = x[at] + window.pad_low[d] + window.pad_high[d] - (window.dilation[d] * (w[at] - 1) + 1);
    if (room < 0 || y[at] != room / window.stride[d] + 1) invalid("the sizes of its images do not fit");
  }
}

Id descriptor_of(const rosin_call_window& window) {
  const auto along = [&](const int32_t(&numbers)[3], int d, uint64_t otherwise) {
    return d < window.spatial ? static_cast<uint64_t>(numbers[d]) : otherwise;
  };
  return send::convolution_descriptor(
      runtime().get_class("MPSGraphConvolution2DOpDescriptor"), along(window.stride, 0, 1), along(window.stride, 1, 1),
      along(window.dilation, 0, 1), along(window.dilation, 1, 1), static_cast<uint64_t>(window.groups),
      along(window.pad_low, 0, 0), along(window.pad_high, 0, 0), along(window.pad_low, 1, 0),
      along(window.pad_high, 1, 0), padding_explicit, layout_nchw, layout_oihw);
}

/// Graphs convolve without turning the weights.
Id turned(GraphWriter& graph, const rosin_call_window& window, Id weights) {
  return window.flipped ? graph.reversed(weights, {2, 3}) : weights;
}

Executable convolution_of(const rosin_device& device, const rosin_call_description& call) {
  const rosin_call_window& window = call.window;
  if (window.spatial < 1 || window.spatial > 2) refuse("images of one or two spatial dims");
  GraphWriter graph(call);
  const Roles roles = forward_roles(call.kind);
  const int x_at = place_of(call, roles.input), w_at = place_of(call, roles.weights),
            y_at = place_of(call, roles.output);
  for (const int at : {x_at, w_at, y_at}) {
    if (call.arrays[at].rank != window.spatial + 2) refuse("arrays of two dims beside the spatial ones");
  }
  const auto sizes = [&](int at) { return with_rows(graph.array(at).sizes); };
  const auto input = [&](int at) { return graph.reshaped(graph.input(at), sizes(at)); };
  check_window(window, graph.array(x_at).sizes, graph.array(w_at).sizes, graph.array(y_at).sizes);
  const Id how = descriptor_of(window), g = graph.graph();
  Id result = nullptr;
  int result_at = y_at;
  if (call.kind == ROSIN_CALL_CONVOLUTION) {
    result = send::convolution(g, input(x_at), turned(graph, window, input(w_at)), how, nullptr);
  } else if (call.kind == ROSIN_CALL_CONVOLUTION_DATA) {
    const Id weights = turned(graph, window, input(w_at));
    result = send::convolution_data(g, input(y_at), weights, GraphWriter::shape(sizes(x_at)), how, nullptr);
    result_at = x_at;
  } else {
    result = send::convolution_weights(g, input(y_at), input(x_at), GraphWriter::shape(sizes(w_at)), how, nullptr);
    if (result) result = turned(graph, window, result);
    result_at = w_at;
  }
  if (!result) refuse("no such convolution");
  Sizes bias(graph.array(result_at).sizes.size(), 1);
  bias[1] = graph.array(result_at).sizes[1];
  result = graph.reshaped(result, graph.array(result_at).sizes);
  return graph.finish(device, with_epilogue(graph, call, result, bias), result_at);
}

/// What a graph follows from, as bytes.
std::string key_of(const rosin_call_description& call) {
  std::string key;
  const auto add = [&](const auto& field) { key.append(reinterpret_cast<const char*>(&field), sizeof field); };
  add(call.kind);
  add(call.window);
  add(call.epilogue);
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const rosin_call_array& array = call.arrays[i];
    add(array.role);
    add(array.type);
    add(array.rank);
    for (int d = 0; d < array.rank; ++d) add(array.sizes[d]), add(array.strides[d]);
  }
  for (uint32_t i = 0; i < call.attribute_count; ++i) {
    add(call.attributes[i].key);
    add(call.attributes[i].integer);
    add(call.attributes[i].real);
  }
  return key;
}

Executable made_for(rosin_device& device, const rosin_call_description& call) {
  if (call.kind == ROSIN_CALL_MATMUL) return product_of(device, call);
  return is_attention(call) ? attention_graph(device, call) : convolution_of(device, call);
}

/// Graphs of calls that live.
std::shared_ptr<const Executable> graph_of(rosin_device& device, const rosin_call_description& call) {
  const std::string key = key_of(call);
  {
    const std::lock_guard guard(device.lock);
    std::erase_if(device.graphs, [](const auto& entry) { return entry.second.expired(); });
    const auto found = device.graphs.find(key);
    if (found != device.graphs.end()) {
      if (auto graph = found->second.lock()) return graph;
    }
  }
  auto made = std::make_shared<const Executable>(made_for(device, call));
  const std::lock_guard guard(device.lock);
  device.graphs[key] = made;
  return made;
}

}  // namespace

rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders) {
  return pooled([&] {
    const rosin_call_description call = known_fields(*description);
    check(*device, call);
    for (uint32_t i = 0; i < call.array_count; ++i) {
      const int32_t role = call.arrays[i].role;
      const bool turns = role == ROSIN_ROLE_LEFT || role == ROSIN_ROLE_RIGHT || is_attention(call);
      orders[i] = turns ? ROSIN_ORDER_STRIDED : ROSIN_ORDER_CONTIGUOUS;
    }
  });
}

rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
  return pooled([&] {
    const rosin_call_description call = known_fields(*description);
    check(*device, call);
    if (is_attention(call)) {
      const std::string why_not = why_no_attention(*device);
      if (!why_not.empty()) throw Failure{ROSIN_UNSUPPORTED, why_not};
    }
    *out = new rosin_call{graph_of(*device, call)};
    *workspace = 0;
  });
}

void call_destroy(rosin_call* call) {
  pooled([&] { delete call; });
}

rosin_status call_run(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place /*workspace*/,
                      const rosin_call_numbers* /*numbers*/) {
  return pooled([&] {
    check_lost(*stream->device);
    give_graph(*stream, *call->graph, buffers);
  });
}

}  // namespace rosin::metal
