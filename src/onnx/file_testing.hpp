// ONNX files made by hand for tests: each function gives the bytes of one message of the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace rosin::testing {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number_field(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string bytes_field(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}

/// A tensor with these sizes (in the file's order) and its elements as raw bytes. type: 1 FLOAT, 7 INT64.
template <class T>
std::string tensor_message(const std::string& name, int type, const std::vector<int64_t>& sizes,
                           const std::vector<T>& values) {
  std::string bytes;
  for (int64_t size : sizes) bytes += number_field(1, size);
  std::string raw(values.size() * sizeof(T), '\0');
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return bytes + number_field(2, type) + bytes_field(8, name) + bytes_field(9, raw);
}
inline std::string floats(const std::string& name, const std::vector<int64_t>& sizes,
                          const std::vector<float>& values) {
  return bytes_field(5, tensor_message(name, 1, sizes, values));
}
inline std::string integers(const std::string& name, const std::vector<int64_t>& sizes,
                            const std::vector<int64_t>& values) {
  return bytes_field(5, tensor_message(name, 7, sizes, values));
}

inline std::string integer_attribute(const std::string& name, int64_t value) {
  return bytes_field(5, bytes_field(1, name) + number_field(3, value) + number_field(20, 2));
}
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& attributes = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += bytes_field(1, input);
  for (const std::string& output : outputs) bytes += bytes_field(2, output);
  return bytes_field(1, bytes + bytes_field(3, outputs[0] + "_node") + bytes_field(4, op) + attributes);
}

/// The type of an input (field 11) or output (12); a size of -1 is any.
inline std::string port(int field, const std::string& name, const std::vector<int64_t>& sizes, int type = 1) {
  std::string dims;
  for (int64_t size : sizes) dims += bytes_field(1, size < 0 ? bytes_field(2, "N") : number_field(1, size));
  const std::string tensor = number_field(1, type) + bytes_field(2, dims);
  return bytes_field(field, bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor)));
}
inline std::string input(const std::string& name, const std::vector<int64_t>& sizes, int type = 1) {
  return port(11, name, sizes, type);
}
inline std::string output(const std::string& name, const std::vector<int64_t>& sizes, int type = 1) {
  return port(12, name, sizes, type);
}

inline std::string model_file(const std::string& graph, int64_t opset = 13) {
  return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, number_field(2, opset));
}

/// (N, 2) -> (N, 3) -> (N, 1): y = relu(x W1' + b1) W2', W1 of 3 x 2.
inline std::string small_network() {
  return model_file(node("Gemm", {"x", "first.weight", "first.bias"}, {"h"}, integer_attribute("transB", 1)) +
                    node("Relu", {"h"}, {"a"}) + node("MatMul", {"a", "second"}, {"y"}) +
                    floats("first.weight", {3, 2}, {1, 2, 3, 4, -1, -1}) + floats("first.bias", {3}, {0.5, -1, 2}) +
                    floats("second", {3, 1}, {1, 10, 100}) + input("x", {-1, 2}) + output("y", {-1, 1}));
}

}  // namespace rosin::testing
