// ONNX: a model from a file of the Open Neural Network Exchange format as a value that is called, walked, moved and
// trained like any layer. Read next: docs/onnx.md (which ops, of which versions; how dims map).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/io.hpp>
#include <rosin/layer.hpp>
#include <rosin/model.hpp>
#include <rosin/walk.hpp>

namespace rosin::onnx {

class Program;
struct ProgramHolder;

/// An input or output of a model. Dims are those of the file in reverse: NCHW in the file is (width, height, channels,
/// batch) here.
struct Port {
  std::string name;
  DType type = Float32;
  bool has_sizes = false;      // whether the file states how many dims there are
  std::vector<int64_t> sizes;  // -1: any
};

/// An array for one input of a call.
struct NamedInput {
  std::string_view name;
  Array value;
};

/// What a call by names gives, in the order of the file's outputs.
struct ROSIN_API Results {
  std::vector<NamedArray> list;

  /// Error (argument): there is no such output.
  const Array& operator[](std::string_view name) const;
  const Array& operator[](int64_t position) const;
};

/// A model from a file: a function of named arrays. Its weights (initializers of a floating type that are no settings
/// of an op) are parameters under the names of the file; running statistics, integers and large constants are places
/// that move along and are not trained. A copy shares the program and the arrays.
class ROSIN_API Model {
 public:
  Model(const Model& other);
  Model(Model&& other) noexcept : holder_(std::exchange(other.holder_, nullptr)), weights_(std::move(other.weights_)) {}
  Model& operator=(Model other) noexcept {
    std::swap(holder_, other.holder_);
    std::swap(weights_, other.weights_);
    return *this;
  }
  ~Model();

  /// One array in, one out. Error (argument): the model has more inputs without a default, or more outputs.
  Array operator()(const Array& x) const;
  /// By position: inputs that have no default, in the order of the file.
  Arrays operator()(std::span<const Array> inputs) const;
  /// By name: `model({{"input", x}})["output"]`. Inputs with a default may be given or left out.
  /// Errors: argument (unknown, missing or repeated names), shape and dtype (not what the file says), device (an input
  /// is not where the model is); those of ops begin with the node of the file.
  Results operator()(std::initializer_list<NamedInput> inputs) const;
  Results operator()(std::span<const NamedInput> inputs) const;

  const std::vector<Port>& inputs() const noexcept;
  const std::vector<Port>& outputs() const noexcept;
  /// Whether several arrays may come out of it; for containers of layers.
  bool maps_lists() const { return outputs().size() != 1; }
  /// The version of the ops of the default domain that the file was written for.
  int64_t opset() const noexcept;

  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;
  void rosin_visit(ModelEditor& editor, const ModelPath& path);

 private:
  friend ROSIN_API Model load(const std::string& path);
  explicit Model(ProgramHolder* holder);
  template <class Self, class Visitor> static void walk(Self& self, Visitor& visitor, const ModelPath& path);
  Arrays run(std::vector<Array> inputs) const;
  const Program& program() const noexcept;

  ProgramHolder* holder_;
  Arrays weights_;
};

/// The model of a file; external data is looked for beside it. What depends on constants alone is computed here.
/// Errors: io (the file cannot be read, or is no ONNX model; nothing in it is trusted; an op or version that rosin
/// lacks: all of them in one message), dtype and shape (tensors that arrays cannot hold).
ROSIN_API Model load(const std::string& path);

/// What a file says of itself: its initializers with the sizes of the file, inputs, outputs, versions, how many nodes
/// of which op. No array is made. Error (io): the file cannot be read, or is no ONNX model.
ROSIN_API FileListing list_file(const std::string& path);

/// The initializers of a file with the names and sizes of the file, also where the model has ops that rosin lacks;
/// external data is looked for beside it. Errors: io (as load, and external data that is not there), dtype and shape
/// (tensors that arrays cannot hold).
ROSIN_API std::vector<NamedArray> initializers(const std::string& path);

}  // namespace rosin::onnx
