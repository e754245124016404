// Fourier transforms and determinants in ops of the format. Complex numbers are their parts along a last axis.
#include "onnx/exports.hpp"

namespace rosin::onnx {

/// Not divided by the number of elements, as the format does on the way back.
std::string fourier_out(NodeWriting& node) {
  const auto [dim, inverse] = node.attributes<FourierAttributes>();
  const int64_t axis = axis_of(dim, node.rank());
  FileGraph& file = node.file;
  const DType type = node.value().type;
  const std::vector<WireWriter> way{integer_attribute("inverse", inverse)};
  std::vector<WireWriter> old_way = way;
  old_way.push_back(integer_attribute("axis", axis));
  const std::string y = file.opset() < 20
                            ? file.add("DFT", {node.in(0)}, std::move(old_way))
                            : file.add("DFT", {node.in(0), "", file.number(Int64, static_cast<double>(axis))}, way);
  if (inverse == 0) return y;
  return file.add("Mul", {y, file.cast(file.sizes({node.sizes()[static_cast<size_t>(dim)]}), type)});
}

std::string det_out(NodeWriting& node) { return reshaped(node, node.add("Det", {node.in(0)})); }

}  // namespace rosin::onnx
