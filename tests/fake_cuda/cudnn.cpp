// The functions of cuDNN's stand-in. What the real library takes quietly and punishes late is an error at once. See
// README.md. Read first: cudnn.hpp, cudnn_rules.cpp.
#include "cudnn.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <span>

#include "stand_in.hpp"

#define FAKE_DNN_API extern "C" __attribute__((visibility("default"))) int

using namespace fake_dnn;
using dnn::Attribute;
using dnn::Kind;
using dnn::ValueType;
using fake::cuda;
using fake::Trouble;

namespace {

std::set<Handle*> handles;
std::map<const void*, std::shared_ptr<Descriptor>> descriptors;
thread_local std::string last_error;

int status_of(int code) {
  switch (code) {
    case fake::success: return dnn::success;
    case fake::out_of_memory: return dnn::device_allocation_failed;
    case fake::not_supported: return dnn::not_supported;
    case fake::invalid_value:
    case fake::invalid_handle:
    case fake::invalid_context: return dnn::bad_parameter;
    default: return dnn::execution_failed;
  }
}

}  // namespace

[[noreturn]] void fake_dnn::wrong(const char* text) { throw Trouble{fake::invalid_value, text}; }

int fake_dnn::call(const char* name, const std::function<void()>& f) {
  std::string said = std::string(name) + " fails as FAKE_CUDA asks";  // where nothing else is said
  const int code = cuda().call(name, f, &said);
  if (code != fake::success) last_error = said;
  if (code != fake::success) {
    fake::note((code == fake::not_supported ? "refused in " : "error in ") + std::string(name) + ": " + said);
  }
  return status_of(code);
}

Handle& fake_dnn::handle_now(void* handle) {
  const auto found = handles.find(static_cast<Handle*>(handle));
  if (found == handles.end()) wrong("a handle that is not there, or no more");
  if ((*found)->context != cuda().thread_context()) throw Trouble{fake::invalid_context, "a handle of another device"};
  return **found;
}

namespace {

std::shared_ptr<Descriptor>& known(const void* descriptor) {
  const auto found = descriptors.find(descriptor);
  if (found == descriptors.end()) wrong("a descriptor that is not there, or no more");
  return found->second;
}

Object finished(const void* descriptor) {
  Object one = known(descriptor);
  if (!one->finished) wrong("a descriptor that is not finished");
  return one;
}

// Refused when it is built; not deterministic; no exact sums; slow; TF32 for Float32; fast.
const Engine usual[] = {{2, {}, true, false, 1},
                        {4, {dnn::Note::nondeterministic}, false, false, 0.3},
                        {5, {dnn::Note::winograd}, false, true, 0.6},
                        {1, {}, false, true, 1},
                        {0, {dnn::Note::tensor_core}, false, false, 0.4},
                        {3, {}, false, false, 0.5}};
const Engine fallback[] = {{6, {}, false, false, 2}};

// Of attention: one builds no plan, one is not deterministic, one wants room.
const Engine of_attention[] = {{20, {dnn::Note::tensor_core}, true, false, 0.2},
                               {21, {dnn::Note::tensor_core, dnn::Note::nondeterministic}, false, false, 0.3},
                               {22, {dnn::Note::tensor_core}, false, true, 0.5}};

}  // namespace

const Engine* fake_dnn::engine_numbered(int64_t number) {
  for (const std::span<const Engine> all : {std::span<const Engine>(usual), {fallback}, {of_attention}}) {
    for (const Engine& one : all) {
      if (one.number == number) return &one;
    }
  }
  return nullptr;
}

namespace {

/// Images of three dims have the last resort alone; images that are padded unevenly in groups have nothing.
std::vector<const Engine*> engines_for(const Descriptor& search) {
  if (has_attention(*search.graph) || has_steps(*search.graph)) {
    return {&of_attention[0], &of_attention[1], &of_attention[2]};
  }
  const Convolution c = convolution_of(*search.graph);
  std::vector<const Engine*> all;
  const auto mode = static_cast<dnn::HeuristicMode>(search.number(Attribute::heuristics_mode));
  const bool plain = c.x.sizes.size() < 5, groups = c.x.sizes[1] != c.w.sizes[1];
  if (groups && c.pad_low != c.pad_high) throw Trouble{fake::not_supported, "no engine for this graph"};
  if (mode == dnn::HeuristicMode::fallback) all.push_back(&fallback[0]);
  else if (plain) {
    for (const Engine& one : usual) all.push_back(&one);
  }
  return all;
}

/// The objects that an attribute of what was got stands for.
std::vector<Descriptor> parts_of(const Descriptor& of, Attribute which) {
  std::vector<Descriptor> all;
  const auto add = [&](Kind kind, const Engine* engine) {
    Descriptor& one = all.emplace_back();
    one.kind = kind;
    one.finished = true;
    one.engine = engine;
    one.graph = of.graph;
  };
  if (of.kind == Kind::heuristics && which == Attribute::heuristics_results) {
    for (const Engine* engine : of.engines) add(Kind::engine_configuration, engine);
  } else if (of.kind == Kind::engine_configuration && which == Attribute::configuration_engine) {
    add(Kind::engine, of.engine);
  } else if (of.kind == Kind::engine_configuration && which == Attribute::configuration_knobs) {
    add(Kind::knob_choice, of.engine);
  } else {
    wrong("an attribute without objects");
  }
  return all;
}

void get_parts(const Descriptor& of, Attribute which, int64_t wanted, int64_t* count, void* values) {
  std::vector<Descriptor> all = parts_of(of, which);
  *count = static_cast<int64_t>(all.size());
  if (wanted == 0) return;
  *count = std::min(wanted, *count);
  for (int64_t i = 0; i < *count; ++i) {
    const std::shared_ptr<Descriptor>& to = known(static_cast<void**>(values)[i]);
    Descriptor& from = all[static_cast<size_t>(i)];
    if (to->kind != from.kind || to->finished) wrong("objects of another kind to be filled, or finished ones");
    *to = std::move(from);
  }
}

template <class T>
void get_numbers(ValueType type, ValueType of, const std::vector<T>& all, int64_t wanted, int64_t* count,
                 void* values) {
  if (type != of) wrong("an attribute of another type");
  const auto given = std::min(wanted, static_cast<int64_t>(all.size()));
  *count = given;
  std::copy_n(all.data(), given, static_cast<T*>(values));
}

void get(const Descriptor& of, Attribute which, ValueType type, int64_t wanted, int64_t* count, void* values) {
  if (type == ValueType::descriptor) return get_parts(of, which, wanted, count, values);
  const auto is = [&](Kind kind, Attribute attribute) { return of.kind == kind && which == attribute; };
  const auto numbers = [&](ValueType expected, auto all) { get_numbers(type, expected, all, wanted, count, values); };
  if (is(Kind::engine, Attribute::engine_index)) return numbers(ValueType::int64, std::vector{of.engine->number});
  if (is(Kind::engine, Attribute::engine_notes)) return numbers(ValueType::numerical_note, of.engine->notes);
  if (is(Kind::knob_choice, Attribute::knob_type)) return numbers(ValueType::knob_type, std::vector{2});
  if (is(Kind::knob_choice, Attribute::knob_value)) {
    return numbers(ValueType::int64, std::vector{of.engine->number * 10});
  }
  if (is(Kind::plan, Attribute::plan_text)) {
    const std::string text = text_of_plan(of);
    if (wanted == 0) *count = static_cast<int64_t>(text.size());
    else numbers(ValueType::text, std::vector<char>(text.begin(), text.end()));
    return;
  }
  if (is(Kind::plan, Attribute::plan_workspace)) {
    return numbers(ValueType::int64, std::vector{static_cast<int64_t>(of.room)});
  }
  wrong("an attribute that is not to be had");
}

uint64_t given_pointer(const Tensor& tensor, const Descriptor& pack) {
  const std::vector<int64_t> ids = pack.numbers(Attribute::pack_ids);
  const auto found = std::find(ids.begin(), ids.end(), tensor.id);
  if (found == ids.end()) wrong("an array of the plan is missing");
  return static_cast<uint64_t>(pack.numbers(Attribute::pack_pointers)[static_cast<size_t>(found - ids.begin())]);
}

/// Where the array stands, in runs of bytes, in order.
std::vector<std::pair<uint64_t, uint64_t>> runs_of(const Tensor& tensor) {
  const uint64_t element = fake::bytes_of(element_of(tensor.type));
  const bool rows = tensor.strides.back() == 1;
  const size_t dims = tensor.sizes.size() - (rows ? 1 : 0);
  std::vector<uint64_t> begins{tensor.address};
  for (size_t d = 0; d < dims; ++d) {
    const size_t count = begins.size();
    for (int64_t i = 1; i < tensor.sizes[d]; ++i) {
      for (size_t k = 0; k < count; ++k) {
        begins.push_back(begins[k] + static_cast<uint64_t>(i * tensor.strides[d]) * element);
      }
    }
  }
  std::sort(begins.begin(), begins.end());
  const uint64_t bytes = element * static_cast<uint64_t>(rows ? tensor.sizes.back() : 1);
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  for (const uint64_t begin : begins) runs.emplace_back(begin, begin + bytes);
  return runs;
}

/// Whether a byte belongs to both. Parts of one array may stand between each other.
bool meet(const Tensor& a, const Tensor& b) {
  if (a.address >= b.address + b.reach() || b.address >= a.address + a.reach()) return false;
  const auto one = runs_of(a), other = runs_of(b);
  for (size_t i = 0, k = 0; i < one.size() && k < other.size();) {
    if (one[i].second <= other[k].first) ++i;
    else if (other[k].second <= one[i].first) ++k;
    else return true;
  }
  return false;
}

/// The arrays get their addresses, all of which lie in blocks of the device; the last `results` are written.
/// `numbers`: that the pack has besides.
std::vector<uint64_t> checked_addresses(const std::vector<Tensor*>& arrays, size_t results, size_t numbers,
                                        const Descriptor& pack) {
  if (pack.numbers(Attribute::pack_ids).size() != arrays.size() + numbers) {
    wrong("more arrays than the plan has, or fewer");
  }
  std::vector<uint64_t> all;
  for (Tensor* tensor : arrays) {
    tensor->address = given_pointer(*tensor, pack);
    if (tensor->address % static_cast<uint64_t>(tensor->alignment) != 0) wrong("an address that is not aligned");
    cuda().check_memory(tensor->address, tensor->reach());
    all.push_back(tensor->address);
  }
  for (size_t i = arrays.size() - results; i < arrays.size(); ++i) {
    const Tensor& result = *arrays[i];
    for (const Tensor* other : arrays) {
      if (other != &result && meet(result, *other)) wrong("a result over an operand");
    }
  }
  return all;
}

std::string text_of(const Convolution& c, const Engine& engine) {
  const char* kind = c.kind == Kind::forward ? "forward" : c.kind == Kind::backward_data ? "data" : "weights";
  std::string text = std::string("convolution ") + kind + " x";
  for (const int64_t size : c.x.sizes) text += " " + std::to_string(size);
  text += " w";
  for (const int64_t size : c.w.sizes) text += " " + std::to_string(size);
  text += " type " + std::to_string(static_cast<int>(c.x.type));
  text += c.x.strides[1] == 1 ? " channels first" : " planes";
  if (c.flipped) text += " flipped";
  if (c.has_bias) text += " bias";
  if (c.relu) text += " relu";
  return text + " engine " + std::to_string(engine.number);
}

std::string text_of(const Attention& a, const Engine& engine) {
  std::string text = a.gradient ? "attention gradient" : a.state.sizes.empty() ? "attention" : "attention with state";
  for (const int64_t size : a.q.sizes) text += " " + std::to_string(size);
  if (a.causal) text += " causal";
  return text + " type " + std::to_string(static_cast<int>(a.q.type)) + " engine " + std::to_string(engine.number);
}

/// A number of a run, which the host keeps.
float number_in(const Tensor& tensor, const Descriptor& pack) {
  return fake::loaded<float>(given_pointer(tensor, pack));
}

/// `run` is what the plan does.
void give(Handle& handle, const Descriptor& plan, const Descriptor& pack, std::vector<uint64_t> addresses,
          const std::string& text, std::function<void()> run) {
  fake::Work work;
  work.addresses = std::move(addresses);
  const auto room = reinterpret_cast<void*>(pack.number(Attribute::pack_workspace));
  if (plan.room > 0) {
    const auto address = reinterpret_cast<uint64_t>(room);
    if (address % 256 != 0) wrong("room that is not aligned");
    cuda().check_memory(address, plan.room);
    work.addresses.push_back(address);
  }
  work.what = "plan " + text;
  work.time = plan.engine->time;
  work.run = [run = std::move(run), room, bytes = plan.room] {
    if (bytes > 0) std::memset(room, 0xA5, bytes);
    run();
  };
  fake::note(text);
  cuda().give(handle.stream, std::move(work));
}

void execute_attention(Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  Attention a = attention_of(*plan.graph);
  const size_t numbers = (a.scale.sizes.empty() ? 0 : 1) + (a.causal ? 1 : 0);
  if (!a.scale.sizes.empty()) a.factor = static_cast<double>(number_in(a.scale, pack));
  if (a.causal && !(number_in(a.never, pack) < -1e30f)) wrong("logits of keys that are not seen, yet count");
  std::vector<uint64_t> addresses = checked_addresses(a.stored(), a.results(), numbers, pack);
  give(handle, plan, pack, std::move(addresses), text_of(a, *plan.engine), [a] { compute(a); });
}

void execute_steps(Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  Steps steps = steps_of(*plan.graph);
  for (auto& [id, number] : steps.numbers) {
    Tensor named;
    named.id = id;
    number = static_cast<double>(number_in(named, pack));
  }
  std::vector<uint64_t> addresses = checked_addresses(steps.stored(), steps.results.size(), steps.numbers.size(), pack);
  steps.place();
  const std::string text = "steps of attention" + std::string(steps.results.size() > 2 ? " gradient" : "") +
                           " engine " + std::to_string(plan.engine->number);
  give(handle, plan, pack, std::move(addresses), text, [steps] { compute(steps); });
}

void execute(Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  if (plan.kind != Kind::plan || pack.kind != Kind::variant_pack) wrong("no plan, or no arrays");
  if (reinterpret_cast<void*>(plan.number(Attribute::plan_handle)) != &handle) wrong("a plan of another handle");
  if (has_attention(*plan.graph)) return execute_attention(handle, plan, pack);
  if (has_steps(*plan.graph)) return execute_steps(handle, plan, pack);
  Convolution c = convolution_of(*plan.graph);
  c.relu_keeps_nan = cuda().options().nan;
  const std::vector<dnn::Note>& notes = plan.engine->notes;
  c.tf32 = std::find(notes.begin(), notes.end(), dnn::Note::tensor_core) != notes.end();
  std::vector<uint64_t> addresses = checked_addresses(c.stored(), 1, 0, pack);
  give(handle, plan, pack, std::move(addresses), text_of(c, *plan.engine), [c] { compute(c); });
}

}  // namespace

FAKE_DNN_API cudnnGetProperty(int which, int* value) {
  const int version = cuda().options().cudnn;
  const int parts[] = {version / 10000, version / 100 % 100, version % 100};
  if (which < 0 || which > 2) return dnn::bad_parameter;
  *value = parts[which];
  return dnn::success;
}

extern "C" __attribute__((visibility("default"))) size_t cudnnGetCudartVersion() {
  return static_cast<size_t>(cuda().options().cudnn_runtime);
}

extern "C" __attribute__((visibility("default"))) void cudnnGetLastErrorString(char* text, size_t bytes) {
  std::snprintf(text, bytes, "%s", last_error.c_str());
}

FAKE_DNN_API cudnnCreate(void** handle) {
  return call("cudnnCreate", [&] { *handle = *handles.insert(new Handle{cuda().thread_context()}).first; });
}

FAKE_DNN_API cudnnDestroy(void* handle) {
  return call("cudnnDestroy", [&] {
    Handle& one = handle_now(handle);
    handles.erase(&one);
    delete &one;
  });
}

FAKE_DNN_API cudnnSetStream(void* handle, void* stream) {
  return call("cudnnSetStream", [&] { handle_now(handle).stream = stream; });
}

FAKE_DNN_API cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  return call("cudnnBackendCreateDescriptor", [&] {
    auto one = std::make_shared<Descriptor>();
    one->kind = static_cast<Kind>(kind);
    // Under an address of its own: the object itself may live on in others.
    *descriptor = new char;
    descriptors.emplace(*descriptor, std::move(one));
  });
}

FAKE_DNN_API cudnnBackendDestroyDescriptor(void* descriptor) {
  return call("cudnnBackendDestroyDescriptor", [&] {
    known(descriptor);
    descriptors.erase(descriptor);
    delete static_cast<char*>(descriptor);
  });
}

FAKE_DNN_API cudnnBackendSetAttribute(void* descriptor, int which, int type, int64_t count, const void* values) {
  return call("cudnnBackendSetAttribute", [&] {
    Descriptor& one = *known(descriptor);
    Values made{static_cast<ValueType>(type), count, {}, {}};
    check_attribute(one, static_cast<Attribute>(which), made.type, count);
    if (!values) wrong("an attribute without values");
    const auto* bytes = static_cast<const unsigned char*>(values);
    made.bytes.assign(bytes, bytes + static_cast<uint64_t>(count) * element_bytes(made.type));
    if (made.type == ValueType::handle) handle_now(*static_cast<void* const*>(values));
    for (int64_t i = 0; i < count && made.type == ValueType::descriptor; ++i) {
      made.objects.push_back(finished(static_cast<void* const*>(values)[i]));
    }
    one.given[static_cast<Attribute>(which)] = std::move(made);
  });
}

FAKE_DNN_API cudnnBackendGetAttribute(void* descriptor, int which, int type, int64_t wanted, int64_t* count,
                                      void* values) {
  return call("cudnnBackendGetAttribute", [&] {
    if (!count || (wanted > 0 && !values)) wrong("no room for an attribute");
    const Object of = finished(descriptor);
    get(*of, static_cast<Attribute>(which), static_cast<ValueType>(type), wanted, count, values);
  });
}

FAKE_DNN_API cudnnBackendFinalize(void* descriptor) {
  return call("cudnnBackendFinalize", [&] {
    Descriptor& one = *known(descriptor);
    const bool searches = one.kind == Kind::heuristics || one.kind == Kind::plan;
    if (searches && cuda().thread_captures()) wrong("a search for plans while a stream is captured");
    finish(one);
    if (one.kind == Kind::heuristics) one.engines = engines_for(one);
    if (one.kind == Kind::plan) fake::note(one.has(Attribute::plan_text) ? "a plan from its text" : "a plan is built");
  });
}

FAKE_DNN_API cudnnBackendExecute(void* handle, void* plan, void* pack) {
  return call("cudnnBackendExecute", [&] { execute(handle_now(handle), *finished(plan), *finished(pack)); });
}
