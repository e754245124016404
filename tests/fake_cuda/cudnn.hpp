// What cuDNN's stand-in remembers of its objects. Read first: library_work.hpp, cuda/cudnn_types.hpp, convolve.hpp
// (numbers). Read next: cudnn.cpp (the functions), cudnn_rules.cpp (what must hold).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convolve.hpp"
#include "cuda/cudnn_types.hpp"

namespace fake_dnn {

/// What cudnnCreate makes.
struct Handle {
  const void* context = nullptr;
  void* stream = nullptr;
};
/// Throws unless it is one, of the thread's context.
Handle& handle_now(void* handle);
/// Runs a function of the API: its status.
int call(const char* name, const std::function<void()>& f);
/// A call that no program may make.
[[noreturn]] void wrong(const char* text);

struct Descriptor;
using Object = std::shared_ptr<const Descriptor>;

/// What an attribute was set to.
struct Values {
  dnn::ValueType type = dnn::ValueType::int64;
  int64_t count = 0;
  std::vector<unsigned char> bytes;
  std::vector<Object> objects;  // of an attribute of descriptors
};

/// A way of computing. `room`: it wants a workspace; `refuses`: it is named, but builds no plan.
struct Engine {
  int64_t number;
  std::vector<dnn::Note> notes;
  bool refuses, room;
  double time;
};

struct Descriptor {
  dnn::Kind kind;
  bool finished = false;
  std::map<dnn::Attribute, Values> given;
  const Engine* engine = nullptr;      // of what heuristics gave
  Object graph;                        // that it is for
  std::vector<const Engine*> engines;  // that heuristics found
  uint64_t room = 0;                   // of plans

  bool has(dnn::Attribute which) const { return given.contains(which); }
  std::vector<int64_t> numbers(dnn::Attribute which) const;
  int64_t number(dnn::Attribute which) const { return numbers(which).at(0); }
  const std::vector<Object>& objects(dnn::Attribute which) const { return given.at(which).objects; }
  const Descriptor& object(dnn::Attribute which) const { return *objects(which).at(0); }
};

/// What may be said of this attribute of this kind; throws where it may not be said so.
void check_attribute(const Descriptor& of, dnn::Attribute which, dnn::ValueType type, int64_t count);
/// Whether what was said makes sense; throws where it does not. A plan that is not to be had: not_supported.
void finish(Descriptor& one);
uint64_t element_bytes(dnn::ValueType type);

/// Attention, or its gradient; dims are (batch, heads, length, features).
struct Attention {
  bool gradient = false, causal = false;
  Tensor q, k, v, y, state, dy, dq, dk, dv;  // without dims: it is not there
  Tensor scale, never;                       // numbers
  double factor = 1;                         // that the scale is in a run

  std::vector<Tensor*> stored();  // the results as the last
  size_t results() const { return gradient ? 3 : state.sizes.empty() ? 1 : 2; }
};

/// Whether the graph is one of attention.
bool has_attention(const Descriptor& graph);
Attention attention_of(const Descriptor& graph);
/// Throws where it makes no sense.
void check_attention(const Attention& attention);
void compute(const Attention& attention);

/// Attention as the steps that it is made of.
struct Steps {
  struct One {
    dnn::Kind kind = dnn::Kind::pointwise_operation;
    int64_t mode = 0, axis = -1;
    Tensor x, b, t, y;  // without dims: it is not there; a product is of x and b
  };
  std::vector<One> all;
  std::vector<Tensor> operands, results;  // that stand in memory
  std::map<int64_t, double> numbers;      // by their ids, in a run

  std::vector<Tensor*> stored();  // the results as the last
  void place();                   // steps get the addresses of what is stored
};

/// Whether the graph is one of such steps.
bool has_steps(const Descriptor& graph);
/// Throws where they make no sense.
Steps steps_of(const Descriptor& graph);
void compute(const Steps& steps);

/// A finished plan as a text, and the plan's graph again, with the number of its engine. Throws not_supported where
/// that is no such text.
std::string text_of_plan(const Descriptor& plan);
int64_t read_plan(const std::string& text, Descriptor& plan);
/// The engine with this number; null: there is none.
const Engine* engine_numbered(int64_t number);

/// An array as it was described.
Tensor tensor_of(const Descriptor& one);
/// That no engine computes.
[[noreturn]] void refuse(const char* text);

/// Of a finished graph. Throws not_supported for patterns that no engine computes.
Convolution convolution_of(const Descriptor& graph);

}  // namespace fake_dnn
