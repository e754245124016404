// Attention that is given to cuDNN's stand-in as the steps that it is made of: each is computed by itself, in doubles.
// See cudnn.hpp.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "cudnn.hpp"
#include "library_work.hpp"

namespace fake_dnn {
namespace {

using dnn::Attribute;
using dnn::Kind;
using dnn::PointwiseMode;
using Values4 = std::vector<double>;
using Place = std::array<int64_t, 4>;

int64_t count_of(const Tensor& tensor) { return tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3]; }
Place place_of(const Tensor& tensor, int64_t i) {
  Place at{};
  for (size_t d = 4; d-- > 0; i /= tensor.sizes[d]) at[d] = i % tensor.sizes[d];
  return at;
}
/// Where an array of fewer elements along some dims has what belongs to this place: of heads, several share one.
size_t number_of(const Tensor& tensor, const Place& at, const Tensor& whole) {
  int64_t number = 0;
  for (size_t d = 0; d < 4; ++d) number = number * tensor.sizes[d] + at[d] / (whole.sizes[d] / tensor.sizes[d]);
  return static_cast<size_t>(number);
}
int64_t stored_at(const Tensor& tensor, const Place& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < 4; ++d) offset += at[d] * tensor.strides[d];
  return offset;
}

/// What each array holds while the steps run.
class Run {
 public:
  explicit Run(const Steps& steps) : steps_(steps) {}

  void compute() {
    for (const Steps::One& one : steps_.all) {
      Values4 made(static_cast<size_t>(count_of(one.y)));
      if (one.kind == Kind::matmul_operation) multiply(one, made);
      else if (one.kind == Kind::reduction_operation) reduce(one, made);
      else if (one.kind == Kind::reshape) turn(one, made);
      else pointwise(one, made);
      store(one.y, std::move(made));
    }
  }

 private:
  const Values4& values_of(const Tensor& tensor) {
    const auto [found, added] = held_.try_emplace(tensor.id);
    if (!added) return found->second;
    if (tensor.by_value) return found->second = {steps_.numbers.at(tensor.id)};
    for (int64_t i = 0; i < count_of(tensor); ++i) {
      const int64_t at = stored_at(tensor, place_of(tensor, i));
      found->second.push_back(fake::read_element(element_of(tensor.type), tensor.address, at));
    }
    return found->second;
  }

  void store(const Tensor& tensor, Values4 made) {
    for (int64_t i = 0; !tensor.is_virtual && i < count_of(tensor); ++i) {
      fake::write_element(element_of(tensor.type), tensor.address, stored_at(tensor, place_of(tensor, i)),
                          made[static_cast<size_t>(i)]);
    }
    held_[tensor.id] = std::move(made);
  }

  void multiply(const Steps::One& one, Values4& made) {
    const Values4 &a = values_of(one.x), &b = values_of(one.b);
    const int64_t inner = one.x.sizes[3], columns = one.y.sizes[3];
    Tensor left = one.y, right = one.y;
    left.sizes[3] = right.sizes[2] = inner;
    for (int64_t i = 0; i < count_of(one.y); ++i) {
      const Place at = place_of(one.y, i);
      const double* row = a.data() + number_of(one.x, {at[0], at[1], at[2], 0}, left);
      const double* column = b.data() + number_of(one.b, {at[0], at[1], 0, at[3]}, right);
      for (int64_t k = 0; k < inner; ++k) made[static_cast<size_t>(i)] += row[k] * column[k * columns];
    }
  }

  void reduce(const Steps::One& one, Values4& made) {
    const bool greatest = one.mode == static_cast<int64_t>(dnn::ReductionMode::max);
    if (greatest) std::fill(made.begin(), made.end(), -std::numeric_limits<double>::infinity());
    const Values4& x = values_of(one.x);
    for (int64_t i = 0; i < count_of(one.x); ++i) {
      double& to = made[number_of(one.y, place_of(one.x, i), one.x)];
      to = greatest ? std::max(to, x[static_cast<size_t>(i)]) : to + x[static_cast<size_t>(i)];
    }
  }

  /// The last two dims exchanged.
  void turn(const Steps::One& one, Values4& made) {
    const Values4& x = values_of(one.x);
    for (int64_t i = 0; i < count_of(one.y); ++i) {
      Place at = place_of(one.y, i);
      std::swap(at[2], at[3]);
      made[static_cast<size_t>(i)] = x[number_of(one.x, at, one.x)];
    }
  }

  void pointwise(const Steps::One& one, Values4& made) {
    for (int64_t i = 0; i < count_of(one.y); ++i) {
      const Place at = place_of(one.y, i);
      const auto of = [&](const Tensor& tensor) {
        return tensor.sizes.empty() ? 0 : values_of(tensor)[number_of(tensor, at, one.y)];
      };
      const bool index = one.mode == static_cast<int64_t>(PointwiseMode::index);
      made[static_cast<size_t>(i)] = index
                                         ? static_cast<double>(at[static_cast<size_t>(one.axis)])
                                         : value(static_cast<PointwiseMode>(one.mode), of(one.x), of(one.b), of(one.t));
    }
  }

  static double value(PointwiseMode mode, double x, double b, double t) {
    switch (mode) {
      case PointwiseMode::add: return x + b;
      case PointwiseMode::multiply: return x * b;
      case PointwiseMode::divide: return x / b;
      case PointwiseMode::subtract: return x - b;
      case PointwiseMode::exp: return std::exp(x);
      case PointwiseMode::log: return std::log(x);
      case PointwiseMode::identity: return x;
      case PointwiseMode::at_least: return x >= b;
      case PointwiseMode::select: return t != 0 ? x : b;
      default: wrong("no such step of attention");
    }
  }

  const Steps& steps_;
  std::map<int64_t, Values4> held_;
};

Steps::One step_of(const Descriptor& operation) {
  using enum Attribute;
  Steps::One one;
  one.kind = operation.kind;
  const auto array = [&](Attribute which) {
    return operation.has(which) ? tensor_of(operation.object(which)) : Tensor{};
  };
  switch (operation.kind) {
    case Kind::matmul_operation: one.x = array(matmul_a), one.b = array(matmul_b), one.y = array(matmul_c); break;
    case Kind::reduction_operation:
      one.x = array(reduction_x), one.y = array(reduction_y);
      one.mode = operation.object(reduction_how).number(reduction_mode);
      break;
    case Kind::reshape: one.x = array(reshape_x), one.y = array(reshape_y); break;
    case Kind::pointwise_operation: {
      const Descriptor& how = operation.object(operation_pointwise);
      one.x = array(operation_x), one.b = array(operation_b), one.t = array(operation_t), one.y = array(operation_y);
      one.mode = how.number(pointwise_mode);
      if (how.has(pointwise_axis)) one.axis = how.number(pointwise_axis);
      break;
    }
    default: refuse("a step that is none of attention");
  }
  return one;
}

bool fits(const Tensor& part, const Tensor& whole) {
  for (size_t d = 0; d < 4; ++d) {
    if (whole.sizes[d] % part.sizes[d] != 0) return false;
  }
  return true;
}

void check_step(const Steps::One& one) {
  for (const Tensor* each : {&one.x, &one.b, &one.t, &one.y}) {
    if (!each->sizes.empty() && each->sizes.size() != 4) wrong("a step of attention with other dims");
  }
  const std::vector<int64_t>&x = one.x.sizes, &b = one.b.sizes, &y = one.y.sizes;
  const bool axis = one.axis >= 0 && one.axis < 4;
  switch (one.kind) {
    case Kind::matmul_operation:
      if (x[3] != b[2] || x[2] != y[2] || b[3] != y[3] || y[1] % b[1] != 0) wrong("a product that does not fit");
      break;
    case Kind::reduction_operation:
      if (!fits(one.y, one.x)) wrong("a sum that does not fit");
      break;
    case Kind::reshape:
      if (x[2] != y[3] || x[3] != y[2]) refuse("a reshape that does not exchange the last two dims");
      break;
    default:
      if ((one.mode == static_cast<int64_t>(PointwiseMode::index)) != axis) wrong("an index along no dim");
      if (!fits(one.x, one.y) || (!b.empty() && !fits(one.b, one.y))) wrong("a step that does not broadcast");
  }
}

}  // namespace

bool has_steps(const Descriptor& graph) {
  const std::vector<Object>& operations = graph.objects(Attribute::graph_operations);
  return std::any_of(operations.begin(), operations.end(),
                     [](const Object& one) { return one->kind == Kind::matmul_operation; });
}

Steps steps_of(const Descriptor& graph) {
  Steps steps;
  std::set<int64_t> met;
  for (const Object& operation : graph.objects(Attribute::graph_operations)) {
    Steps::One one = step_of(*operation);
    check_step(one);
    for (const Tensor* each : {&one.x, &one.b, &one.t, &one.y}) {
      const bool stored = !each->sizes.empty() && !each->is_virtual && !each->by_value;
      if (!each->sizes.empty() && each->by_value) steps.numbers[each->id] = 0;
      if (stored && met.insert(each->id).second) (each == &one.y ? steps.results : steps.operands).push_back(*each);
      if (each != &one.y && each->is_virtual && !met.contains(each->id)) wrong("a step reads what no step has made");
    }
    met.insert(one.y.id);
    steps.all.push_back(std::move(one));
  }
  return steps;
}

std::vector<Tensor*> Steps::stored() {
  std::vector<Tensor*> both;
  for (std::vector<Tensor>* list : {&operands, &results}) {
    for (Tensor& each : *list) both.push_back(&each);
  }
  return both;
}

void Steps::place() {
  std::map<int64_t, uint64_t> address;
  for (const Tensor* each : stored()) address[each->id] = each->address;
  for (One& one : all) {
    for (Tensor* each : {&one.x, &one.b, &one.t, &one.y}) {
      if (const auto found = address.find(each->id); found != address.end()) each->address = found->second;
    }
  }
}

void compute(const Steps& steps) { Run(steps).compute(); }

}  // namespace fake_dnn
