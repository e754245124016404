// See cudnn_recurrent.hpp.
#include "cuda/cudnn_recurrent.hpp"

#include <vector>

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using driver::Stream;

constexpr int standard_algorithm = 0, one_direction = 0, linear_input = 0, layers = 1;

const dnn::RecurrentFunctions& functions() {
  const dnn::RecurrentFunctions* all = dnn_library().recurrent();
  if (!all)
    throw Failure{ROSIN_UNSUPPORTED, "cuDNN " + dnn_library().version() + " lacks functions of recurrent layers"};
  return *all;
}

void check(int status, const char* what) { dnn_library().check(status, what); }

dnn::Type type_of(int32_t type) {
  switch (type) {
    case ROSIN_FLOAT64: return dnn::Type::float64;
    case ROSIN_FLOAT16: return dnn::Type::float16;
    case ROSIN_BFLOAT16: return dnn::Type::bfloat16;
    default: return dnn::Type::float32;
  }
}

dnn::RecurrentCell cell_of(int32_t cell) {
  switch (cell) {
    case ROSIN_CELL_RELU: return dnn::RecurrentCell::relu;
    case ROSIN_CELL_LSTM: return dnn::RecurrentCell::lstm;
    case ROSIN_CELL_GRU: return dnn::RecurrentCell::gru;
    default: return dnn::RecurrentCell::tanh;
  }
}

dnn::MathType math_of(const Recurrent& layer) {
  if (layer.type == ROSIN_FLOAT16 || layer.type == ROSIN_BFLOAT16) return dnn::MathType::tensor_cores;
  const bool float32 = layer.type == ROSIN_FLOAT32 && layer.compute == ROSIN_COMPUTE_EXACT;
  return float32 ? dnn::MathType::fma : dnn::MathType::usual;
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

}  // namespace

DnnRecurrent::DnnRecurrent(Dnn& dnn, const Recurrent& layer) : dnn_(dnn), layer_(layer), call_(functions()) {
  dnn_.use(nullptr, "a recurrent layer", [&](dnn::Handle handle) {
    describe(handle);
    check_weights(handle);
    return int{dnn::success};
  });
}

void DnnRecurrent::describe(dnn::Handle handle) {
  const dnn::Type type = type_of(layer_.type);
  const dnn::Type sums = layer_.type == ROSIN_FLOAT64 ? dnn::Type::float64 : dnn::Type::float32;
  const int out = static_cast<int>(layer_.out), features = static_cast<int>(layer_.features);
  const int steps = static_cast<int>(layer_.steps), batch = static_cast<int>(layer_.batch);
  dropout_.make(call_.dropout_create, call_.dropout_destroy);
  check(call_.dropout_set(dropout_.get(), handle, 0, nullptr, 0, 0), "a layer without dropout");
  form_.make(call_.create, call_.destroy);
  check(call_.set(form_.get(), standard_algorithm, cell_of(layer_.cell), dnn::input_bias, one_direction, linear_input,
                  type, sums, math_of(layer_), features, out, out, layers, dropout_.get(), dnn::padded_io),
        "the form of a recurrent layer");
  const std::vector<int> lengths(static_cast<size_t>(batch), steps);
  x_form_.make(call_.sequence_create, call_.sequence_destroy);
  y_form_.make(call_.sequence_create, call_.sequence_destroy);
  check(call_.sequence_set(x_form_.get(), type, dnn::batch_major, steps, batch, features, lengths.data(), nullptr),
        "the form of sequences");
  check(call_.sequence_set(y_form_.get(), type, dnn::batch_major, steps, batch, out, lengths.data(), nullptr),
        "the form of sequences");
  const int sizes[] = {layers, batch, out}, strides[] = {batch * out, out, 1};
  state_form_.make(call_.tensor_create, call_.tensor_destroy);
  check(call_.tensor_set(state_form_.get(), type, 3, sizes, strides), "the form of states");
  size_t workspace = 0, reserve = 0;
  check(call_.room(handle, form_.get(), dnn::ForwardMode::inference, x_form_.get(), &workspace, &reserve), "room");
  inference_room_ = workspace;
  check(call_.room(handle, form_.get(), dnn::ForwardMode::training, x_form_.get(), &workspace, &reserve), "room");
  training_room_ = workspace;
  reserve_ = reserve;
}

/// Calls have the weights of the input, gate by gate, then those of the state, then the biases, without gaps.
void DnnRecurrent::check_weights(dnn::Handle handle) const {
  size_t bytes = 0;
  check(call_.weight_bytes(handle, form_.get(), &bytes), "the size of weights");
  const uint64_t element = layer_.element_bytes();
  bool alike = bytes == static_cast<uint64_t>(layer_.parameters()) * element;
  Owned<dnn::TensorDescriptor> weight, bias;
  weight.make(call_.tensor_create, call_.tensor_destroy);
  bias.make(call_.tensor_create, call_.tensor_destroy);
  constexpr uintptr_t begin = 4096;  // nothing is read or written there
  const auto gates = layer_.gates(), matrices = gates * layer_.out * (layer_.features + layer_.out);
  for (int64_t i = 0; i < 2 * gates && alike; ++i) {
    const bool of_input = i < gates;
    void *weight_at = nullptr, *bias_at = nullptr;
    check(call_.weight_places(handle, form_.get(), 0, bytes, reinterpret_cast<void*>(begin), static_cast<int32_t>(i),
                              weight.get(), &weight_at, bias.get(), &bias_at),
          "places of weights");
    const int64_t before = of_input ? i * layer_.out * layer_.features
                                    : gates * layer_.out * layer_.features + (i - gates) * layer_.out * layer_.out;
    const auto at = [&](int64_t elements) { return begin + static_cast<uint64_t>(elements) * element; };
    alike = reinterpret_cast<uintptr_t>(weight_at) == at(before) &&
            (!of_input || reinterpret_cast<uintptr_t>(bias_at) == at(matrices + i * layer_.out));
  }
  if (!alike) throw Failure{ROSIN_UNSUPPORTED, "cuDNN " + dnn_library().version() + " has weights in another order"};
}

void DnnRecurrent::forward(Stream stream, const RecurrentArrays& a) const {
  const bool keeps = a.reserve != 0;
  const size_t weight_bytes = static_cast<size_t>(layer_.parameters()) * layer_.element_bytes();
  dnn_.use(stream, "a recurrent layer", [&](dnn::Handle handle) {
    return call_.forward(handle, form_.get(), keeps ? dnn::ForwardMode::training : dnn::ForwardMode::inference, nullptr,
                         x_form_.get(), pointer(a.x), y_form_.get(), pointer(a.y), state_form_.get(), pointer(a.h),
                         pointer(a.last_h), state_form_.get(), pointer(a.c), pointer(a.last_c), weight_bytes,
                         pointer(a.weights), workspace(keeps), pointer(a.workspace), keeps ? reserve_ : 0,
                         pointer(a.reserve));
  });
}

void DnnRecurrent::backward(Stream stream, const RecurrentArrays& a) const {
  const size_t weight_bytes = static_cast<size_t>(layer_.parameters()) * layer_.element_bytes();
  dnn_.use(stream, "the gradient of a recurrent layer", [&](dnn::Handle handle) {
    return call_.backward_data(handle, form_.get(), nullptr, y_form_.get(), pointer(a.y), pointer(a.dy), x_form_.get(),
                               pointer(a.dx), state_form_.get(), pointer(a.h), pointer(a.last_dh), pointer(a.dh),
                               state_form_.get(), pointer(a.c), pointer(a.last_dc), pointer(a.dc), weight_bytes,
                               pointer(a.weights), training_room_, pointer(a.workspace), reserve_, pointer(a.reserve));
  });
  if (a.dweights == 0) return;
  constexpr int adds = 0;  // all that some versions do
  dnn_.use(stream, "the gradient of a recurrent layer", [&](dnn::Handle handle) {
    return call_.backward_weights(handle, form_.get(), adds, nullptr, x_form_.get(), pointer(a.x), state_form_.get(),
                                  pointer(a.h), y_form_.get(), pointer(a.y), weight_bytes, pointer(a.dweights),
                                  training_room_, pointer(a.workspace), reserve_, pointer(a.reserve));
  });
}

}  // namespace rosin::cuda
