// Movements that copy: pad, concat, and views made contiguous. The result is cut into ranges of elements; a row of it
// (dim 0, or the whole block up to the joined dim where all operands are contiguous) is put together from segments.
// Views whose elements stand in another order of dims are copied by blocks, alone or put together with others.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/row_copy.hpp"
#include "base/strided_copy.hpp"
#include "cpu/dispatch.hpp"
#include "plan/image_order.hpp"

namespace rosin::cpu {
namespace {

constexpr int fill = -1;

// `length` elements of the joined dim from `start` on: of an operand, or of the fill value.
struct Segment {
  int operand = fill;
  int64_t length = 0;
  int64_t start = 0;
};

struct Source {
  int64_t offset = 0;
  int64_t strides[Shape::max_rank] = {};
};

// How the result is put together: sizes of the result, the dim along which segments follow each other.
struct Plan {
  int rank = 1;
  int64_t sizes[Shape::max_rank] = {1};
  int dim = 0;
  std::vector<Segment> segments;
  std::vector<Source> sources;
  bool short_rows = false;  // of two dims, joined along the first, along which operands are contiguous

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }
};

template <class T> class CopyCall final : public Call {
 public:
  // `number_type`: of the fill value where that is a C++ number.
  CopyCall(Plan plan, DType type, DType number_type)
      : plan_(std::move(plan)), type_(type), number_type_(number_type), pieces_(Pieces::of(plan_.count(), 1)) {}

  int64_t chunks() const override { return pieces_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    T* out = static_cast<T*>(data.result);
    const T value = has_fill() ? fill_value(data) : T{};
    const int64_t row = plan_.sizes[0], first = pieces_.first(chunk), end = pieces_.last(chunk);
    int64_t index[Shape::max_rank] = {first % row};
    for (int64_t d = 1, rest = first / row; d < plan_.rank; rest /= plan_.sizes[d++]) index[d] = rest % plan_.sizes[d];
    for (int64_t at = first; at < end;) {
      if (const int64_t rows = (end - at) / row; plan_.short_rows && index[0] == 0 && rows > 1) {
        put_rows(out + at, index[1], rows, data, value);
        at += rows * row;
        index[1] += rows;
        continue;
      }
      const int64_t length = std::min(row - index[0], end - at);
      copy_row(out + at, index, length, data, value);
      at += length;
      next_row(index);
    }
  }

 private:
  bool has_fill() const {
    return std::any_of(plan_.segments.begin(), plan_.segments.end(),
                       [](const Segment& s) { return s.operand == fill; });
  }

  T fill_value(const CallData& data) const {
    T value{};
    if (data.operands[1] != nullptr) {
      std::memcpy(&value, data.operands[1], sizeof(T));
    } else {
      const bool real = is_float(number_type_);
      store_number(&value, type_, real ? data.scalars[1] : static_cast<double>(data.integers[1]),
                   real ? static_cast<int64_t>(data.scalars[1]) : data.integers[1]);
    }
    return value;
  }

  static void store_number(T* value, DType type, double real, int64_t integer) {
    if (type == DType::Bool) {
      const bool truth = integer != 0 || real != 0;
      std::memcpy(value, &truth, 1);
    } else if (!is_complex(type)) {
      with_number("pad", type, [&]<class E>(std::type_identity<E>) {
        if constexpr (sizeof(E) == sizeof(T)) {
          E element;
          if constexpr (std::is_integral_v<E>) {
            element = static_cast<E>(integer);
          } else {
            element = static_cast<E>(static_cast<Computed<E>>(real));
          }
          std::memcpy(value, &element, sizeof(E));
        }
      });
    } else if constexpr (sizeof(T) >= 8) {
      std::conditional_t<sizeof(T) == 8, float, double> parts[2] = {};
      parts[0] = static_cast<std::remove_reference_t<decltype(parts[0])>>(real);
      std::memcpy(value, parts, sizeof(T));
    }
  }

  void next_row(int64_t* index) const {
    index[0] = 0;
    for (int d = 1; d < plan_.rank && ++index[d] == plan_.sizes[d]; ++d) index[d] = 0;
  }

  // Whether rows are a word of each operand, which stand behind one another there.
  bool takes_words() const {
    constexpr int64_t most_bytes = 256;
    if (plan_.sizes[0] * static_cast<int64_t>(sizeof(T)) > most_bytes) return false;
    return std::all_of(plan_.segments.begin(), plan_.segments.end(), [&](const Segment& s) {
      return s.operand != fill && s.length == 1 && plan_.sources[static_cast<size_t>(s.operand)].strides[1] == 1;
    });
  }

  // Some of each operand side by side, which the cache holds, and turned over.
  void put_words(T* out, int64_t first, int64_t rows, const CallData& data) const {
    constexpr auto held = static_cast<int64_t>(16384 / sizeof(T));
    alignas(64) T words[static_cast<size_t>(held)];
    const int64_t row = plan_.sizes[0], most = held / row;
    for (int64_t r = 0, some = 0; r < rows; r += some) {
      some = std::min(most, rows - r);
      for (int64_t i = 0; i < row; ++i) {
        const Segment& segment = plan_.segments[static_cast<size_t>(i)];
        const T* const from = static_cast<const T*>(data.operand(segment.operand));
        const int64_t offset = plan_.sources[static_cast<size_t>(segment.operand)].offset;
        std::memcpy(words + i * most, from + offset + first + r, static_cast<size_t>(some) * sizeof(T));
      }
      BlockCopy({2, {row, some}, {1, row}, {most, 1}}, sizeof(T), 0, 1).run_here(out + r * row, words);
    }
  }

  // Whole rows, segment by segment.
  void put_rows(T* out, int64_t first, int64_t rows, const CallData& data, T value) const {
    if (takes_words()) return put_words(out, first, rows, data);
    const int64_t row = plan_.sizes[0];
    for (const Segment& segment : plan_.segments) {
      T* to = out + segment.start;
      const int64_t length = segment.length;
      if (segment.operand == fill) {
        constexpr int64_t few = 4;
        for (int64_t r = 0; length > few && r < rows; ++r) std::fill_n(to + r * row, length, value);
        for (int64_t i = 0; length <= few && i < length; ++i) {
          for (int64_t r = 0; r < rows; ++r) to[r * row + i] = value;
        }
        continue;
      }
      const Source& source = plan_.sources[static_cast<size_t>(segment.operand)];
      const T* from = static_cast<const T*>(data.operand(segment.operand)) + source.offset + first * source.strides[1];
      constexpr auto size = static_cast<int64_t>(sizeof(T));
      copy_rows({rows, static_cast<size_t>(length * size), row * size, source.strides[1] * size}, to, from);
    }
  }

  // `length` elements of a row, from `index` on.
  void copy_row(T* out, const int64_t* index, int64_t length, const CallData& data, T value) const {
    const int64_t place = index[plan_.dim];
    auto segment = segment_at(place);
    if (plan_.dim > 0) return copy_part(out, *segment, index, index[0], place - segment->start, length, data, value);
    for (const int64_t end = place + length; segment != plan_.segments.end() && segment->start < end; ++segment) {
      const int64_t first = std::max(segment->start, place), last = std::min(segment->start + segment->length, end);
      if (first >= last) continue;
      copy_part(out + (first - place), *segment, index, first - segment->start, 0, last - first, data, value);
    }
  }

  // The segment of element `at` of the joined dim: the last one that starts there or before.
  std::vector<Segment>::const_iterator segment_at(int64_t at) const {
    if (at == 0) return plan_.segments.begin();
    const auto starts_after = [](int64_t place, const Segment& segment) { return place < segment.start; };
    return std::upper_bound(plan_.segments.begin(), plan_.segments.end(), at, starts_after) - 1;
  }

  // `first`: in the segment where rows are joined, in the row where another dim is; `joined`: in that one.
  void copy_part(T* out, const Segment& segment, const int64_t* index, int64_t first, int64_t joined, int64_t length,
                 const CallData& data, T value) const {
    if (segment.operand == fill) {
      std::fill(out, out + length, value);
      return;
    }
    const Source& source = plan_.sources[static_cast<size_t>(segment.operand)];
    int64_t offset = source.offset + first * source.strides[0];
    for (int d = 1; d < plan_.rank; ++d) offset += (d == plan_.dim ? joined : index[d]) * source.strides[d];
    copy_run(out, static_cast<const T*>(data.operand(segment.operand)) + offset, source.strides[0], length);
  }

  Plan plan_;
  DType type_, number_type_;
  Pieces pieces_;
};

Source source_of(const CallArray& operand) {
  Source source;
  std::copy(operand.strides, operand.strides + Shape::max_rank, source.strides);
  return source;
}

// The operand as the view that the movement makes of it.
Source viewed(const CallSpec& spec) {
  const CallArray& x = spec.operands[0];
  Source source;
  switch (spec.op->movement) {
    case Movement::broadcast:
      for (int d = 0; d < x.shape.rank(); ++d)
        source.strides[d] = x.shape[d] == spec.result.shape[d] ? x.strides[d] : 0;
      break;
    case Movement::permute: {
      const auto attributes = spec.attributes.as<PermuteAttributes>();
      for (int d = 0; d < x.shape.rank(); ++d) source.strides[d] = x.strides[attributes.from[d]];
      break;
    }
    case Movement::slice: {
      const auto attributes = spec.attributes.as<SliceAttributes>();
      source = source_of(x);
      source.offset = attributes.start * x.strides[attributes.dim];
      source.strides[attributes.dim] *= attributes.step;
      break;
    }
    default: source = source_of(x);
  }
  return source;
}

// All operands contiguous: what is before the joined dim, and that dim, are one row.
void merge_rows(Plan& plan) {
  int64_t inner = 1, outer = 1;
  for (int d = 0; d < plan.rank; ++d) (d < plan.dim ? inner : outer) *= d == plan.dim ? 1 : plan.sizes[d];
  const int64_t row = inner * plan.sizes[plan.dim];
  for (Segment& segment : plan.segments) {
    segment.length *= inner;
    if (segment.operand == fill) continue;
    Source& source = plan.sources[static_cast<size_t>(segment.operand)];
    source = Source{};
    source.strides[0] = 1;
    source.strides[1] = segment.length;
  }
  plan.rank = 2;
  plan.sizes[0] = row;
  plan.sizes[1] = outer;
  plan.dim = 0;
  plan.short_rows = row <= 256;
}

// Operands whose rows are contiguous and lie evenly apart, joined along these: two dims.
void merge_outer(Plan& plan) {
  const auto is_even = [&](const Source& source) {
    bool even = source.strides[0] == 1;
    for (int d = 2; d < plan.rank; ++d) even = even && source.strides[d] == source.strides[d - 1] * plan.sizes[d - 1];
    return even;
  };
  if (plan.dim > 0 || plan.rank < 2 || !std::all_of(plan.sources.begin(), plan.sources.end(), is_even)) return;
  for (int d = 2; d < plan.rank; ++d) plan.sizes[1] *= plan.sizes[d];
  plan.rank = 2;
  plan.short_rows = plan.sizes[0] <= 256;
}

Plan result_plan(const Shape& shape) {
  Plan plan;
  plan.rank = std::max(1, shape.rank());
  std::copy(shape.begin(), shape.end(), plan.sizes);
  return plan;
}

void join(Plan& plan, const CallSpec& spec) {
  bool contiguous = true;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const CallArray& operand = spec.operands[i];
    plan.segments.push_back({static_cast<int>(i), operand.shape[plan.dim]});
    plan.sources.push_back(source_of(operand));
    contiguous = contiguous && operand.contiguous();
  }
  if (contiguous) merge_rows(plan);
  else merge_outer(plan);
}

CallArray in_cwhn(const CallArray& image) {
  CallArray array = image;
  const int rank = image.shape.rank();
  std::vector<int64_t> sizes;
  for (int i = 0; i < rank; ++i) {
    const int d = plan::channels_first_dim(rank, i);
    sizes.push_back(image.shape[d]);
    array.strides[i] = image.strides[d];
  }
  array.shape = Shape(std::span<const int64_t>(sizes));
  return array;
}

// The same concat with dims in the order of CWHN, in which its result then is contiguous.
CallSpec joined_in_cwhn(const CallSpec& given) {
  CallSpec spec = given;
  const int rank = given.result.shape.rank();
  auto joined = given.attributes.as<DimAttributes>();
  int64_t at = 0;
  while (plan::channels_first_dim(rank, static_cast<int>(at)) != joined.dim) ++at;
  joined.dim = at;
  spec.attributes = Attributes::of(joined);
  spec.result = in_cwhn(given.result);
  for (CallArray& operand : spec.operands) operand = in_cwhn(operand);
  return spec;
}

Plan make_plan(const CallSpec& spec) {
  Plan plan = result_plan(spec.result.shape);
  if (spec.op->movement == Movement::concat) {
    plan.dim = static_cast<int>(spec.attributes.as<DimAttributes>().dim);
    join(plan, spec);
  } else if (spec.op->movement == Movement::pad) {
    const auto attributes = spec.attributes.as<PadAttributes>();
    plan.dim = static_cast<int>(attributes.dim);
    const CallArray& x = spec.operands[0];
    plan.segments = {{fill, attributes.low}, {0, x.shape[plan.dim]}, {fill, attributes.high}};
    plan.sources = {source_of(x)};
    if (x.contiguous()) merge_rows(plan);
    else merge_outer(plan);
  } else {
    if (spec.op->movement == Movement::reshape) {
      if (!spec.operands[0].contiguous()) plan = result_plan(spec.operands[0].shape);  // elements keep their order
    }
    plan.segments = {{0, plan.sizes[0]}};
    plan.sources = {spec.op->movement == Movement::reshape && spec.operands[0].contiguous() ? source_of(spec.result)
                                                                                            : viewed(spec)};
  }
  return plan;
}

// A view of one operand.
class ViewCall final : public Call {
 public:
  ViewCall(const BlockCopy& copy, int operand, size_t offset) : copy_(copy), operand_(operand), offset_(offset) {}

  int64_t chunks() const override { return copy_.chunks(); }
  void run(int64_t chunk, const CallData& data) override {
    copy_.run(chunk, data.result, static_cast<const unsigned char*>(data.operand(operand_)) + offset_);
  }
  bool may_fail() const override { return false; }

 private:
  BlockCopy copy_;
  int operand_;
  size_t offset_;  // bytes
};

// Null of several parts, and where rows of the source have gaps.
std::unique_ptr<Call> prepare_view(const Plan& plan, DType type) {
  if (plan.segments.size() != 1 || plan.segments[0].operand == fill) return nullptr;
  const int operand = plan.segments[0].operand;
  const Source& source = plan.sources[static_cast<size_t>(operand)];
  const std::optional<BlockCopy> copy = view_copy(plan.rank, plan.sizes, source.strides, size_of(type));
  if (!copy) return nullptr;
  return std::make_unique<ViewCall>(*copy, operand, static_cast<size_t>(source.offset) * size_of(type));
}

// Once all lengths are known. Segments of no length are left out.
Plan with_starts(Plan plan) {
  std::erase_if(plan.segments, [](const Segment& segment) { return segment.length == 0; });
  int64_t start = 0;
  for (Segment& segment : plan.segments) {
    segment.start = start;
    start += segment.length;
  }
  return plan;
}

// Arrays put together of which some stand in another order of dims than the result, the others in the result's.
class JoinedTurns final : public Call {
 public:
  // Of the next operand, to the result's bytes from `at` on.
  void add(const BlockCopy& copy, int64_t at) {
    parts_.push_back({copy, {}, at, chunks_});
    chunks_ += copy.chunks();
  }
  void add(const RowCopy& rows, int64_t at) {
    constexpr int64_t chunk_bytes = 1 << 18;  // worth a thread
    const int64_t together = std::max<int64_t>(1, chunk_bytes / std::max<int64_t>(1, rows.from_step));
    parts_.push_back({std::nullopt, rows, at, chunks_, together});
    chunks_ += (rows.rows + together - 1) / together;
  }

  int64_t chunks() const override { return chunks_; }
  void run(int64_t chunk, const CallData& data) override {
    size_t i = parts_.size() - 1;
    while (parts_[i].first_chunk > chunk) --i;
    const Part& part = parts_[i];
    auto* const to = static_cast<unsigned char*>(data.result) + part.at;
    const void* const from = data.operand(static_cast<int>(i));
    if (part.turn) part.turn->run(chunk - part.first_chunk, to, from);
    else copy_some(part, (chunk - part.first_chunk) * part.together, to, from);
  }
  bool may_fail() const override { return false; }

 private:
  struct Part {
    std::optional<BlockCopy> turn;
    RowCopy rows;
    int64_t at, first_chunk;
    int64_t together = 1;  // rows of a chunk
  };

  static void copy_some(const Part& part, int64_t first, unsigned char* to, const void* from) {
    RowCopy some = part.rows;
    some.rows = std::min(part.together, some.rows - first);
    copy_rows(some, to + first * some.to_step, static_cast<const unsigned char*>(from) + first * some.from_step);
  }

  std::vector<Part> parts_;
  int64_t chunks_ = 0;
};

// The operand of a concat where its elements go in a contiguous result.
StridedCopy joined_copy(const CallArray& operand, const Shape& result) {
  StridedCopy copy;
  copy.rank = operand.shape.rank();
  std::copy(operand.shape.begin(), operand.shape.end(), copy.sizes);
  std::copy_n(operand.strides, copy.rank, copy.source);
  int64_t stride = 1;
  for (int d = 0; d < copy.rank; ++d) {
    copy.target[d] = stride;
    stride *= result[d];
  }
  return copy;
}

// Of a concat whose result is contiguous. Null where no operand is turned, or one is neither turned nor contiguous.
std::unique_ptr<Call> prepare_joined_turns(const CallSpec& spec) {
  const auto width = static_cast<int64_t>(size_of(spec.result.type));
  const auto dim = static_cast<int>(spec.attributes.as<DimAttributes>().dim);
  auto call = std::make_unique<JoinedTurns>();
  bool turns = false;
  int64_t start = 0;  // along the joined dim
  for (const CallArray& operand : spec.operands) {
    const StridedCopy copy = joined_copy(operand, spec.result.shape);
    const std::optional<BlockCopy> turn = turned_copy(copy, static_cast<size_t>(width));
    const int64_t at = start * copy.target[dim] * width, row = operand.shape[dim] * copy.target[dim];
    if (turn) {
      call->add(*turn, at);
    } else if (operand.contiguous()) {
      const int64_t rows = row == 0 ? 0 : operand.shape.count() / row;
      call->add(RowCopy{rows, static_cast<size_t>(row * width), spec.result.shape[dim] * copy.target[dim] * width,
                        row * width},
                at);
    } else {
      return nullptr;
    }
    turns = turns || turn;
    start += operand.shape[dim];
  }
  if (!turns) return nullptr;
  return call;
}

}  // namespace

std::unique_ptr<Call> prepare_movement(const CallSpec& given) {
  const bool joins = given.op->movement == Movement::concat;
  const CallSpec spec = joins && !given.result.contiguous() ? joined_in_cwhn(given) : given;
  if (auto turns = joins ? prepare_joined_turns(spec) : nullptr) return turns;
  Plan plan = with_starts(make_plan(spec));
  if (auto view = prepare_view(plan, spec.result.type)) return view;
  return with_bytes_of(spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    const DType number_type = spec.operands.size() > 1 ? spec.operands[1].type : spec.result.type;
    return std::make_unique<CopyCall<T>>(std::move(plan), spec.result.type, number_type);
  });
}

std::unique_ptr<Call> prepare_copy(const CallArray& x, const Shape& shape) {
  Plan plan = result_plan(shape);
  Source source;
  for (int d = 0; d < x.shape.rank(); ++d) source.strides[d] = x.shape[d] == 1 ? 0 : x.strides[d];
  plan.segments = {{0, plan.sizes[0]}};
  plan.sources = {source};
  if (auto view = prepare_view(plan, x.type)) return view;
  return with_bytes_of(x.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    return std::make_unique<CopyCall<T>>(std::move(plan), x.type, x.type);
  });
}

}  // namespace rosin::cpu
