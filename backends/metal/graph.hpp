// Graphs of MPSGraph: written, compiled, and given to streams. Tensors are Float32 in them, whatever the type of arrays
// in memory, so that sums of halves are. Read first: metal.hpp, graph_arrays.hpp, graph_messages.hpp. Read next:
// graph.cpp, calls.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metal/graph_arrays.hpp"
#include "metal/metal.hpp"

namespace rosin::metal {

/// A compiled graph, and the arrays of a call that go in and come out.
struct Executable {
  Owned executable;
  std::vector<int> inputs;  // in the order in which the graph takes them
  int result = -1;
  struct Array {
    Owned layout;  // MPSNDArrayDescriptor
    uint64_t bytes = 0;
  };
  std::vector<Array> arrays;  // of the call
};

/// Writes a graph for a call whose arrays have these sizes. Methods give tensors, which the graph keeps.
class GraphWriter {
 public:
  explicit GraphWriter(const rosin_call_description& call);

  const Packed& array(int at) const { return arrays_[static_cast<size_t>(at)]; }
  /// Array number `at` as a tensor of its `sizes`.
  Id input(int at);
  Id reshaped(Id tensor, const Sizes& sizes);
  Id reversed(Id tensor, const Sizes& dims);
  Id sum(Id x, Id y);
  Id relu(Id x);
  Id multiplied(Id x, Id y);
  /// Of tensors (batch, heads, length, features), as many heads of each; the mask, which may be nil, is added to
  /// scores.
  Id attention(Id query, Id key, Id value, Id mask, float scale);
  /// What hides keys behind i from query i, (..., queries, keys).
  Id causal_mask(const Sizes& sizes);
  Id graph() const { return graph_.get(); }
  static Id shape(const Sizes& sizes);

  /// With this tensor, of the sizes of array `at`, as the result.
  Executable finish(const rosin_device& device, Id tensor, int at);

 private:
  Owned graph_;
  std::vector<Packed> arrays_;
  std::vector<std::pair<Id, int>> inputs_;
};

/// Gives it to the stream. `places`: of all arrays of the call.
void give_graph(rosin_stream& stream, const Executable& graph, const rosin_place* places);

/// Attention of a call. Throws as attention_of (attention.hpp).
Executable attention_graph(const rosin_device& device, const rosin_call_description& call);
/// Why MPSGraph's attention is not used on this device; empty: it is. A small one is tried once.
std::string why_no_attention(rosin_device& device);
/// The same as far as it is known without trying.
std::string known_why_no_attention(const rosin_device& device);

/// For the plug-in's table.
rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders);
rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace);
void call_destroy(rosin_call* call);
rosin_status call_run(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                      const rosin_call_numbers* numbers);

}  // namespace rosin::metal
