// What MIOpen's stand-in remembers of its objects, and what it computes. Read first: ../fake_cuda/library_work.hpp,
// ../fake_cuda/convolve.hpp, amdgpu/miopen_types.hpp. Read next: miopen_problem.cpp (what must hold), miopen.cpp (the
// functions).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "amdgpu/miopen_types.hpp"
#include "convolve.hpp"

namespace fake_miopen {

namespace miopen = rosin::amdgpu::miopen;

/// What miopenCreate makes.
struct Handle {
  const void* context = nullptr;
  void* stream = nullptr;
  std::set<std::string> measured;  // problems
  std::set<std::string> compiled;  // solvers of problems
};

struct Tensor {
  miopen::Type type = miopen::Type::float32;
  miopen::Layout layout = miopen::Layout::planes;
  std::vector<int64_t> sizes;  // empty: it was not set
};

struct Window {
  std::vector<int64_t> pads, strides, dilations;  // empty: it was not set
  int64_t groups = 1;
  std::map<miopen::Attribute, int> attributes;
};

/// A way of computing. `refuses`: it is named, but does not compile. `measured`: it is named once it was measured.
struct Solver {
  uint64_t id;
  miopen::Algorithm algorithm;
  bool deterministic, refuses, room, measured;
  float guess;
  double time;
};

enum class Direction { forward, data, weights };

/// A convolution in one direction, all of which makes sense.
struct Problem {
  Direction direction = Direction::forward;
  fake_dnn::Convolution convolution;
  int64_t groups = 1;
  bool deterministic = false, planes = true;
  bool as_bfloat = false;  // operands of Float16 are rounded on gfx90a

  std::string text() const;
  uint64_t room(const Solver& solver) const;
};

/// The arrays in the order of the direction's functions. Throws where they do not go together.
Problem problem_of(Direction direction, const Tensor& first, const Tensor& second, const Window& window,
                   const Tensor& result);

/// Those that compute it, the one that is guessed fastest first. `with_measured`: those too that are named later.
std::vector<Solver> solvers_for(const Problem& problem, bool with_measured);
/// Throws where that does not compute it.
Solver solver_numbered(uint64_t id, const Problem& problem);

/// A call that no program may make.
[[noreturn]] void wrong(const char* text);

}  // namespace fake_miopen
