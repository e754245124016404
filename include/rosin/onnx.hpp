// ONNX: a model from a file of the Open Neural Network Exchange format as a value that is called, walked, moved and
// trained like any layer; and any function of arrays as such a file. Read next: docs/onnx.md (which ops, of which
// versions; how dims map).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
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

/// How a function is written.
struct SaveOptions {
  /// Names of what it gives, in order; "output", or "output_0", "output_1", ... where there are none.
  std::vector<std::string> outputs = {};
  /// The version of the ops, 16 to 28.
  int64_t opset = 17;
  /// Whether the last dim of the inputs, the file's first, may have any size in the file; of those inputs where it is
  /// that of the first one with two dims. The function is recorded with two sizes, to find what follows from it.
  bool symbolic_batch = true;
  /// Names of arrays that the function has taken along, such as state(model); those of a model are known.
  std::vector<NamedArray> parameters = {};
  /// Whether arrays of 1 KiB or more stand in a file beside it, PATH.data; so they do anyway from 2 GiB on.
  bool external_data = false;
  std::string graph_name = "rosin";
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

namespace detail {

/// A function of arrays as compiled code sees it; refers to it.
struct RecordedFunction {
  const void* object;
  Arrays (*call)(const void* object, std::span<const Array> inputs);
};

template <class Result> Arrays listed(Result&& result) {
  using Plain = std::remove_cvref_t<Result>;
  if constexpr (std::is_same_v<Plain, Array>) {
    return {std::forward<Result>(result)};
  } else if constexpr (std::is_same_v<Plain, Results>) {
    Arrays list;
    for (const NamedArray& named : result.list) list.push_back(named.value);
    return list;
  } else if constexpr (requires { std::tuple_size<Plain>::value; }) {
    return std::apply([](const auto&... each) { return Arrays{each...}; }, result);
  } else {
    return Arrays(result.begin(), result.end());
  }
}

template <class F, std::size_t... i> Arrays called(const F& f, std::span<const Array> x, std::index_sequence<i...>) {
  if constexpr (std::is_invocable_v<const F&, decltype(x[i])...>) return listed(f(x[i]...));
  else return listed(f(x));
}

template <class F, std::size_t count> RecordedFunction recorded_function(const F& f) {
  return {&f, [](const void* object, std::span<const Array> x) {
            return called(*static_cast<const F*>(object), x, std::make_index_sequence<count>());
          }};
}

/// The arrays of a model by their paths; none of a function.
template <class F> std::vector<NamedArray> parameters_of(const F& f) {
  if constexpr (Walkable<F> && !reflect::is_leaf<F>) return state(f);
  else return {};
}

ROSIN_API void save_function(const std::string& path, const RecordedFunction& function,
                             std::vector<NamedArray> parameters, std::span<const NamedInput> inputs,
                             const SaveOptions& options);

}  // namespace detail

/// Writes a function of arrays, such as a model, as an ONNX file: `save("m.onnx", m, {{"x", x}, {"mask", mask}})`. It
/// is called on the examples, as outside gradient calls (Dropout passes all, BatchNorm takes what it has learned), and
/// what it records becomes the file's graph; only sizes and types of the examples matter, and nothing is computed but
/// what depends on no input. It takes the inputs one by one, or as a span, and gives an array, a list or a tuple of
/// arrays. Parameters have their paths as names, kernels of true convolutions the direction of the format. Dims stand
/// in reverse. Random numbers are drawn anew in each run of the file. The file appears whole or not at all.
/// Errors: argument (ops that the format lacks, all in one message; the function reads values, or does other things for
/// another batch size; inputs or outputs are complex; names, opset), io (the file cannot be written), those of the
/// function.
template <class F, std::size_t count>
void save(const std::string& path, const F& f, const NamedInput (&inputs)[count], const SaveOptions& options = {}) {
  detail::save_function(path, detail::recorded_function<F, count>(f), detail::parameters_of(f), inputs, options);
}
/// The same for one input, called "input".
template <class F> void save(const std::string& path, const F& f, const Array& input, const SaveOptions& options = {}) {
  save(path, f, {NamedInput{"input", input}}, options);
}

}  // namespace rosin::onnx
