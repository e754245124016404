// See cudnn_graph_parts.hpp.
#include "cuda/cudnn_graph_parts.hpp"

namespace rosin::cuda {

using dnn::Attribute;
using dnn::Kind;
using dnn::ValueType;

namespace {
constexpr uint64_t room_alignment = 256;
}  // namespace

dnn::Descriptor GraphParts::array(int64_t id, dnn::Type type, const Tensor& from) {
  made_.arrays.emplace_back(id, from.at);
  return made_.parts.emplace_back(dnn_tensor(library_, id, type, from)).get();
}

dnn::Descriptor GraphParts::inner(int64_t id, dnn::Type type, const Tensor& form) {
  return made_.parts.emplace_back(dnn_tensor(library_, id, type, form, true)).get();
}

dnn::Descriptor GraphParts::room(int64_t id, const Tensor& form) {
  uint64_t bytes = sizeof(float);
  for (const int64_t size : form.sizes) bytes *= static_cast<uint64_t>(size);
  made_.rooms.emplace_back(id, (bytes + room_alignment - 1) / room_alignment * room_alignment);
  return made_.parts.emplace_back(dnn_tensor(library_, id, dnn::Type::float32, form)).get();
}

dnn::Descriptor GraphParts::number(int64_t id, float value) {
  made_.numbers.emplace_back(id, value);
  const std::vector<int64_t> ones(4, 1);
  const DnnDescriptor& made = add(Kind::tensor);
  made.set(Attribute::tensor_type, ValueType::data_type, dnn::Type::float32);
  made.set(Attribute::tensor_dimensions, ValueType::int64, ones);
  made.set(Attribute::tensor_strides, ValueType::int64, ones);
  made.set(Attribute::tensor_id, ValueType::int64, id);
  made.set(Attribute::tensor_alignment, ValueType::int64, static_cast<int64_t>(sizeof value));
  made.set(Attribute::tensor_by_value, ValueType::boolean, true);
  made.finish("number of a graph");
  return made.get();
}

dnn::Descriptor GraphParts::graph(const char* what, const std::vector<dnn::Descriptor>& operations) {
  const DnnDescriptor& made = add(Kind::graph);
  if (handle_) made.set(Attribute::graph_handle, ValueType::handle, handle_);
  made.set(Attribute::graph_operations, ValueType::descriptor, operations);
  made.finish(what);
  return made.get();
}

}  // namespace rosin::cuda
