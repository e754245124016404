// Operands of opaque steps in kernels; see elements.hpp.
#include "kernels/elements.hpp"

#include <algorithm>
#include <numeric>

namespace rosin::kernels {
namespace {

// A C++ number as an element; any number but 0 is true.
Term number(KernelWriter& writer, const CallStep& step, int32_t value, DType type) {
  const size_t at = scalar_index(step.view(value).root, -1);
  if (type != DType::Bool) return writer.scalar(scalar_type(type), at);
  const bool real = is_float(step.dtype(value));
  return writer.convert(writer.scalar(real ? ScalarType::float32 : ScalarType::int64, at), ScalarType::boolean);
}

bool is_number(const CallStep& step, int32_t value) {
  return step.layout.structure->graph.values[static_cast<size_t>(value)].is_scalar();
}

}  // namespace

ScalarType CallStep::index() const {
  std::vector<int32_t> values = {node};
  for (int i = 0; i < value.operands; ++i) values.push_back(value.in[i]);
  for (const int32_t of : values) {
    if (is_complex(dtype(of))) return ScalarType::int64;  // their parts are counted
  }
  return index_type(layout, values);
}

int CallStep::strip(std::initializer_list<int32_t> values, const Abilities& device) const {
  constexpr int64_t most_lanes = 8;
  int64_t lanes = most_lanes;
  for (const int32_t of : values) {
    const View& all = view(of);
    const auto bytes = static_cast<int64_t>(size_of(dtype(of)));
    if (is_number(*this, of) || is_complex(dtype(of)) || bytes > 4 || all.rank == 0 || all.strides[0] != 1) return 1;
    lanes = std::min(lanes, device.vector_bytes / bytes);
    const auto fits = [&] {
      bool good = all.offset % lanes == 0 && all.sizes[0] % lanes == 0;
      for (int d = 1; d < all.rank; ++d) good = good && (all.sizes[d] == 1 || all.strides[d] % lanes == 0);
      return good && lanes * bytes >= 4;
    };
    while (lanes > 1 && !fits()) lanes /= 2;
  }
  return static_cast<int>(std::max<int64_t>(lanes, 1));
}

std::vector<Term> in_strips(KernelWriter& writer, std::vector<Term> sizes, int64_t first_size, int strip) {
  if (strip > 1) sizes[0] = writer.number(first_size / strip);
  return sizes;
}

std::vector<Term> strip_begin(std::vector<Term> at, int strip) {
  if (strip > 1) at[0] = at[0] * strip;
  return at;
}

Elements::Elements(KernelWriter& writer, const CallStep& step, int32_t value)
    : Elements(writer, step, value, step.dtype(value)) {}

Elements::Elements(KernelWriter& writer, const CallStep& step, int32_t value, DType type)
    : parts_(parts_of(type)), writer_(&writer) {
  if (is_number(step, value)) {
    number_ = number(writer, step, value, type);
  } else {
    array_.emplace(writer, step.layout, value, part_type(type), LaunchBuffer{step.view(value).root, -1});
  }
}

Elements Elements::sums(KernelWriter& writer, const CallStep& step, int32_t value, int32_t scratch) {
  return Elements(ArrayTerm(writer, step.layout, value, DType::Float32, LaunchBuffer{-1, scratch}), writer);
}

Term Elements::place(std::span<const Term> at, int part) const {
  const Term element = array_->at(at);
  return parts_ == 1 ? element : element * parts_ + part;
}

Term Elements::load(std::span<const Term> at, int part) const {
  if (array_) return writer_->load(array_->buffer(), place(at, part));
  return part == 0 ? number_ : like(number_, 0);
}

void Elements::store(std::span<const Term> at, Term element, int part) const {
  writer_->store(array_->buffer(), place(at, part), element);
}

std::vector<Term> Elements::load_strip(std::span<const Term> at, int lanes, int vector_bytes) const {
  if (lanes == 1) return {load(at)};
  return writer_->load_vector(array_->buffer(), place(at, 0), lanes, vector_bytes);
}

void Elements::store_strip(std::span<const Term> at, std::span<const Term> elements, int vector_bytes) const {
  if (elements.size() == 1) store(at, elements[0]);
  else writer_->store_vector(array_->buffer(), place(at, 0), elements, vector_bytes);
}

void Elements::copy_strip(std::span<const Term> at, const Elements& from, std::span<const Term> from_at, int lanes,
                          int vector_bytes) const {
  if (lanes == 1) copy(at, from, from_at);
  else store_strip(at, from.load_strip(from_at, lanes, vector_bytes), vector_bytes);
}

void Elements::copy(std::span<const Term> at, const Elements& from, std::span<const Term> from_at) const {
  for (int part = 0; part < parts_; ++part) store(at, from.load(from_at, part), part);
}

Term ordered(Term element, DType type) {
  return type == DType::Bool ? element.writer->convert(element, ScalarType::int32) : element;
}

Term is_below(Term x, Term y) {
  const Term less = x < y;
  const bool real = x.type == ScalarType::float32 || x.type == ScalarType::float64;
  return real ? less || (y != y && x == x) : less;
}

std::vector<size_t> memory_order(const View& view) {
  std::vector<size_t> order(view.rank);
  std::iota(order.begin(), order.end(), 0);
  const size_t channels = view.rank < 3 ? 0 : order.size() - 2;
  if (channels > 0 && view.strides[channels] == 1 && view.strides[0] != 1) {
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(channels), order.end() - 1);
  }
  return order;
}

int64_t count_lines(const View& view, int dim) {
  int64_t lines = 1;
  for (int d = 0; d < view.rank; ++d) lines *= d == dim ? 1 : view.sizes[d];
  return lines;
}

std::vector<Term> line_sizes(KernelWriter& writer, const View& view, int dim) {
  std::vector<Term> sizes;
  for (int d = 0; d < view.rank; ++d) {
    sizes.push_back(d == dim || view.sizes[d] == 1 ? writer.index(1) : writer.number(view.sizes[d]));
  }
  return sizes;
}

}  // namespace rosin::kernels
