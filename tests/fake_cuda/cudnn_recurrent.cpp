// The functions of cuDNN's stand-in for recurrent layers of one direction. A reserve is a mark, then numbers: those
// that a layer has kept, of which the gradient by the data makes those that the one by the weights adds. See README.md.
// Read first: recurrent_steps.hpp.
#include <cstring>
#include <map>
#include <memory>

#include "recurrent_steps.hpp"
#include "stand_in.hpp"

#define FAKE_DNN_API extern "C" __attribute__((visibility("default"))) int

using namespace fake_dnn;
using fake::cuda;
using fake::Trouble;

namespace {

constexpr uint64_t room_bytes = 512, mark_bytes = 64;
constexpr uint64_t kept = 0x6b657074, spent = 0x7370656e;

struct TensorForm {
  dnn::Type type = dnn::Type::float32;
  std::vector<int> sizes, strides;
};
struct SequenceForm {
  dnn::Type type = dnn::Type::float32;
  int steps = 0, batch = 0, features = 0;
};
struct LayerForm {
  dnn::RecurrentCell cell = dnn::RecurrentCell::tanh;
  dnn::Type type = dnn::Type::float32;
  int features = 0, out = 0;
};
struct DropoutForm {
  bool set = false;
};

/// Descriptors of one kind, by their addresses; null in the place of one: it was not set yet.
template <class Form> class Forms {
 public:
  void* create() {
    void* made = new char;
    all_.emplace(made, nullptr);
    return made;
  }
  void destroy(void* one) {
    find(one);
    all_.erase(one);
    delete static_cast<char*>(one);
  }
  void set(void* one, Form form) {
    find(one);
    all_[one] = std::make_unique<Form>(std::move(form));
  }
  const Form& operator[](void* one) {
    const std::unique_ptr<Form>& found = find(one);
    if (!found) wrong("a descriptor that was not set");
    return *found;
  }

 private:
  std::unique_ptr<Form>& find(void* one) {
    const auto found = all_.find(one);
    if (found == all_.end()) wrong("a descriptor that is not there, or no more");
    return found->second;
  }

  std::map<void*, std::unique_ptr<Form>> all_;
};

Forms<TensorForm> tensors;
Forms<SequenceForm> sequences;
Forms<LayerForm> layers;
Forms<DropoutForm> dropouts;

uint64_t reserve_bytes(const RecurrentForm& form) {
  return mark_bytes + static_cast<uint64_t>(kept_numbers(form)) * sizeof(double);
}

/// The layer on these sequences, which must be of its type and features.
RecurrentForm form_of(void* layer, void* x) {
  const LayerForm& l = layers[layer];
  const SequenceForm& s = sequences[x];
  if (s.type != l.type || s.features != l.features) wrong("sequences of another layer");
  return {l.cell, l.type, l.features, l.out, s.steps, s.batch};
}

void check_outputs(const RecurrentForm& form, void* y) {
  const SequenceForm& s = sequences[y];
  if (s.type != form.type || s.features != form.out || s.steps != form.steps || s.batch != form.batch) {
    wrong("outputs of another layer");
  }
}

void check_states(const RecurrentForm& form, void* states) {
  const TensorForm& t = tensors[states];
  const auto out = static_cast<int>(form.out), batch = static_cast<int>(form.batch);
  if (t.type != form.type || t.sizes != std::vector{1, batch, out} || t.strides != std::vector{batch * out, out, 1}) {
    wrong("states of another layer");
  }
}

/// Addresses of a call, each of which must lie in device memory.
class Memory {
 public:
  uint64_t at(const void* address, uint64_t bytes, bool needed = true) {
    const auto place = reinterpret_cast<uint64_t>(address);
    if (place == 0 && needed) wrong("an array is missing");
    if (place == 0) return 0;
    cuda().check_memory(place, bytes);
    all.push_back(place);
    return place;
  }
  std::vector<uint64_t> all;
};

void mark(uint64_t reserve, uint64_t what) { std::memcpy(reinterpret_cast<void*>(reserve), &what, sizeof what); }
/// The numbers behind the mark, which must be this one.
double* numbers_behind(uint64_t reserve, uint64_t what) {
  if (fake::loaded<uint64_t>(reserve) != what) {
    throw Trouble{fake::launch_failed, "a gradient of a reserve that is spent, or was never filled"};
  }
  return reinterpret_cast<double*>(reserve + mark_bytes);
}

std::string text_of(const char* what, const RecurrentForm& form) {
  std::string text = std::string("recurrent ") + what;
  for (const int64_t n : {static_cast<int64_t>(form.cell), form.features, form.out, form.steps, form.batch}) {
    text += " " + std::to_string(n);
  }
  return text + " type " + std::to_string(static_cast<int>(form.type));
}

void give(void* handle, const Memory& memory, const std::string& what, uint64_t room, std::function<void()> run) {
  fake::Work work;
  work.addresses = memory.all;
  work.what = what;
  work.run = [room, run = std::move(run)] {
    std::memset(reinterpret_cast<void*>(room), 0xA5, room_bytes);
    run();
  };
  fake::note(what);
  cuda().give(handle_now(handle).stream, std::move(work));
}

void check_bytes(const RecurrentForm& form, size_t weights, size_t room, size_t reserve, bool keeps) {
  if (weights != form.bytes(form.parameters())) wrong("weights of another size");
  if (room < room_bytes) wrong("less room than was asked for");
  if (keeps && reserve < reserve_bytes(form)) wrong("a smaller reserve than was asked for");
}

}  // namespace

FAKE_DNN_API cudnnCreateTensorDescriptor(void** made) {
  return call("cudnnCreateTensorDescriptor", [&] { *made = tensors.create(); });
}
FAKE_DNN_API cudnnDestroyTensorDescriptor(void* one) {
  return call("cudnnDestroyTensorDescriptor", [&] { tensors.destroy(one); });
}
FAKE_DNN_API cudnnSetTensorNdDescriptor(void* one, int type, int rank, const int* sizes, const int* strides) {
  return call("cudnnSetTensorNdDescriptor", [&] {
    if (rank < 3 || rank > 8) wrong("a tensor of less than three dims, or more than eight");
    tensors.set(one, {static_cast<dnn::Type>(type), {sizes, sizes + rank}, {strides, strides + rank}});
  });
}
FAKE_DNN_API cudnnCreateDropoutDescriptor(void** made) {
  return call("cudnnCreateDropoutDescriptor", [&] { *made = dropouts.create(); });
}
FAKE_DNN_API cudnnDestroyDropoutDescriptor(void* one) {
  return call("cudnnDestroyDropoutDescriptor", [&] { dropouts.destroy(one); });
}
FAKE_DNN_API cudnnSetDropoutDescriptor(void* one, void* handle, float probability, void* states, size_t,
                                       unsigned long long) {
  return call("cudnnSetDropoutDescriptor", [&] {
    handle_now(handle);
    if (probability != 0 && !states) wrong("dropout without states");
    dropouts.set(one, {true});
  });
}
FAKE_DNN_API cudnnCreateRNNDescriptor(void** made) {
  return call("cudnnCreateRNNDescriptor", [&] { *made = layers.create(); });
}
FAKE_DNN_API cudnnDestroyRNNDescriptor(void* one) {
  return call("cudnnDestroyRNNDescriptor", [&] { layers.destroy(one); });
}
FAKE_DNN_API cudnnCreateRNNDataDescriptor(void** made) {
  return call("cudnnCreateRNNDataDescriptor", [&] { *made = sequences.create(); });
}
FAKE_DNN_API cudnnDestroyRNNDataDescriptor(void* one) {
  return call("cudnnDestroyRNNDataDescriptor", [&] { sequences.destroy(one); });
}

FAKE_DNN_API cudnnSetRNNDescriptor_v8(void* one, int algorithm, int cell, int bias, int directions, int input, int type,
                                      int sums, int math, int32_t features, int32_t out, int32_t projected,
                                      int32_t count, void* dropout, uint32_t flags) {
  return call("cudnnSetRNNDescriptor_v8", [&] {
    dropouts[dropout];
    if (algorithm != 0 || bias != dnn::input_bias || directions != 0 || input != 0 || count != 1) {
      throw Trouble{fake::not_supported, "the stand-in has no such layer"};
    }
    const auto of = static_cast<dnn::Type>(type), in = static_cast<dnn::Type>(sums);
    const bool half = of == dnn::Type::float16 || of == dnn::Type::bfloat16;
    if (in != (of == dnn::Type::float64 ? of : dnn::Type::float32)) wrong("sums of a type that does not fit");
    if (half != (static_cast<dnn::MathType>(math) == dnn::MathType::tensor_cores)) wrong("math of another type");
    if (features < 1 || out < 1 || projected != out) wrong("sizes of a layer");
    if (!(flags & dnn::padded_io)) wrong("sequences that are padded, in a layer that takes none");
    layers.set(one, {static_cast<dnn::RecurrentCell>(cell), of, features, out});
  });
}

FAKE_DNN_API cudnnSetRNNDataDescriptor(void* one, int type, int layout, int steps, int batch, int features,
                                       const int* lengths, void*) {
  return call("cudnnSetRNNDataDescriptor", [&] {
    if (layout != dnn::batch_major) throw Trouble{fake::not_supported, "the stand-in has no such layout"};
    if (steps < 1 || batch < 1 || features < 1) wrong("sequences without elements");
    for (int i = 0; i < batch; ++i) {
      if (lengths[i] != steps) throw Trouble{fake::not_supported, "the stand-in has sequences of one length alone"};
    }
    sequences.set(one, {static_cast<dnn::Type>(type), steps, batch, features});
  });
}

FAKE_DNN_API cudnnGetRNNTempSpaceSizes(void* handle, void* layer, int mode, void* x, size_t* room, size_t* reserve) {
  return call("cudnnGetRNNTempSpaceSizes", [&] {
    handle_now(handle);
    const RecurrentForm form = form_of(layer, x);
    *room = room_bytes;
    *reserve = mode == static_cast<int>(dnn::ForwardMode::training) ? reserve_bytes(form) : 0;
  });
}

FAKE_DNN_API cudnnGetRNNWeightSpaceSize(void* handle, void* layer, size_t* bytes) {
  return call("cudnnGetRNNWeightSpaceSize", [&] {
    handle_now(handle);
    const LayerForm& l = layers[layer];
    const RecurrentForm form{l.cell, l.type, l.features, l.out, 1, 1};
    *bytes = form.bytes(form.parameters());
  });
}

FAKE_DNN_API cudnnGetRNNWeightParams(void* handle, void* layer, int32_t part, size_t bytes, const void* weights,
                                     int32_t matrix, void*, void** weight_at, void*, void** bias_at) {
  return call("cudnnGetRNNWeightParams", [&] {
    handle_now(handle);
    const LayerForm& l = layers[layer];
    const RecurrentForm form{l.cell, l.type, l.features, l.out, 1, 1};
    const int64_t gates = form.gates();
    if (part != 0 || matrix < 0 || matrix >= 2 * gates || bytes != form.bytes(form.parameters())) {
      wrong("a matrix that the layer has not");
    }
    const bool of_input = matrix < gates;
    const int64_t before = of_input ? matrix * form.out * form.features
                                    : gates * form.out * form.features + (matrix - gates) * form.out * form.out;
    const int64_t bias = gates * form.out * (form.features + form.out) + matrix * form.out;
    const auto at = [&](int64_t elements) {
      return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(weights) + form.bytes(elements));
    };
    *weight_at = at(before);
    *bias_at = of_input ? at(bias) : nullptr;
  });
}

FAKE_DNN_API cudnnRNNForward(void* handle, void* layer, int mode, const int32_t*, void* x_form, const void* x,
                             void* y_form, void* y, void* h_form, const void* h, void* last_h, void*, const void* c,
                             void* last_c, size_t weight_bytes, const void* weights, size_t room_size, void* room,
                             size_t reserve_size, void* reserve) {
  return call("cudnnRNNForward", [&] {
    const RecurrentForm form = form_of(layer, x_form);
    check_outputs(form, y_form);
    check_states(form, h_form);
    const bool keeps = mode == static_cast<int>(dnn::ForwardMode::training);
    check_bytes(form, weight_bytes, room_size, reserve_size, keeps);
    const uint64_t states = form.bytes(form.out * form.batch);
    Memory memory;
    RecurrentPlaces at{};
    at.x = memory.at(x, form.bytes(form.features * form.steps * form.batch));
    at.y = memory.at(y, form.bytes(form.out * form.steps * form.batch));
    at.weights = memory.at(weights, weight_bytes);
    at.h = memory.at(h, states, false);
    at.c = memory.at(c, states, false);
    at.last_h = memory.at(last_h, states, false);
    at.last_c = memory.at(last_c, states, false);
    const uint64_t room_at = memory.at(room, room_bytes);
    const uint64_t kept_at = keeps ? memory.at(reserve, reserve_bytes(form)) : 0;
    give(handle, memory, text_of(keeps ? "training" : "inference", form), room_at, [=] {
      if (kept_at) mark(kept_at, kept);
      compute_layer(form, at, kept_at ? numbers_behind(kept_at, kept) : nullptr);
    });
  });
}

FAKE_DNN_API cudnnRNNBackwardData_v8(void* handle, void* layer, const int32_t*, void* y_form, const void* y,
                                     const void* dy, void* x_form, void* dx, void* h_form, const void* h,
                                     const void* last_dh, void* dh, void*, const void* c, const void* last_dc, void* dc,
                                     size_t weight_bytes, const void* weights, size_t room_size, void* room,
                                     size_t reserve_size, void* reserve) {
  return call("cudnnRNNBackwardData_v8", [&] {
    const RecurrentForm form = form_of(layer, x_form);
    check_outputs(form, y_form);
    check_states(form, h_form);
    check_bytes(form, weight_bytes, room_size, reserve_size, true);
    const uint64_t states = form.bytes(form.out * form.batch);
    Memory memory;
    RecurrentPlaces at{};
    at.y = memory.at(y, form.bytes(form.out * form.steps * form.batch));
    at.dy = memory.at(dy, form.bytes(form.out * form.steps * form.batch));
    at.dx = memory.at(dx, form.bytes(form.features * form.steps * form.batch));
    at.weights = memory.at(weights, weight_bytes);
    at.h = memory.at(h, states, false);
    at.c = memory.at(c, states, false);
    at.last_dh = memory.at(last_dh, states, false);
    at.last_dc = memory.at(last_dc, states, false);
    at.dh = memory.at(dh, states, false);
    at.dc = memory.at(dc, states, false);
    const uint64_t room_at = memory.at(room, room_bytes), kept_at = memory.at(reserve, reserve_bytes(form));
    give(handle, memory, text_of("data", form), room_at, [=] {
      compute_data_gradient(form, at, numbers_behind(kept_at, kept));
      mark(kept_at, spent);
    });
  });
}

FAKE_DNN_API cudnnRNNBackwardWeights_v8(void* handle, void* layer, int adds, const int32_t*, void* x_form,
                                        const void* x, void* h_form, const void* h, void* y_form, const void* y,
                                        size_t weight_bytes, void* dweights, size_t room_size, void* room,
                                        size_t reserve_size, void* reserve) {
  return call("cudnnRNNBackwardWeights_v8", [&] {
    if (adds != 0) throw Trouble{fake::not_supported, "gradients by weights are added"};
    const RecurrentForm form = form_of(layer, x_form);
    check_outputs(form, y_form);
    check_states(form, h_form);
    check_bytes(form, weight_bytes, room_size, reserve_size, true);
    Memory memory;
    memory.at(x, form.bytes(form.features * form.steps * form.batch));
    memory.at(y, form.bytes(form.out * form.steps * form.batch));
    memory.at(h, form.bytes(form.out * form.batch), false);
    const uint64_t to = memory.at(dweights, weight_bytes);
    const uint64_t room_at = memory.at(room, room_bytes), kept_at = memory.at(reserve, reserve_bytes(form));
    give(handle, memory, text_of("weights", form), room_at,
         [=] { add_weight_gradient(form, to, numbers_behind(kept_at, spent)); });
  });
}
