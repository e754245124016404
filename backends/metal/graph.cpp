// See graph.hpp.
#include "metal/graph.hpp"

#include <algorithm>
#include <mutex>

#include "metal/graph_messages.hpp"

namespace rosin::metal {
namespace {

Id class_of(const char* name) { return runtime().get_class(name); }

Id array_of(const std::vector<Id>& all) { return send::array_of(class_of("NSArray"), all.data(), all.size()); }

Owned made(Id object, const char* what) {
  if (!object) throw Failure{ROSIN_UNSUPPORTED, std::string("MPSGraph gives no ") + what};
  return Owned::given(object);
}

Id checked(Id tensor) {
  if (!tensor) refuse("it takes no such operation");
  return tensor;
}

}  // namespace

Id GraphWriter::shape(const Sizes& sizes) {
  std::vector<Id> numbers;
  for (const int64_t size : sizes) numbers.push_back(send::number(class_of("NSNumber"), size));
  return array_of(numbers);
}

GraphWriter::GraphWriter(const rosin_call_description& call) : graph_(made(send::make(class_of("MPSGraph")), "graph")) {
  for (uint32_t i = 0; i < call.array_count; ++i) arrays_.push_back(packed(call.arrays[i]));
}

Id GraphWriter::input(int at) {
  const Packed& its = array(at);
  Id tensor = checked(send::placeholder(graph(), shape(its.memory), its.type, nullptr));
  inputs_.emplace_back(tensor, at);
  if (its.type != data_float32) tensor = checked(send::cast(graph(), tensor, data_float32, nullptr));
  if (!std::is_sorted(its.turn.begin(), its.turn.end()))
    tensor = checked(send::transpose(graph(), tensor, shape(its.turn), nullptr));
  return tensor;
}

Id GraphWriter::reshaped(Id tensor, const Sizes& sizes) {
  return checked(send::reshape(graph(), tensor, shape(sizes), nullptr));
}
Id GraphWriter::reversed(Id tensor, const Sizes& dims) {
  return checked(send::reverse(graph(), tensor, shape(dims), nullptr));
}
Id GraphWriter::sum(Id x, Id y) { return checked(send::add(graph(), x, y, nullptr)); }
Id GraphWriter::multiplied(Id x, Id y) { return checked(send::multiply_matrices(graph(), x, y, nullptr)); }

/// NaN stays, of which MPSGraph's own says nothing.
Id GraphWriter::relu(Id x) {
  const Id zero = checked(send::constant(graph(), 0, data_float32));
  return checked(send::select(graph(), checked(send::less(graph(), x, zero, nullptr)), zero, x, nullptr));
}

Id GraphWriter::attention(Id query, Id key, Id value, Id mask, float scale) {
  return checked(mask ? send::masked_attention(graph(), query, key, value, mask, scale, nullptr)
                      : send::attention(graph(), query, key, value, scale, nullptr));
}

/// No infinity: whoever looked first at keys that are all hidden would take it from itself.
Id GraphWriter::causal_mask(const Sizes& sizes) {
  const auto number = [&](double value) { return checked(send::constant(graph(), value, data_float32)); };
  const Id ones = checked(send::constant_of_shape(graph(), 1, shape(sizes), data_float32));
  const Id seen = checked(send::band_part(graph(), ones, -1, 0, nullptr));
  const Id hidden = checked(send::less(graph(), seen, number(0.5), nullptr));
  return checked(send::select(graph(), hidden, number(-1e38), number(0), nullptr));
}

Executable GraphWriter::finish(const rosin_device& device, Id tensor, int at) {
  const Packed& its = array(at);
  if (!std::is_sorted(its.turn_back.begin(), its.turn_back.end()))
    tensor = checked(send::transpose(graph(), tensor, shape(its.turn_back), nullptr));
  if (its.type != data_float32) tensor = checked(send::cast(graph(), tensor, its.type, nullptr));
  std::vector<Owned> types;
  std::vector<Id> keys, values;
  for (const auto& [input, number] : inputs_) {
    const Packed& from = array(number);
    types.push_back(made(
        send::init_shaped_type(send::alloc(class_of("MPSGraphShapedType")), shape(from.memory), from.type), "type"));
    keys.push_back(input);
    values.push_back(types.back().get());
  }
  const Id feeds = send::dictionary_of(class_of("NSDictionary"), array_of(values), array_of(keys));
  const Owned options = made(send::make(class_of("MPSGraphCompilationDescriptor")), "options");
  send::set_optimization(options.get(), optimization_core);
  send::set_waiting(options.get(), true);
  const Id on = send::graph_device(class_of("MPSGraphDevice"), device.id());
  Executable compiled;
  compiled.executable =
      Owned::shared(checked(send::compile_graph(graph(), on, feeds, array_of({tensor}), nullptr, options.get())));
  const Id order = send::feed_tensors(compiled.executable.get());
  for (uint64_t i = 0; i < send::count(order); ++i) {
    const Id wanted = send::object_at(order, i);
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const auto& one) { return send::is_equal(one.first, wanted); });
    if (found == inputs_.end()) refuse("it takes a tensor that is no input");
    compiled.inputs.push_back(found->second);
  }
  compiled.result = at;
  for (const Packed& array : arrays_) {
    const Id layout = send::array_descriptor(class_of("MPSNDArrayDescriptor"), array.type, shape(array.memory));
    send::set_packed_rows(layout, true);
    compiled.arrays.push_back({Owned::shared(layout), array.bytes});
  }
  return compiled;
}

namespace {

/// MPSGraphTensorData of the array at the place, which refers to the buffer.
Owned data_at(const Executable::Array& array, const rosin_place& place) {
  const Part part = part_of(place, array.bytes);
  const Owned view = made(
      send::init_array(send::alloc(class_of("MPSNDArray")), part.buffer, part.offset, array.layout.get()), "array");
  return made(send::init_tensor_data(send::alloc(class_of("MPSGraphTensorData")), view.get()), "data of a tensor");
}

}  // namespace

void give_graph(rosin_stream& stream, const Executable& graph, const rosin_place* places) {
  std::vector<Owned> all;
  std::vector<Id> inputs;
  const auto add = [&](int at) {
    all.push_back(data_at(graph.arrays[static_cast<size_t>(at)], places[at]));
    return all.back().get();
  };
  for (const int at : graph.inputs) inputs.push_back(add(at));
  const Id results = array_of({add(graph.result)});
  const Id buffer = open_buffer(stream);
  if (!stream.graphs) stream.graphs = Owned::shared(send::mps_command_buffer(class_of("MPSCommandBuffer"), buffer));
  const Id commands = stream.graphs.get();
  static std::mutex one_at_a_time;  // Apple does not say that an executable takes several threads
  const std::lock_guard guard(one_at_a_time);
  if (!send::encode_graph(graph.executable.get(), commands, array_of(inputs), results, nullptr))
    throw Failure{ROSIN_DEVICE_FAULT, "MPSGraph encodes no work"};
  go_on_in(stream, send::root_command_buffer(commands));
  note_work(stream);
}

}  // namespace rosin::metal
