// Elements of files as arrays: read piece by piece, mapped, or on their way to a device.
// Read next: tensor_reading.cpp; safetensors.cpp, npy.cpp (the users).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <rosin/io.hpp>

#include "base/input_file.hpp"
#include "base/mapped_file.hpp"

namespace rosin {

/// Where elements stand in a file.
struct StoredElements {
  uint64_t place = 0;  // of the first, in bytes
  DType type = DType::Float32;
  Shape shape;
  bool column_major = false;  // else row-major
};

/// What is wanted of a file.
struct ReadRequest {
  ReadOptions options;
  std::function<Device(std::string_view name)> device_of = nullptr;  // null: all go to options.device
  std::function<bool(std::string_view name)> wants = nullptr;        // null: all
};

/// Brings arrays of one file as a request asks.
class TensorReader {
 public:
  TensorReader(const InputFile& file, const ReadRequest& request) : file_(file), request_(request) {}

  /// Error (io): the file cannot be read, or a Bool is neither 0 nor 1; (dtype): a value does not fit options.dtype.
  Array read(const StoredElements& stored, std::string_view name);

 private:
  Array mapped(const StoredElements& stored, const Device& device);

  const InputFile& file_;
  const ReadRequest& request_;
  std::shared_ptr<const MappedFile> map_;  // made when it is needed
};

/// What options do to an array of a file that was read without them. Error (dtype): as TensorReader.
Array adjusted(const std::string& path, const NamedArray& entry, const ReadOptions& options);
/// Error (argument): options.dtype is no floating-point type.
void check_options(const ReadOptions& options);

}  // namespace rosin
