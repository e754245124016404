// What the rows of the table of exports share: see node_writing.hpp.
#include "onnx/node_writing.hpp"

#include <rosin/error.hpp>

namespace rosin::onnx {

DType NodeWriting::computed() const noexcept {
  switch (value_.compute) {
    case ScalarType::boolean: return Bool;
    case ScalarType::int32: return Int32;
    case ScalarType::uint32: return UInt32;
    case ScalarType::int64: return Int64;
    case ScalarType::uint64: return UInt64;
    case ScalarType::float32: return Float32;
    case ScalarType::float64: return Float64;
  }
  return Float32;
}

std::vector<Size> NodeWriting::file_sizes() const {
  std::vector<Size> sizes(value_.sizes.rbegin(), value_.sizes.rend());
  if (has_parts()) sizes.push_back({0, 2});
  return sizes;
}

std::string NodeWriting::in(int i, DType type) const {
  if (is_complex(type) && (is_number(i) || operand(i).type != type)) refuse("complex numbers and others");
  if (is_number(i)) return file.number(type, value_.operands[static_cast<size_t>(i)].number);
  return operand(i).type == type ? in(i) : file.cast(in(i), type);
}

void NodeWriting::refuse(const std::string& why) const {
  throw Error(ErrorKind::argument, std::string(value_.op->name) + " (" + why + ")");
}

}  // namespace rosin::onnx
