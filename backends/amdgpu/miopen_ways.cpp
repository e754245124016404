// See miopen_ways.hpp.
#include "amdgpu/miopen_ways.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace rosin::amdgpu {
namespace {

using driver::Address;
using driver::Failure;
using driver::Stream;
using miopen::Algorithm;
using miopen::Layout;
using miopen::Solution;
using vendor::Convolution;
using vendor::DimOrder;
using vendor::Tensor;

constexpr size_t most_ways = 16;
constexpr uint64_t alignment = 256;

// Numbers of MIOpen's registry of solvers, which stay. ConvDirectNaiveConvFwd, ...Bwd and ...Wrw are for comparing
// with, and may take hundreds of times as long as others; of ConvHipImplicitGemm3DGroupWrwXdlops, ...GroupBwdXdlops
// and ...GroupWrwXdlops see allows().
constexpr uint64_t naive[] = {85, 86, 87}, in_parts[] = {140, 155, 156};

template <size_t count> bool is_one_of(const uint64_t (&all)[count], uint64_t id) {
  return std::find(std::begin(all), std::end(all), id) != std::end(all);
}

[[noreturn]] void refuse(const char* why) { throw Failure{ROSIN_UNSUPPORTED, std::string("MIOpen: ") + why}; }

miopen::Type type_of(int32_t type) {
  switch (type) {
    case ROSIN_FLOAT16: return miopen::Type::float16;
    case ROSIN_BFLOAT16: return miopen::Type::bfloat16;
    case ROSIN_FLOAT32: return miopen::Type::float32;
    default: refuse("no such type");
  }
}

int narrow(int64_t number) {
  if (number > std::numeric_limits<int>::max()) refuse("an array that is too large");
  return static_cast<int>(number);
}

/// MIOpen has images of two or three spatial dims: a first one of one element is added to a single one.
std::vector<int> in_two_dims(const std::vector<int64_t>& numbers, size_t before, int added) {
  std::vector<int> made;
  for (const int64_t number : numbers) made.push_back(narrow(number));
  if (numbers.size() - before == 1) made.insert(made.begin() + static_cast<std::ptrdiff_t>(before), added);
  return made;
}

}  // namespace

DnnProblem::DnnProblem(const Convolution& convolution) : convolution_(convolution) {
  choose_order();
  const std::array<const Tensor*, 3> arrays = in_order();
  for (size_t i = 0; i < arrays.size(); ++i) tensors_[i] = described(*arrays[i]);
  window_ = described_window();
}

std::array<const Tensor*, 3> DnnProblem::in_order() const {
  const Tensor *x = &convolution_.x, *w = &convolution_.w, *y = &convolution_.y;
  switch (convolution_.kind) {
    case ROSIN_CALL_CONVOLUTION_DATA: return {y, w, x};
    case ROSIN_CALL_CONVOLUTION_WEIGHTS: return {y, x, w};
    default: return {w, x, y};
  }
}

/// All arrays lie in one order: that of the images. Weights are as rosin has them.
void DnnProblem::choose_order() {
  const auto lie = [&](DimOrder order) { return lies(convolution_.x, order) && lies(convolution_.y, order); };
  weights_.channels_first = !lie(DimOrder::planes);
  if (weights_.channels_first && !lie(DimOrder::channels_first)) refuse("images in two orders");
  if (!lies(convolution_.w, DimOrder::planes)) refuse("weights with their channels first");
  const std::vector<int64_t>& sizes = convolution_.w.sizes;
  int64_t taps = 1;
  for (size_t d = 2; d < sizes.size(); ++d) taps *= sizes[d];
  weights_.count = static_cast<unsigned>(narrow(taps * sizes[0] * sizes[1]));
  weights_.channels = static_cast<unsigned>(sizes[1]);
  weights_.taps = static_cast<unsigned>(taps);
  weights_.element_bytes = convolution_.type == ROSIN_FLOAT32 ? 4 : 2;
  weights_.flipped = convolution_.flipped;
}

DnnProblem::Owned<miopen::TensorDescriptor> DnnProblem::described(const Tensor& tensor) const {
  const miopen::Functions& functions = dnn_library().functions();
  miopen::TensorDescriptor made = nullptr;
  dnn_library().check(functions.tensor_create(&made), "a descriptor");
  Owned<miopen::TensorDescriptor> owned(made, {functions.tensor_destroy});
  const std::vector<int> sizes = in_two_dims(tensor.sizes, 2, 1);
  const bool three = sizes.size() == 5;
  const Layout planes = three ? Layout::planes_of_three : Layout::planes;
  const Layout channels_first = three ? Layout::channels_first_of_three : Layout::channels_first;
  dnn_library().check(
      functions.tensor_set(made, type_of(convolution_.type), weights_.channels_first ? channels_first : planes,
                           sizes.data(), static_cast<int>(sizes.size())),
      "an array");
  return owned;
}

DnnProblem::Owned<miopen::ConvolutionDescriptor> DnnProblem::described_window() const {
  const miopen::Functions& functions = dnn_library().functions();
  miopen::ConvolutionDescriptor made = nullptr;
  dnn_library().check(functions.convolution_create(&made), "a descriptor");
  Owned<miopen::ConvolutionDescriptor> owned(made, {functions.convolution_destroy});
  const Convolution& c = convolution_;
  const std::vector<int> pads = in_two_dims(c.pad_low, 0, 0), strides = in_two_dims(c.stride, 0, 1),
                         dilations = in_two_dims(c.dilation, 0, 1);
  dnn_library().check(functions.convolution_set(made, static_cast<int>(pads.size()), pads.data(), strides.data(),
                                                dilations.data(), miopen::Mode::cross_correlation),
                      "a window");
  dnn_library().check(functions.convolution_set_groups(made, narrow(c.x.sizes[1] / c.w.sizes[1])), "a window");
  const auto set = [&](miopen::Attribute which, int value) {
    dnn_library().check(functions.convolution_set_attribute(made, which, value), "a window");
  };
  set(miopen::Attribute::deterministic, c.deterministic);
  if (c.type == ROSIN_FLOAT16 && c.compute < ROSIN_COMPUTE_BFLOAT16) set(miopen::Attribute::float16_as_bfloat16, 0);
  return owned;
}

const miopen::Direction& DnnProblem::direction() const {
  const miopen::Functions& functions = dnn_library().functions();
  switch (convolution_.kind) {
    case ROSIN_CALL_CONVOLUTION_DATA: return functions.data;
    case ROSIN_CALL_CONVOLUTION_WEIGHTS: return functions.weights;
    default: return functions.forward;
  }
}

DnnWays::DnnWays(DnnHandle& handle, WeightKernel& kernel, const Convolution& convolution, uint64_t workspace)
    : handle_(handle), kernel_(kernel), problem_(convolution), workspace_limit_(workspace) {
  find();
  if (ways_.empty()) refuse("it has no solver for this convolution");
  if (!problem_.weights().is_usual()) kernel_.get_ready();
}

/// Adds the ways that are allowed. Those that are known keep their numbers.
void DnnWays::find() {
  const DnnProblem& p = problem_;
  Solution all[most_ways];
  size_t count = 0;
  const int status = handle_.ask([&](miopen::Handle handle) {
    return p.direction().solutions(handle, p.first(), p.second(), p.window(), p.result(), most_ways, &count, all);
  });
  if (status == miopen::allocation_failed) dnn_library().check(status, "search for a solver");
  if (status != miopen::success) return;
  for (const Solution& one : std::span(all, std::min(count, most_ways))) {
    if (allows(one)) add(one.id, one.workspace);
  }
}

void DnnWays::add(uint64_t id, uint64_t workspace) {
  const bool is_known = std::any_of(ways_.begin(), ways_.end(), [&](const Way& way) { return way.id == id; });
  if (!is_known) ways_.push_back({id, room_of_weights() + workspace});
}

/// Asked for determinism, versions before 3.6 name gradients all the same that add up in parts, in any order: those of
/// 3.2 to 3.4 by weights, those of 3.5 by images.
bool DnnWays::allows(const Solution& solution) const {
  const Convolution& convolution = problem_.convolution();
  const bool transforms = solution.algorithm == Algorithm::winograd || solution.algorithm == Algorithm::fourier;
  if (is_one_of(naive, solution.id) || (transforms && convolution.compute == ROSIN_COMPUTE_EXACT)) return false;
  return !is_one_of(in_parts, solution.id) || !convolution.deterministic || dnn_library().is_at_least(3, 6);
}

uint64_t DnnWays::room_of_weights() const {
  const WeightOrder& weights = problem_.weights();
  return weights.is_usual() ? 0 : (weights.bytes() + alignment - 1) / alignment * alignment;
}

DnnWays::Way DnnWays::known(size_t way) const {
  const std::lock_guard guard(changing_);
  return ways_[way];
}

size_t DnnWays::count() const {
  const std::lock_guard guard(changing_);
  return ways_.size();
}

bool DnnWays::build(size_t number) {
  const std::lock_guard guard(changing_);
  Way& way = ways_[number];
  if (way.tried) return way.usable;
  const DnnProblem& p = problem_;
  if (way.workspace <= workspace_limit_) {
    const int status = handle_.ask([&](miopen::Handle handle) {
      return p.direction().compile(handle, p.first(), p.second(), p.window(), p.result(), way.id);
    });
    if (status == miopen::allocation_failed) dnn_library().check(status, "a convolution's kernels");
    way.usable = status == miopen::success;
  }
  way.tried = true;
  return way.usable;
}

size_t DnnWays::first() {
  for (size_t way = 0; way < count(); ++way) {
    if (build(way)) return way;
  }
  refuse("none of its solvers does for this convolution");
}

/// One that measuring has found in another process may not be named in this one.
std::optional<size_t> DnnWays::marked(uint64_t mark) {
  std::optional<size_t> way = numbered(mark);
  if (!way) {
    const DnnProblem& p = problem_;
    size_t workspace = 0;
    const int status = handle_.ask([&](miopen::Handle handle) {
      return p.direction().workspace(handle, p.first(), p.second(), p.window(), p.result(), mark, &workspace);
    });
    if (status != miopen::success) return std::nullopt;
    {
      const std::lock_guard guard(changing_);
      add(mark, workspace);
    }
    way = numbered(mark);
  }
  return build(*way) ? way : std::nullopt;
}

std::optional<size_t> DnnWays::numbered(uint64_t id) const {
  const std::lock_guard guard(changing_);
  for (size_t way = 0; way < ways_.size(); ++way) {
    if (ways_[way].id == id) return way;
  }
  return std::nullopt;
}

template <class Work> void DnnWays::give(Stream stream, const Address* arrays, Address workspace, Work&& work) {
  const auto [first, second, result] = problem_.in_order();
  const WeightOrder& weights = problem_.weights();
  const Tensor* const turned = weights.is_usual() ? nullptr : &problem_.convolution().w;
  const auto place = [&](const Tensor* array) {
    return reinterpret_cast<void*>(array == turned ? workspace : arrays[array->at]);
  };
  const bool turned_back = turned == result;
  if (turned && !turned_back) {
    kernel_.run(stream, weights, WeightKernel::To::library, arrays[turned->at], workspace);
  }
  const Given given{place(first), place(second), place(result), reinterpret_cast<void*>(workspace + room_of_weights())};
  handle_.give(stream, "convolution", [&](miopen::Handle handle) { return work(handle, given); });
  if (turned_back) kernel_.run(stream, weights, WeightKernel::To::rosin, workspace, arrays[turned->at]);
}

/// Where MIOpen measures nothing, the ways stay what they are.
void DnnWays::search(Stream stream, const Address* arrays, Address workspace, uint64_t bytes) {
  if (bytes < room_of_weights()) return;
  try {
    measure(stream, arrays, workspace, bytes - room_of_weights());
  } catch (const Failure& failure) {
    if (failure.status == ROSIN_DEVICE_FAULT) throw;
  }
  const std::lock_guard guard(changing_);
  find();
}

void DnnWays::measure(Stream stream, const Address* arrays, Address workspace, uint64_t bytes) {
  const DnnProblem& p = problem_;
  const bool forward = p.convolution().kind == ROSIN_CALL_CONVOLUTION;
  miopen::Measured all[most_ways];
  int count = 0;
  give(stream, arrays, workspace, [&](miopen::Handle handle, Given given) {
    auto [first, second] = std::pair(p.first(), p.second());
    if (forward) std::swap(first, second), std::swap(given.first, given.second);
    return p.direction().find(handle, first, given.first, second, given.second, p.window(), p.result(), given.result,
                              static_cast<int>(most_ways), &count, all, given.workspace, bytes, false);
  });
}

void DnnWays::run(Stream stream, size_t number, const Address* arrays, Address workspace) {
  const Way way = known(number);
  const DnnProblem& p = problem_;
  give(stream, arrays, workspace, [&](miopen::Handle handle, const Given& given) {
    const uint64_t bytes = way.workspace - room_of_weights();
    return p.direction().run(handle, p.first(), given.first, p.second(), given.second, p.window(), p.result(),
                             given.result, bytes > 0 ? given.workspace : nullptr, bytes, way.id);
  });
}

}  // namespace rosin::amdgpu
