// Observations of arrays: counted, copied out and put together. In host memory column by column; on a device by its own
// gather, so that the whole array never leaves it. Results are values of their own: nothing stays recorded.
#include <rosin/data.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/model.hpp>
#include <rosin/movement.hpp>
#include <rosin/show.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "ops/gather_in_range.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse(ErrorKind kind, const char* op, const std::string& text) {
  throw Error(kind, std::string(op) + ": " + text);
}

/// As in messages: "the array" for data that is one, else its path.
std::string place(const ModelPath& path) { return path.is_root() ? std::string("the array") : path.text(); }

void check_counted(const Array& x, const char* op, const ModelPath& path) {
  if (!x.is_nothing() && x.rank() > 0) return;
  refuse(ErrorKind::shape, op,
         "the last dim of every array counts the observations; " + place(path) + " is " +
             (x.is_nothing() ? "nothing" : "a single number") + "; leave it out");
}

class Counter : public ModelVisitor {
 public:
  explicit Counter(const char* op) : op_(op) {}

  void array(const Array& x, const ModelPath& path) override {
    check_counted(x, op_, path);
    const int64_t here = x.size(-1);
    if (count < 0) {
      count = here;
      first_ = place(path);
    } else if (here != count) {
      refuse(ErrorKind::shape, op_,
             "all data containers must have the same number of observations; " + first_ + " has " +
                 std::to_string(count) + ", " + place(path) + " has " + std::to_string(here) +
                 "; the last dim counts them");
    }
  }
  void leaf(const ModelPart& part, const ModelPath& path) override {
    // A number or a text that is a named field goes into every batch as it is.
    if (part.count == 0 && path.index() < 0) return;
    refuse(ErrorKind::argument, op_,
           "data are arrays; " + place(path) + " is a " + std::string(part.type) +
               "; make an Array of it: Array(values, {n})");
  }
  int64_t count = -1;

 private:
  const char* op_;
  std::string first_;
};

Shape with_last(const Node& node, int rank, int64_t last) {
  int64_t sizes[Shape::max_rank + 1];
  for (int d = 0; d < rank; ++d) sizes[d] = node.sizes[d];
  sizes[rank] = last;
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank) + 1));
}

class Take : public ModelEditor {
 public:
  explicit Take(std::span<const int64_t> at) : at_(at) {}

  void array(Array& x, const ModelPath& path) override {
    check_counted(x, "getobs", path);
    detail::check_observations(at_, x.size(-1));
    x = x.node()->device == 0 ? taken_here(x) : taken_there(x);
  }
  /// Whether there is something to compute.
  bool recorded() const { return !places_.empty(); }

 private:
  Array taken_here(const Array& x) const {
    const Array host = on_cpu(x);
    const Node& source = *host.node();
    const int64_t n = x.size(-1);
    const size_t column = n > 0 ? static_cast<size_t>(source.count() / n) * size_of(source.dtype) : 0;
    Array taken = fresh_leaf(source.dtype, with_last(source, source.rank - 1, static_cast<int64_t>(at_.size())));
    copy_runs(static_cast<unsigned char*>(taken.node()->data()), static_cast<const unsigned char*>(source.data()),
              column);
    return taken;
  }

  /// Recorded; inside a gradient call a constant, as what is copied on the host is.
  Array taken_there(const Array& x) {
    const Array taken = gather_in_range(x, places_on(x.node()->device));
    if (Context::current().gradient_depth.load(std::memory_order_relaxed) == 0) return taken;
    eval(taken);
    retain(taken.node()->buffer);
    return rosin::leaf(taken.node()->buffer, taken.dtype(), taken.shape());
  }

  /// `at_` on a device: copied there once for all arrays.
  const Array& places_on(int device) {
    for (const Array& places : places_) {
      if (places.node()->device == device) return places;
    }
    const Array here(at_, Shape{static_cast<int64_t>(at_.size())});
    return places_.emplace_back(transferred(here, device));
  }

  /// Neighbours are copied together.
  void copy_runs(unsigned char* target, const unsigned char* source, size_t column) const {
    for (size_t begin = 0, end = 0; begin < at_.size(); begin = end) {
      for (end = begin + 1; end < at_.size() && at_[end] == at_[end - 1] + 1;) ++end;
      const size_t bytes = (end - begin) * column;
      if (bytes > 0) std::memcpy(target, source + static_cast<size_t>(at_[begin]) * column, bytes);
      target += bytes;
    }
  }

  std::span<const int64_t> at_;
  std::vector<Array> places_;  // one for each device
};

/// Observations side by side: one array of the batch.
struct Stack {
  Array* target;             // of the batch
  Array first;               // of the first observation
  std::vector<Array> there;  // of all observations, where they are on a device
};

/// Copies one observation into its columns of the batch's arrays, or notes what is on a device.
class PutColumn : public ModelVisitor {
 public:
  PutColumn(std::vector<Stack>& stacks, int64_t column) : stacks_(stacks), column_(column) {}

  void array(const Array& x, const ModelPath& path) override {
    if (next_ >= stacks_.size()) refuse(ErrorKind::shape, "batch", "all observations must hold the same arrays");
    Stack& stack = stacks_[next_++];
    if (x.is_nothing() || x.dtype() != stack.first.dtype() || !(x.shape() == stack.first.shape())) {
      refuse(ErrorKind::shape, "batch",
             "all observations must have the same sizes and types; " + place(path) + " of observation " +
                 std::to_string(column_) + " differs from the first one's");
    }
    if (stack.first.node()->device != 0) return stack.there.push_back(x);
    const Node& whole = *stack.target->node();
    copy_into(
        x, static_cast<unsigned char*>(whole.data()) + static_cast<size_t>(column_ * x.count()) * size_of(whole.dtype));
  }

 private:
  static void copy_into(const Array& x, unsigned char* target) {
    if (is_scalar(*x.node())) return write_number(*x.node(), target, x.dtype());
    const Array host = on_cpu(x);
    const size_t bytes = static_cast<size_t>(x.count()) * size_of(x.dtype());
    if (bytes > 0) std::memcpy(target, host.node()->data(), bytes);
  }

  std::vector<Stack>& stacks_;
  int64_t column_;
  size_t next_ = 0;
};

}  // namespace

int64_t detail::count_observations(ModelView data, const char* op) {
  Counter counter(op);
  data.visit_with(counter);
  if (counter.count < 0) refuse(ErrorKind::argument, op, "data are arrays; there is none in what came");
  return counter.count;
}

void detail::check_observations(std::span<const int64_t> at, int64_t n) {
  for (int64_t i : at) {
    if (i < 0 || i >= n) {
      refuse(
          ErrorKind::argument, "getobs",
          "observation " + std::to_string(i) + " is out of range; there are " + std::to_string(n) + ", counted from 0");
    }
  }
}

void detail::take_observations(ModelEdit batch, std::span<const int64_t> at) {
  Take take(at);
  batch.edit_with(take);
  if (take.recorded()) eval();
}

void detail::stack_observations(ModelEdit batch, std::span<const ModelView> observations) {
  std::vector<detail::ArrayPlace<Array*>> targets;
  detail::list_arrays(batch, targets);
  std::vector<Stack> stacks;
  int device = 0;  // of any array: numbers beside it go there too
  for (const detail::ArrayPlace<Array*>& target : targets) {
    if (target.array->is_nothing())
      refuse(ErrorKind::argument, "batch", "an observation holds nothing in the place of an array");
    const Node& first = *stacks.emplace_back(Stack{target.array, *target.array, {}}).first.node();
    device = std::max<int>(device, first.device);
    if (first.device == 0)
      *target.array = fresh_leaf(first.dtype, with_last(first, first.rank, static_cast<int64_t>(observations.size())));
  }
  for (size_t i = 0; i < observations.size(); ++i) {
    PutColumn put(stacks, static_cast<int64_t>(i));
    observations[i].visit_with(put);
  }
  for (const Stack& made : stacks) {
    if (!made.there.empty()) *made.target = stack(made.there, -1);
    else if (is_scalar(*made.first.node())) *made.target = transferred(*made.target, device);
  }
  if (device != 0) eval();
}

std::vector<Array> unbatch(const Array& x) {
  const int64_t n = detail::count_observations(x, "unbatch");
  const Array host = on_cpu(x);
  const Node& whole = *host.node();
  const Shape shape(std::span<const int64_t>(whole.sizes, static_cast<size_t>(whole.rank) - 1));
  const size_t bytes = static_cast<size_t>(shape.count()) * size_of(whole.dtype);
  std::vector<Array> observations;
  for (int64_t i = 0; i < n; ++i) {
    Array one = fresh_leaf(whole.dtype, shape);
    if (bytes > 0) {
      std::memcpy(one.node()->data(), static_cast<const unsigned char*>(whole.data()) + static_cast<size_t>(i) * bytes,
                  bytes);
    }
    observations.push_back(transferred(one, x.node()->device));
  }
  return observations;
}

std::vector<int64_t> detail::natural_order(int64_t n) {
  std::vector<int64_t> order = detail::host_vector<int64_t>("DataLoader", n);
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

std::vector<int64_t> detail::shuffled_order(int64_t n, Rng& rng) {
  std::vector<int64_t> order = detail::natural_order(n);
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[rng.below(left)]);
  return order;
}

std::vector<int64_t> detail::looked_up(std::span<const int64_t> places, std::span<const int64_t> at) {
  detail::check_observations(places, static_cast<int64_t>(at.size()));
  std::vector<int64_t> found;
  found.reserve(places.size());
  for (int64_t i : places) found.push_back(at[static_cast<size_t>(i)]);
  return found;
}

void detail::rethrow_with_observation(const std::exception& error, int64_t observation) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  throw Error(ours ? ours->kind() : ErrorKind::argument,
              "getobs: observation " + std::to_string(observation) + " could not be read; " + error.what());
}

std::vector<int64_t> detail::part_starts(std::span<const double> shares, int64_t n) {
  constexpr double rounding = 1e-9;  // of shares that add up to 1
  std::vector<int64_t> starts;
  double sum = 0;
  for (double share : shares) {
    sum += share;
    if (!(share >= 0 && share <= 1 && sum <= 1 + rounding)) {
      refuse(ErrorKind::argument, "splitobs",
             "the shares of the parts must lie between 0 and 1 and their sum must not be above 1; got " +
                 number_text(share) + (share == sum ? "" : " with the sum " + number_text(sum)) +
                 "; write {.at = 0.8} for four fifths in the first part");
    }
    starts.push_back(std::min<int64_t>(std::llround(sum * static_cast<double>(n)), n));
  }
  return starts;
}

}  // namespace rosin
