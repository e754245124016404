// Convolutions as graphs, and what all graphs share. See cudnn_graph.hpp.
#include "cuda/cudnn_graph_parts.hpp"

namespace rosin::cuda {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::ValueType;

constexpr int64_t alignment = 16;
constexpr int64_t x_id = 1, w_id = 2, y_id = 3, bias_id = 4, product_id = 5, sum_id = 6;

/// The type that sums are kept in.
dnn::Type sum_type(const Convolution& convolution) {
  return convolution.type == ROSIN_FLOAT64 ? dnn::Type::float64 : dnn::Type::float32;
}

/// How an operation of each kind calls its parts.
struct Names {
  Kind kind;
  Attribute alpha, beta, convolution, x, w, y;
};

Names names_of(int32_t kind) {
  using enum Attribute;
  switch (kind) {
    case ROSIN_CALL_CONVOLUTION_DATA:
      return {Kind::backward_data, data_alpha, data_beta, data_convolution, data_dx, data_w, data_dy};
    case ROSIN_CALL_CONVOLUTION_WEIGHTS:
      return {
          Kind::backward_weights, weights_alpha, weights_beta, weights_convolution, weights_x, weights_dw, weights_dy};
    default: return {Kind::forward, forward_alpha, forward_beta, forward_convolution, forward_x, forward_w, forward_y};
  }
}

/// The graph of a convolution, and what it is made of, which lives as long.
class ConvolutionGraph {
 public:
  ConvolutionGraph(const DnnTarget& target, const Convolution& convolution)
      : parts_(target), convolution_(convolution) {
    add_product();
    if (convolution.bias.at >= 0) add_epilogue();
    parts_.graph("graph of a convolution", operations_);
  }

  DnnGraph take() && { return std::move(parts_).take(); }

 private:
  dnn::Descriptor window() {
    const DnnDescriptor& made = parts_.add(Kind::convolution);
    const auto spatial = static_cast<int64_t>(convolution_.stride.size());
    made.set(Attribute::convolution_spatial, ValueType::int64, spatial);
    made.set(Attribute::convolution_type, ValueType::data_type, sum_type(convolution_));
    made.set(Attribute::convolution_mode, ValueType::convolution_mode,
             convolution_.flipped ? dnn::ConvolutionMode::flipped : dnn::ConvolutionMode::cross_correlation);
    made.set(Attribute::convolution_pre_paddings, ValueType::int64, convolution_.pad_low);
    made.set(Attribute::convolution_post_paddings, ValueType::int64, convolution_.pad_high);
    made.set(Attribute::convolution_dilations, ValueType::int64, convolution_.dilation);
    made.set(Attribute::convolution_strides, ValueType::int64, convolution_.stride);
    made.finish("window of a convolution");
    return made.get();
  }

  void add_product() {
    const dnn::Type type = dnn_type_of(convolution_.type);
    const bool stored = convolution_.bias.at < 0;
    const dnn::Descriptor x = parts_.array(x_id, type, convolution_.x);
    const dnn::Descriptor w = parts_.array(w_id, type, convolution_.w);
    last_ = stored ? parts_.array(y_id, type, convolution_.y)
                   : parts_.inner(product_id, sum_type(convolution_), convolution_.y);
    const dnn::Descriptor how = window();
    const Names names = names_of(convolution_.kind);
    const DnnDescriptor& made = parts_.add(names.kind);
    made.set(names.convolution, ValueType::descriptor, how);
    made.set(names.x, ValueType::descriptor, x);
    made.set(names.w, ValueType::descriptor, w);
    made.set(names.y, ValueType::descriptor, last_);
    if (convolution_.type == ROSIN_FLOAT64) {
      made.set(names.alpha, ValueType::float64, 1.0);
      made.set(names.beta, ValueType::float64, 0.0);
    } else {
      made.set(names.alpha, ValueType::float32, 1.0f);
      made.set(names.beta, ValueType::float32, 0.0f);
    }
    made.finish("convolution");
    operations_.push_back(made.get());
  }

  /// last = mode(last, other)
  void add_pointwise(dnn::PointwiseMode mode, dnn::Descriptor other, dnn::Descriptor result) {
    const DnnDescriptor& how = parts_.add(Kind::pointwise);
    how.set(Attribute::pointwise_mode, ValueType::pointwise_mode, mode);
    how.set(Attribute::pointwise_precision, ValueType::data_type, dnn::Type::float32);
    if (mode == dnn::PointwiseMode::relu) {
      how.set(Attribute::pointwise_nan, ValueType::nan_propagation, dnn::NanPropagation::stays);
    }
    how.finish("epilogue");
    const dnn::Descriptor function = how.get();
    const DnnDescriptor& made = parts_.add(Kind::pointwise_operation);
    made.set(Attribute::operation_pointwise, ValueType::descriptor, function);
    made.set(Attribute::operation_x, ValueType::descriptor, last_);
    if (other) made.set(Attribute::operation_b, ValueType::descriptor, other);
    made.set(Attribute::operation_y, ValueType::descriptor, result);
    made.finish("epilogue");
    operations_.push_back(made.get());
    last_ = result;
  }

  void add_epilogue() {
    const dnn::Type type = dnn_type_of(convolution_.type);
    const dnn::Descriptor bias = parts_.array(bias_id, type, convolution_.bias);
    const dnn::Descriptor result = parts_.array(y_id, type, convolution_.y);
    const dnn::Descriptor sum = convolution_.relu ? parts_.inner(sum_id, dnn::Type::float32, convolution_.y) : result;
    add_pointwise(dnn::PointwiseMode::add, bias, sum);
    if (convolution_.relu) add_pointwise(dnn::PointwiseMode::relu, nullptr, result);
  }

  GraphParts parts_;
  const Convolution& convolution_;
  std::vector<dnn::Descriptor> operations_;
  dnn::Descriptor last_ = nullptr;
};

}  // namespace

dnn::Type dnn_type_of(int32_t type) {
  switch (type) {
    case ROSIN_FLOAT16: return dnn::Type::float16;
    case ROSIN_BFLOAT16: return dnn::Type::bfloat16;
    case ROSIN_FLOAT64: return dnn::Type::float64;
    default: return dnn::Type::float32;
  }
}

DnnDescriptor dnn_tensor(const DnnLibrary& library, int64_t id, dnn::Type type, const Tensor& from, bool inner) {
  DnnDescriptor made(library, Kind::tensor);
  made.set(Attribute::tensor_type, ValueType::data_type, type);
  made.set(Attribute::tensor_dimensions, ValueType::int64, from.sizes);
  made.set(Attribute::tensor_strides, ValueType::int64, from.strides);
  made.set(Attribute::tensor_id, ValueType::int64, id);
  made.set(Attribute::tensor_alignment, ValueType::int64, alignment);
  if (inner) made.set(Attribute::tensor_is_virtual, ValueType::boolean, inner);
  made.finish("array of a graph");
  return made;
}

namespace {

/// Halves of one group, and of as many channels as tensor cores multiply at once: cuDNN 9.14 names an engine without
/// them first for some 1x1 kernels on an H200, which takes six times as long.
bool suits_tensor_cores(const Convolution& of) {
  constexpr int64_t least = 8;
  const bool halves = of.type == ROSIN_FLOAT16 || of.type == ROSIN_BFLOAT16;
  return halves && of.x.sizes[1] == of.w.sizes[1] && of.x.sizes[1] >= least && of.y.sizes[1] >= least;
}

}  // namespace

DnnGraph graph_of(const DnnTarget& target, const Convolution& convolution) {
  DnnGraph graph = ConvolutionGraph(target, convolution).take();
  graph.bytes = convolution.bytes;
  graph.key = key_of(convolution);
  graph.name = "convolution";
  graph.type = convolution.type;
  graph.compute = convolution.compute;
  graph.deterministic = convolution.deterministic;
  graph.for_tensor_cores = suits_tensor_cores(convolution);
  return graph;
}

}  // namespace rosin::cuda
