// A graph as a file: the messages of the format. Read first: file_graph.hpp.
#pragma once

#include <string>
#include <vector>

#include <rosin/onnx.hpp>

#include "onnx/file_graph.hpp"

namespace rosin::onnx {

/// An input or output; sizes in the order of arrays.
struct FilePort {
  std::string name;
  DType type = Float32;
  std::vector<Size> sizes;
};

/// Evaluates the arrays and writes the file, whole or not at all. Errors: io, memory; dtype (elements that the format
/// lacks).
void write_model_file(const std::string& path, const FileGraph& graph, const std::vector<FilePort>& inputs,
                      const std::vector<FilePort>& outputs, const SaveOptions& options);

}  // namespace rosin::onnx
