// Ways of being wrong about vendor calls and graphs. See wrong.hpp.
#include <map>

#include "wrong.hpp"

namespace {

rosin_status other_activation(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                              uint64_t* workspace) {
  rosin_call_description changed = *description;
  if (changed.epilogue.activation == ROSIN_ACTIVATION_RELU) changed.epilogue.activation = ROSIN_ACTIVATION_TANH;
  return real.call_prepare(device, &changed, out, workspace);
}

void any_sizes_fit() {
  wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
    const rosin_status status = real.call_prepare(device, description, out, workspace);
    return status == ROSIN_INVALID ? ROSIN_OK : status;
  };
}

/// Runs of calls of this kind are those of `run`.
void in_place_of_runs(int32_t kind, decltype(rosin_backend::call_run) run) {
  static int32_t wanted;
  static decltype(run) changed;
  static std::map<rosin_call*, int32_t> kinds;
  wanted = kind;
  changed = run;
  wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
    const rosin_status status = real.call_prepare(device, description, out, workspace);
    if (status == ROSIN_OK) kinds[*out] = description->kind;
    return status;
  };
  wrong.call_run = [](rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                      const rosin_call_numbers* numbers) {
    const auto chosen = kinds[call] == wanted ? changed : real.call_run;
    return chosen(stream, call, buffers, workspace, numbers);
  };
}

const Way ways[] = {
    {"cells are others",
     [] {
       wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace) {
         rosin_call_description changed = *description;
         rosin_attribute cell = *description->attributes;
         if (cell.integer == ROSIN_CELL_TANH) cell.integer = ROSIN_CELL_RELU;
         changed.attributes = &cell;
         return real.call_prepare(device, &changed, out, workspace);
       };
     }},
    {"slopes are off",
     [] {
       in_place_of_runs(
           ROSIN_CALL_RECURRENT_DATA, [](rosin_stream* stream, rosin_call* call, const rosin_place* buffers,
                                         rosin_place workspace, const rosin_call_numbers* numbers) {
             const rosin_status status = real.call_run(stream, call, buffers, workspace, numbers);
             return status == ROSIN_OK ? real.fill(stream, buffers[6], 4, 0x3f) : status;  // an element by the input
           });
     }},
    {"reserves are spent",
     [] {
       in_place_of_runs(ROSIN_CALL_RECURRENT_DATA,
                        [](rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                           const rosin_call_numbers* numbers) {
                          const rosin_status status = real.call_run(stream, call, buffers, workspace, numbers);
                          for (int i = 4; i < 6 && status == ROSIN_OK; ++i) real.fill(stream, buffers[i], 1, 0x5a);
                          return status;
                        });
     }},
    {"every query sees all keys",
     [] {
       wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace) {
         rosin_call_description changed = *description;
         if (changed.kind == ROSIN_CALL_ATTENTION) changed.attribute_count = 1;
         return real.call_prepare(device, &changed, out, workspace);
       };
     }},
    {"keys of any features fit", any_sizes_fit},
    {"weights of any number fit", any_sizes_fit},
    {"another activation", [] { wrong.call_prepare = other_activation; }},
    {"numbers of the first run",
     [] {
       wrong.call_run = [](rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                           const rosin_call_numbers* numbers) {
         static std::map<rosin_call*, rosin_call_numbers> first;
         if (!numbers) return real.call_run(stream, call, buffers, workspace, nullptr);
         return real.call_run(stream, call, buffers, workspace, &first.emplace(call, *numbers).first->second);
       };
       wrong.call_destroy = [](rosin_call*) {};
     }},
    {"attributes are passed over",
     [] {
       wrong.call_takes = [](rosin_device* device, const rosin_call_description* description, int32_t* orders) {
         rosin_call_description changed = *description;
         changed.attribute_count = 0;
         return real.call_takes(device, &changed, orders);
       };
     }},
    {"as much workspace as it likes",
     [] {
       wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace) {
         rosin_call_description changed = *description;
         changed.workspace = 0;
         return real.call_prepare(device, &changed, out, workspace);
       };
     }},
    {"choices are of no use",
     [] {
       wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace) {
         return description->choice ? ROSIN_INVALID : real.call_prepare(device, description, out, workspace);
       };
     }},
    {"kernels are never flipped",
     [] {
       wrong.call_prepare = [](rosin_device* device, const rosin_call_description* description, rosin_call** out,
                               uint64_t* workspace) {
         rosin_call_description changed = *description;
         changed.window.flipped = 0;
         return real.call_prepare(device, &changed, out, workspace);
       };
     }},
    {"tuning needs more room than there is",
     [] {
       wrong.call_tune = [](rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                            uint64_t bytes, const rosin_call_numbers* numbers, uint64_t* needed) {
         const rosin_status status = real.call_tune(stream, call, buffers, workspace, bytes, numbers, needed);
         *needed = bytes + 1;
         return status;
       };
     }},
    {"any sizes fit", any_sizes_fit},
    {"graphs run backwards",
     [] {
       wrong.graph_add = [](rosin_graph* graph, const rosin_graph_node* node) {
         rosin_graph_node changed = *node;
         changed.dependency_count = 0;
         return real.graph_add(graph, &changed);
       };
     }},
    {"updates are passed over",
     [] { wrong.graph_update = [](rosin_graph*, uint32_t, const rosin_graph_node*) { return ROSIN_OK; }; }},
    {"graphs fill with zeros",
     [] {
       wrong.graph_add = [](rosin_graph* graph, const rosin_graph_node* node) {
         rosin_graph_node changed = *node;
         changed.value = 0;
         return real.graph_add(graph, &changed);
       };
     }},
    {"graphs refuse calls",
     [] {
       wrong.graph_add = [](rosin_graph* graph, const rosin_graph_node* node) {
         return node->kind == ROSIN_GRAPH_CALL ? ROSIN_INVALID : real.graph_add(graph, node);
       };
     }},
    {"no graphs", [] { wrong.graph_create = [](rosin_device*, rosin_graph**) { return ROSIN_INVALID; }; }},
};

}  // namespace

const std::span<const Way> call_ways = ways;
