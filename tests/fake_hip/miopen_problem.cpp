// What the objects of MIOpen's stand-in must be to make sense together, and who computes them. See miopen.hpp.
#include <algorithm>

#include "machine.hpp"
#include "miopen.hpp"

namespace fake_miopen {
namespace {

using miopen::Algorithm;
using miopen::Attribute;
using miopen::Layout;

// Not deterministic; no exact sums; refused when it is compiled; with room; plain; slow; the fastest, once measured;
// one of gradients by weights that says to be deterministic, and is from version 3.6 on.
const Solver all_solvers[] = {{101, Algorithm::implicit_product, false, false, false, false, 0.1f, 0.1},
                              {102, Algorithm::winograd, true, false, false, false, 0.2f, 0.2},
                              {103, Algorithm::implicit_product, true, true, false, false, 0.3f, 0.1},
                              {104, Algorithm::product, true, false, true, false, 0.4f, 1},
                              {105, Algorithm::direct, true, false, false, false, 0.5f, 0.5},
                              {106, Algorithm::direct, true, false, false, false, 6, 2},
                              {107, Algorithm::implicit_product, true, false, true, true, 0.05f, 0.3},
                              {156, Algorithm::implicit_product, true, false, false, false, 0.01f, 0.2},
                              {85, Algorithm::direct, true, false, false, false, 0.02f, 0.05}};
constexpr uint64_t last_resort = 106, in_parts = 156, naive = 85;

fake_dnn::dnn::Type type_of(miopen::Type type) {
  switch (type) {
    case miopen::Type::float16: return fake_dnn::dnn::Type::float16;
    case miopen::Type::bfloat16: return fake_dnn::dnn::Type::bfloat16;
    default: return fake_dnn::dnn::Type::float32;
  }
}

bool is_planes(Layout layout) { return layout == Layout::planes || layout == Layout::planes_of_three; }

fake_dnn::Tensor laid_out(const Tensor& given) {
  if (given.sizes.empty()) wrong("an array that was not described");
  fake_dnn::Tensor made;
  made.type = type_of(given.type);
  made.sizes = given.sizes;
  made.strides.resize(made.sizes.size());
  made.alignment = 16;
  int64_t stride = 1;
  const auto next = [&](size_t d) {
    made.strides[d] = stride;
    stride *= made.sizes[d];
  };
  const bool planes = is_planes(given.layout);
  if (!planes) next(1);
  for (size_t d = made.sizes.size() - 1; d >= 2; --d) next(d);
  if (planes) next(1);
  next(0);
  return made;
}

void check_sizes(const fake_dnn::Convolution& c, int64_t groups) {
  const auto &x = c.x.sizes, &w = c.w.sizes, &y = c.y.sizes;
  if (w.size() != x.size() || y.size() != x.size() || c.stride.size() + 2 != x.size()) wrong("other dims");
  if (x[0] != y[0] || w[0] != y[1]) wrong("batches or channels that do not fit");
  if (groups < 1 || x[1] != w[1] * groups || w[0] % groups != 0) wrong("groups that do not fit");
  for (size_t d = 2; d < x.size(); ++d) {
    const size_t s = d - 2;
    const int64_t room = x[d] + 2 * c.pad_low[s] - c.dilation[s] * (w[d] - 1) - 1;
    if (room < 0 || y[d] != room / c.stride[s] + 1) wrong("images whose sizes do not fit");
  }
}

int attribute(const Window& window, Attribute which, int otherwise) {
  const auto found = window.attributes.find(which);
  return found == window.attributes.end() ? otherwise : found->second;
}

/// Images of three dims have the last resort alone; groups of BFloat16 have nothing.
bool computes(const Solver& solver, const Problem& problem) {
  const fake_dnn::Convolution& c = problem.convolution;
  if (problem.deterministic && !solver.deterministic) return false;
  if (solver.id == naive && problem.direction != Direction::forward) return false;
  if (solver.id == in_parts && problem.direction != Direction::weights) return false;
  if (problem.groups > 1 && c.x.type == fake_dnn::dnn::Type::bfloat16) return false;
  return c.x.sizes.size() == 4 || solver.id == last_resort;
}

}  // namespace

Problem problem_of(Direction direction, const Tensor& first, const Tensor& second, const Window& window,
                   const Tensor& result) {
  if (window.pads.empty()) wrong("a window that was not described");
  Problem made;
  made.direction = direction;
  fake_dnn::Convolution& c = made.convolution;
  const bool forward = direction == Direction::forward, data = direction == Direction::data;
  c.kind = forward ? fake_dnn::dnn::Kind::forward
           : data  ? fake_dnn::dnn::Kind::backward_data
                   : fake_dnn::dnn::Kind::backward_weights;
  c.x = laid_out(data ? result : second);
  c.w = laid_out(forward ? first : data ? second : result);
  c.y = laid_out(forward ? result : first);
  c.stride = window.strides;
  c.dilation = window.dilations;
  c.pad_low = c.pad_high = window.pads;
  made.planes = is_planes(first.layout);
  for (const Tensor* other : {&second, &result}) {
    if (other->type != first.type) wrong("arrays of several types");
    if (other->layout != first.layout) wrong("arrays in several orders");
  }
  made.groups = window.groups;
  check_sizes(c, made.groups);
  made.deterministic = attribute(window, Attribute::deterministic, 0) != 0;
  const int rounds = attribute(window, Attribute::float16_as_bfloat16, -1);
  made.as_bfloat = first.type == miopen::Type::float16 && (rounds == 1 || (rounds == -1 && !forward));
  return made;
}

std::string Problem::text() const {
  const fake_dnn::Convolution& c = convolution;
  std::string text = direction == Direction::forward ? "convolution forward"
                     : direction == Direction::data  ? "convolution data"
                                                     : "convolution weights";
  const auto add = [&](const char* name, const std::vector<int64_t>& numbers) {
    text += name;
    for (const int64_t number : numbers) text += " " + std::to_string(number);
  };
  add(" x", c.x.sizes);
  add(" w", c.w.sizes);
  text += " type " + std::to_string(static_cast<int>(c.x.type)) + (planes ? " planes" : " channels first");
  if (as_bfloat) text += " as bfloat";
  add(" pad", c.pad_low);
  add(" stride", c.stride);
  add(" dilation", c.dilation);
  return text + (deterministic ? " deterministic" : "");
}

uint64_t Problem::room(const Solver& solver) const {
  fake_dnn::Convolution c = convolution;
  return solver.room ? 2 * c.stored().back()->reach() + 100 : 0;
}

std::vector<Solver> solvers_for(const Problem& problem, bool with_measured) {
  std::vector<Solver> all;
  for (const Solver& one : all_solvers) {
    if (computes(one, problem) && (with_measured || !one.measured)) all.push_back(one);
  }
  std::sort(all.begin(), all.end(), [](const Solver& a, const Solver& b) { return a.guess < b.guess; });
  return all;
}

Solver solver_numbered(uint64_t id, const Problem& problem) {
  for (const Solver& one : all_solvers) {
    if (one.id == id && computes(one, problem)) return one;
  }
  wrong("a solver that does not compute this");
}

void wrong(const char* text) { throw fake::Trouble{fake::invalid_value, text}; }

}  // namespace fake_miopen
