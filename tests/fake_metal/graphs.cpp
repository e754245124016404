// The classes of MPSGraph, as far as they are used. What Apple's would end the process for, or compute wrongly, ends
// it here. Read first: objects.hpp, graphs.hpp.
#include "graphs.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "objects.hpp"

namespace fake_metal {
namespace {

fake::Machine& machine() { return fake::Machine::instance(); }

struct Tensor : State {
  std::shared_ptr<const Node> node;
};
struct Graph : State {
  std::vector<Kept> tensors;
};
struct WindowDescriptor : State {
  Window window{};
};
/// Of a shaped type, an array's descriptor, an array, and data of a tensor.
struct Shaped : State {
  uint32_t type = 0;
  Sizes sizes;
  bool has_packed_rows = false;
  Kept buffer;
  uint64_t offset = 0;
};
struct GraphOptions : State {
  uint64_t level = 1;
  bool waits = false;
};
struct Executable : State {
  std::vector<Kept> feeds;
  std::shared_ptr<const Node> target;
};
/// A device of graphs, or a command buffer of theirs, around one of Metal.
struct Wrapped : State {
  Kept root;
};

Sizes numbers_in(Object* array) {
  Sizes all;
  for (const Kept& one : objects_in(array)) all.push_back(number_in(one.get()));
  return all;
}

std::shared_ptr<const Node> node_of(Object* tensor) { return state_of<Tensor>(tensor).node; }

/// The graph keeps its tensors.
Object* add(Object* graph, Node node) {
  if (std::any_of(node.sizes.begin(), node.sizes.end(), [](int64_t size) { return size < 1; }))
    misuse("MPSGraph: a size below 1");
  auto tensor = std::make_unique<Tensor>();
  tensor->node = std::make_shared<const Node>(std::move(node));
  Object* object = made("MPSGraphTensor", std::move(tensor));
  state_of<Graph>(graph).tensors.emplace_back(object);
  return autoreleased(object);
}

Node unary(Does does, Object* tensor) {
  Node node;
  node.does = does;
  node.from = {node_of(tensor)};
  node.type = node.from[0]->type;
  node.sizes = node.from[0]->sizes;
  return node;
}

Node binary(Does does, Object* x, Object* y) {
  Node node = unary(does, x);
  node.from.push_back(node_of(y));
  if (node.from[1]->type != node.type) misuse("MPSGraph: operands of different types");
  node.sizes = common_sizes(node.sizes, node.from[1]->sizes);
  if (node.sizes.empty()) misuse("MPSGraph: operands of sizes that do not broadcast");
  return node;
}

/// What is asked under the lock, which may also fail.
template <class F> Object* guarded(F&& f) {
  const bool failed = fails();
  const Guard guard(lock());
  return failed ? nullptr : f();
}

Object* constant(Object* graph, double value, Sizes sizes, uint32_t type) {
  return guarded([&] {
    Node node;
    node.does = Does::constant;
    node.type = type;
    node.sizes = std::move(sizes);
    node.value = value;
    return add(graph, std::move(node));
  });
}

void define_constants() {
  method(
      "MPSGraph", "constantWithScalar:dataType:", +[](Object* self, Selector, double value, uint32_t type) {
        return constant(self, value, {1}, type);
      });
  method(
      "MPSGraph",
      "constantWithScalar:shape:dataType:", +[](Object* self, Selector, double value, Object* shape, uint32_t type) {
        return constant(self, value, numbers_in(shape), type);
      });
}

void define_elements() {
  const char* const graph = "MPSGraph";
  class_method(
      graph, "new",
      +[](Object*, Selector) { return guarded([] { return made("MPSGraph", std::make_unique<Graph>()); }); });
  method(
      graph, "placeholderWithShape:dataType:name:", +[](Object* self, Selector, Object* shape, uint32_t type, Object*) {
        return guarded([&] {
          Node node;
          node.type = type;
          node.sizes = numbers_in(shape);
          return add(self, std::move(node));
        });
      });
  method(
      graph, "castTensor:toType:name:", +[](Object* self, Selector, Object* tensor, uint32_t type, Object*) {
        return guarded([&] {
          Node node = unary(Does::cast, tensor);
          node.type = type;
          return add(self, std::move(node));
        });
      });
  method(
      graph,
      "additionWithPrimaryTensor:secondaryTensor:name:", +[](Object* self, Selector, Object* x, Object* y, Object*) {
        return guarded([&] { return add(self, binary(Does::add, x, y)); });
      });
  method(
      graph,
      "lessThanWithPrimaryTensor:secondaryTensor:name:", +[](Object* self, Selector, Object* x, Object* y, Object*) {
        return guarded([&] {
          Node node = binary(Does::less, x, y);
          node.type = boolean;
          return add(self, std::move(node));
        });
      });
  method(
      graph, "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:",
      +[](Object* self, Selector, Object* mask, Object* x, Object* y, Object*) {
        return guarded([&] {
          Node node = binary(Does::select, x, y);
          node.from.insert(node.from.begin(), node_of(mask));
          if (node.from[0]->type != boolean) misuse("MPSGraph: select by no Bool");
          node.sizes = common_sizes(node.sizes, node.from[0]->sizes);
          return add(self, std::move(node));
        });
      });
}

void define_movements() {
  const char* const graph = "MPSGraph";
  method(
      graph, "transposeTensor:permutation:name:", +[](Object* self, Selector, Object* tensor, Object* dims, Object*) {
        return guarded([&] {
          Node node = unary(Does::transpose, tensor);
          node.dims = numbers_in(dims);
          Sizes sorted = node.dims;
          std::sort(sorted.begin(), sorted.end());
          for (size_t d = 0; d < std::max(sorted.size(), node.sizes.size()); ++d) {
            if (sorted.size() != node.sizes.size() || sorted[d] != static_cast<int64_t>(d))
              misuse("MPSGraph: no permutation of the dims");
            node.sizes[d] = node.from[0]->sizes[static_cast<size_t>(node.dims[d])];
          }
          return add(self, std::move(node));
        });
      });
  method(
      graph, "reshapeTensor:withShape:name:", +[](Object* self, Selector, Object* tensor, Object* shape, Object*) {
        return guarded([&] {
          Node node = unary(Does::reshape, tensor);
          node.sizes = numbers_in(shape);
          if (count_of(node.sizes) != count_of(node.from[0]->sizes)) misuse("MPSGraph: a reshape to another count");
          return add(self, std::move(node));
        });
      });
  method(
      graph, "reverseTensor:axes:name:", +[](Object* self, Selector, Object* tensor, Object* dims, Object*) {
        return guarded([&] {
          Node node = unary(Does::reverse, tensor);
          node.dims = numbers_in(dims);
          for (const int64_t d : node.dims) {
            if (d < 0 || d >= static_cast<int64_t>(node.sizes.size())) misuse("MPSGraph: there is no such dim");
          }
          return add(self, std::move(node));
        });
      });
  method(
      graph, "matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:",
      +[](Object* self, Selector, Object* x, Object* y, Object*) {
        return guarded([&] {
          const Sizes a = node_of(x)->sizes, b = node_of(y)->sizes;
          if (a.size() < 2 || a.size() != b.size() || a.back() != b[b.size() - 2])
            misuse("MPSGraph: no matrices that fit");
          Node node = unary(Does::multiply_matrices, x);
          node.from.push_back(node_of(y));
          if (node.from[1]->type != node.type) misuse("MPSGraph: matrices of different types");
          const Sizes batch = common_sizes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
          if (batch.size() != a.size() - 2) misuse("MPSGraph: batches that do not fit");
          std::copy(batch.begin(), batch.end(), node.sizes.begin());
          node.sizes.back() = b.back();
          return add(self, std::move(node));
        });
      });
}

/// Images that fit the window, and each other.
void check_window(const Window& window, const Sizes& x, const Sizes& w, const Sizes& y) {
  bool fits = x.size() == 4 && w.size() == 4 && y.size() == 4 && x[0] == y[0] && y[1] == w[0] &&
              x[1] == w[1] * window.groups && w[0] % window.groups == 0;
  for (size_t d = 2; fits && d < 4; ++d) {
    const size_t along = 3 - d;
    const int64_t room = x[d] + window.low[along] + window.high[along] - (window.dilation[along] * (w[d] - 1) + 1);
    fits = room >= 0 && y[d] == room / window.stride[along] + 1;
  }
  if (!fits) misuse("MPSGraph: the sizes of a convolution do not fit");
}

Object* convolved(Object* graph, Does does, Object* first, Object* second, Sizes sizes, Object* descriptor) {
  return guarded([&] {
    Node node = unary(does, first);
    node.from.push_back(node_of(second));
    if (node.type != node.from[1]->type) misuse("MPSGraph: a convolution of different types");
    node.window = state_of<WindowDescriptor>(descriptor).window;
    const Sizes &a = node.from[0]->sizes, &b = node.from[1]->sizes;
    node.sizes = std::move(sizes);
    if (does == Does::convolution) {
      if (a.size() != 4 || b.size() != 4) misuse("MPSGraph: a convolution of tensors without four dims");
      node.sizes = {a[0], b[0], 0, 0};
      for (size_t d = 2; d < 4; ++d) {
        const size_t along = 3 - d;
        const int64_t reach = node.window.dilation[along] * (b[d] - 1) + 1;
        node.sizes[d] =
            (a[d] + node.window.low[along] + node.window.high[along] - reach) / node.window.stride[along] + 1;
      }
      check_window(node.window, a, b, node.sizes);
    } else if (does == Does::convolution_data) {
      check_window(node.window, node.sizes, b, a);
    } else {
      check_window(node.window, b, node.sizes, a);
    }
    return add(graph, std::move(node));
  });
}

/// Queries, keys and values of (batch, heads, length, features), as many heads of each and one type, as Apple's page of
/// the operation has them; the mask is added to (batch, heads, queries, keys).
Object* attended(Object* graph, Object* q, Object* k, Object* v, Object* mask, float scale) {
  return guarded([&] {
    Node node = unary(Does::attention, q);
    for (Object* one : {k, v}) node.from.push_back(node_of(one));
    if (mask) node.from.push_back(node_of(mask));
    for (const auto& from : node.from) {
      if (from->type != node.type) misuse("MPSGraph: attention of different types");
    }
    if (node.type != float32 && node.type != float16 && node.type != bfloat16)
      misuse("MPSGraph: attention of no floats");
    const Sizes &queries = node.from[0]->sizes, &keys = node.from[1]->sizes, &values = node.from[2]->sizes;
    if (queries.size() != 4 || keys.size() != 4 || values.size() != 4) misuse("MPSGraph: attention without four dims");
    if (keys != values) misuse("MPSGraph: keys and values of different sizes");
    if (queries[0] != keys[0] || queries[1] != keys[1] || queries[3] != keys[3])
      misuse("MPSGraph: queries and keys that do not fit");
    const Sizes scores{queries[0], queries[1], queries[2], keys[2]};
    if (mask && common_sizes(scores, node.from[3]->sizes) != scores)
      misuse("MPSGraph: a mask that does not broadcast to the scores");
    if (!(std::abs(scale) < INFINITY)) misuse("MPSGraph: a scale that is no number");
    node.value = scale;
    return add(graph, std::move(node));
  });
}

void define_attention() {
  const char* const graph = "MPSGraph";
  method(
      graph, "bandPartWithTensor:numLower:numUpper:name:",
      +[](Object* self, Selector, Object* tensor, int64_t below, int64_t above, Object*) {
        return guarded([&] {
          Node node = unary(Does::band_part, tensor);
          if (node.sizes.size() < 2) misuse("MPSGraph: a band of no matrix");
          node.dims = {below, above};
          return add(self, std::move(node));
        });
      });
  if (machine().options.system < 15 || !machine().options.attention) return;
  method(
      graph, "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:scale:name:",
      +[](Object* self, Selector, Object* q, Object* k, Object* v, float scale, Object*) {
        return attended(self, q, k, v, nullptr, scale);
      });
  method(
      graph, "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:",
      +[](Object* self, Selector, Object* q, Object* k, Object* v, Object* mask, float scale, Object*) {
        return attended(self, q, k, v, mask, scale);
      });
}

void define_convolutions() {
  class_method(
      "MPSGraphConvolution2DOpDescriptor",
      "descriptorWithStrideInX:strideInY:dilationRateInX:dilationRateInY:groups:paddingLeft:paddingRight:"
      "paddingTop:paddingBottom:paddingStyle:dataLayout:weightsLayout:",
      +[](Object*, Selector, uint64_t stride_x, uint64_t stride_y, uint64_t dilation_x, uint64_t dilation_y,
          uint64_t groups, uint64_t left, uint64_t right, uint64_t top, uint64_t bottom, uint64_t style,
          uint64_t images, uint64_t weights) {
        return guarded([&] {
          if (style != 0 || images != 0 || weights != 2)
            misuse("MPSGraph: the stand-in knows NCHW, OIHW, explicit padding");
          if (stride_x < 1 || stride_y < 1 || dilation_x < 1 || dilation_y < 1 || groups < 1)
            misuse("MPSGraph: a number of a convolution is below 1");
          const auto i = [](uint64_t number) { return static_cast<int64_t>(number); };
          auto descriptor = std::make_unique<WindowDescriptor>();
          descriptor->window = {{i(stride_x), i(stride_y)},
                                {i(dilation_x), i(dilation_y)},
                                i(groups),
                                {i(left), i(top)},
                                {i(right), i(bottom)}};
          return autoreleased(made("MPSGraphConvolution2DOpDescriptor", std::move(descriptor)));
        });
      });
  const char* const graph = "MPSGraph";
  method(
      graph, "convolution2DWithSourceTensor:weightsTensor:descriptor:name:",
      +[](Object* self, Selector, Object* x, Object* w, Object* how, Object*) {
        return convolved(self, Does::convolution, x, w, {}, how);
      });
  method(
      graph,
      "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor:"
      "name:",
      +[](Object* self, Selector, Object* y, Object* w, Object* shape, Object* how, Object*) {
        return convolved(self, Does::convolution_data, y, w, numbers_in(shape), how);
      });
  method(
      graph,
      "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:forwardConvolutionDescriptor:"
      "name:",
      +[](Object* self, Selector, Object* y, Object* x, Object* shape, Object* how, Object*) {
        return convolved(self, Does::convolution_weights, y, x, numbers_in(shape), how);
      });
}

// ---- Compiling and running

template <class T> void define_alloc(const char* of) {
  class_method(
      of, "alloc", +[](Object* self, Selector) {
        const Guard guard(lock());
        return made(name_of_class(self).c_str(), std::make_unique<T>());
      });
}

void check_inputs(const Node& node, const std::set<const Node*>& fed) {
  if (node.does == Does::input && !fed.contains(&node)) misuse("MPSGraph: an input that is not fed");
  for (const auto& from : node.from) check_inputs(*from, fed);
}

/// Inputs are wanted in an order of the graph's own.
Object* compiled(Object* self, Selector, Object* device, Object* feeds, Object* targets, Object* operations,
                 Object* options) {
  return guarded([&] {
    state_of<Graph>(self);
    state_of<Device>(state_of<Wrapped>(device).root.get());
    if (operations || objects_in(targets).size() != 1) misuse("MPSGraph: the stand-in makes one tensor");
    if (!state_of<GraphOptions>(options).waits) misuse("MPSGraph: it compiles when the first run waits for it");
    if (state_of<GraphOptions>(options).level != 0) misuse("MPSGraph: other units than the GPU may compute");
    auto executable = std::make_unique<Executable>();
    executable->target = node_of(objects_in(targets)[0].get());
    std::set<const Node*> fed;
    for (const auto& [tensor, type] : pairs_in(feeds)) {
      const std::shared_ptr<const Node> node = node_of(tensor.get());
      const Shaped& said = state_of<Shaped>(type.get());
      if (node->does != Does::input || said.type != node->type || said.sizes != node->sizes)
        misuse("MPSGraph: a feed of another type or shape than its placeholder");
      fed.insert(node.get());
      executable->feeds.insert(executable->feeds.begin(), tensor);
    }
    check_inputs(*executable->target, fed);
    return autoreleased(made("MPSGraphExecutable", std::move(executable)));
  });
}

/// The host's address of data that must be of this kind.
uint64_t place_of(Object* data, const Node& node, CommandBuffer& commands) {
  const Shaped& its = state_of<Shaped>(data);
  if (its.type != node.type || its.sizes != node.sizes)
    misuse("MPSGraph: data of another type or shape than its tensor");
  commands.keep(its.buffer.get());
  return state_of<Buffer>(its.buffer.get()).address + its.offset;
}

void check_open(const Wrapped& commands) {
  const auto& root = state_of<CommandBuffer>(commands.root.get());
  if (root.is_committed || root.encoder) misuse("MPSCommandBuffer: around one that takes nothing");
}

/// As Apple's may, it sometimes starts the command buffer and goes on in another one.
void commit_and_continue(Wrapped& commands) {
  static uint64_t turn = machine().options.order;
  if (++turn % 3 != 0) return;
  Object* queue = state_of<CommandBuffer>(commands.root.get()).queue.get();
  commit_buffer(commands.root.get());
  commands.root = Kept(next_buffer(queue));
}

Object* encode(Object* self, Selector, Object* given, Object* inputs, Object* results, Object*) {
  return guarded([&] {
    const Executable& its = state_of<Executable>(self);
    auto& commands = state_of<Wrapped>(given);
    check_open(commands);
    commit_and_continue(commands);
    auto& buffer = state_of<CommandBuffer>(commands.root.get());
    if (objects_in(inputs).size() != its.feeds.size() || objects_in(results).size() != 1)
      misuse("MPSGraph: not as many inputs or results as the executable has");
    std::map<const Node*, uint64_t> places;
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < its.feeds.size(); ++i) {
      const std::shared_ptr<const Node> node = node_of(its.feeds[i].get());
      addresses.push_back(places[node.get()] = place_of(objects_in(inputs)[i].get(), *node, buffer));
    }
    const uint64_t to = place_of(objects_in(results)[0].get(), *its.target, buffer);
    addresses.push_back(to);
    buffer.keep(self);
    const bool is_idle = machine().options.idle;
    buffer.add(
        [target = its.target, places = std::move(places), to, is_idle] {
          if (!is_idle) compute_graph(*target, places, to);
        },
        std::move(addresses));
    return autoreleased(retain(results));
  });
}

void define_executables() {
  class_method(
      "MPSGraphDevice", "deviceWithMTLDevice:", +[](Object*, Selector, Object* device) {
        return guarded([&] {
          auto wrapped = std::make_unique<Wrapped>();
          wrapped->root = Kept(device);
          return autoreleased(made("MPSGraphDevice", std::move(wrapped)));
        });
      });
  class_method(
      "MPSGraphCompilationDescriptor", "new", +[](Object*, Selector) {
        const Guard guard(lock());
        return made("MPSGraphCompilationDescriptor", std::make_unique<GraphOptions>());
      });
  method(
      "MPSGraphCompilationDescriptor", "setOptimizationLevel:", +[](Object* self, Selector, uint64_t level) {
        state_of<GraphOptions>(self).level = level;
      });
  method(
      "MPSGraphCompilationDescriptor", "setWaitForCompilationCompletion:", +[](Object* self, Selector, bool waits) {
        state_of<GraphOptions>(self).waits = waits;
      });
  define_alloc<Shaped>("MPSGraphShapedType");
  method(
      "MPSGraphShapedType", "initWithShape:dataType:", +[](Object* self, Selector, Object* shape, uint32_t type) {
        const Guard guard(lock());
        auto& its = state_of<Shaped>(self);
        its.sizes = numbers_in(shape);
        its.type = type;
        return self;
      });
  method("MPSGraph", "compileWithDevice:feeds:targetTensors:targetOperations:compilationDescriptor:", compiled);
  method(
      "MPSGraphExecutable", "feedTensors", +[](Object* self, Selector) {
        const Guard guard(lock());
        std::vector<Object*> all;
        for (const Kept& one : state_of<Executable>(self).feeds) all.push_back(one.get());
        return autoreleased(make_array(all));
      });
  method("MPSGraphExecutable", "encodeToCommandBuffer:inputsArray:resultsArray:executionDescriptor:", encode);
}

Object* init_array(Object* self, Selector, Object* buffer, uint64_t offset, Object* descriptor) {
  const Guard guard(lock());
  auto& its = state_of<Shaped>(self);
  const Shaped& said = state_of<Shaped>(descriptor);
  const uint64_t bytes = static_cast<uint64_t>(count_of(said.sizes)) * bytes_of(said.type);
  if (!said.has_packed_rows) misuse("MPSNDArray: rows have gaps unless preferPackedRows says otherwise");
  if (offset + bytes > state_of<Buffer>(buffer).bytes) misuse("MPSNDArray: an array beyond its buffer");
  its.type = said.type;
  its.sizes = said.sizes;
  its.buffer = Kept(buffer);
  its.offset = offset;
  return self;
}

void define_data() {
  class_method(
      "MPSNDArrayDescriptor", "descriptorWithDataType:shape:", +[](Object*, Selector, uint32_t type, Object* shape) {
        const Guard guard(lock());
        auto descriptor = std::make_unique<Shaped>();
        descriptor->type = type;
        descriptor->sizes = numbers_in(shape);
        return autoreleased(made("MPSNDArrayDescriptor", std::move(descriptor)));
      });
  define_alloc<Shaped>("MPSNDArray");
  if (machine().options.system >= 15) {
    method(
        "MPSNDArrayDescriptor",
        "setPreferPackedRows:", +[](Object* self, Selector, bool on) { state_of<Shaped>(self).has_packed_rows = on; });
    method("MPSNDArray", "initWithBuffer:offset:descriptor:", init_array);
  }
  define_alloc<Shaped>("MPSGraphTensorData");
  method(
      "MPSGraphTensorData", "initWithMPSNDArray:", +[](Object* self, Selector, Object* array) {
        const Guard guard(lock());
        const Shaped& from = state_of<Shaped>(array);
        auto& its = state_of<Shaped>(self);
        its.type = from.type;
        its.sizes = from.sizes;
        its.buffer = from.buffer;
        its.offset = from.offset;
        return self;
      });
  class_method(
      "MPSCommandBuffer", "commandBufferWithCommandBuffer:", +[](Object*, Selector, Object* buffer) {
        return guarded([&] {
          auto commands = std::make_unique<Wrapped>();
          commands->root = Kept(buffer);
          check_open(*commands);
          return autoreleased(made("MPSCommandBuffer", std::move(commands)));
        });
      });
  method(
      "MPSCommandBuffer", "rootCommandBuffer", +[](Object* self, Selector) {
        const Guard guard(lock());
        return autoreleased(retain(state_of<Wrapped>(self).root.get()));
      });
}

}  // namespace

void define_graphs() {
  define_constants();
  define_elements();
  define_movements();
  define_convolutions();
  define_attention();
  define_executables();
  define_data();
}

}  // namespace fake_metal
