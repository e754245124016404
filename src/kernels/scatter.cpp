// Kernels of scatter, scatter_add, of other ways to combine, and the adjoint of take_along. First the result becomes
// the target (or zeros); then every item owns a block of places of one line along the dim, walks through all indices in
// their order and takes the updates of its block. So the sums of repeated indices have one order and nothing is atomic;
// the price is that an index is read as often as there are blocks. Read first: indices.hpp.
#include <algorithm>

#include <rosin/error.hpp>

#include "graph/reducer.hpp"
#include "kernels/indices.hpp"

namespace rosin::kernels {
namespace {

void require_numbers(const Value& value) {
  if (value.dtype != DType::Bool && !is_complex(value.dtype)) return;
  throw Error(ErrorKind::dtype, std::string(value.op->name) + ": not defined for elements of type " +
                                    to_string(value.dtype) + "; convert the operand with cast");
}

bool adds_up(const Op& op) {
  switch (op.scatter) {
    case Scatter::write: return false;
    case Scatter::combine: return false;
    case Scatter::add:
    case Scatter::add_along: return true;
    case Scatter::none: break;
  }
  throw_unknown(op, "the writer of kernels");
}

// What one scatter works on: target (before..., n, after...) or zeros, indices, updates (before..., m, after...), where
// m is the indices' own number (along) or their sizes.
struct Scattering {
  Scattering(const CallStep& of, LaunchList& launches)
      : step(of), list(launches), dim(static_cast<int>(of.attributes<DimAttributes>().dim)),
        along(of.value.op->scatter == Scatter::add_along), adds(adds_up(*of.value.op)), reducer(of.value.op->reducer) {
    const bool half = of.value.dtype == DType::Float16 || of.value.dtype == DType::BFloat16;
    if (adds && half) sums = list.scratch(of.view(of.node).count() * static_cast<int64_t>(sizeof(float)));
  }

  /// What the updates go into: halves are added up in Float32 and rounded once.
  Elements into(KernelWriter& writer) const {
    return sums < 0 ? Elements(writer, step, step.node) : Elements::sums(writer, step, step.node, sums);
  }
  int32_t indices() const { return step.in(along ? 0 : 1); }
  int32_t updates() const { return step.in(along ? 1 : 2); }

  const CallStep& step;
  LaunchList& list;
  int dim;
  bool along, adds;
  const Reducer* reducer;  // of scatters that combine
  int32_t sums = -1;       // scratch block
};

void write_start(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const std::vector<Term> sizes = size_terms(writer, s.step.layout, s.step.node);
  const Elements into = s.into(writer);
  std::optional<Elements> target;
  if (!s.along) target.emplace(writer, s.step, s.step.in(0), s.step.value.dtype);
  const ScalarType type = s.sums < 0 ? scalar_type(s.step.value.dtype) : ScalarType::float32;
  launch_each(s.list, writer, s.step.view(s.step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    if (target) into.copy(at, *target, at);
    else into.store(at, writer.literal(type, 0));
  });
}

void write_rounding(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const std::vector<Term> sizes = size_terms(writer, s.step.layout, s.step.node);
  const Elements out(writer, s.step, s.step.node), sums = s.into(writer);
  launch_each(s.list, writer, s.step.view(s.step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    out.copy(at, sums, at);
  });
}

// Places of a block of a line of `size`: so few that there are enough items to keep a device busy.
int64_t block_width(int64_t lines, int64_t size) {
  constexpr int64_t enough_items = 16384;
  const int64_t blocks = std::max<int64_t>(enough_items / std::max<int64_t>(lines, 1), 1);
  return std::max<int64_t>((size + blocks - 1) / blocks, 1);
}

// The coordinates of update k of a line, and of its index.
struct Update {
  std::vector<Term> at, index_at;

  Update(const Scattering& s, KernelWriter& writer, const std::vector<Term>& line, std::span<const Term> sizes, Term k)
      : at(line.begin(), line.begin() + s.dim),
        index_at(s.along ? std::vector<Term>{k} : writer.coordinates(k, sizes)) {
    at.insert(at.end(), index_at.begin(), index_at.end());
    at.insert(at.end(), line.begin() + s.dim + 1, line.end());
    if (s.along) index_at = at;
  }
};

void write_walk(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const View &view = s.step.view(s.step.node), &index_view = s.step.view(s.indices());
  const int64_t lines = count_lines(view, s.dim), size = view.sizes[s.dim], own = block_width(lines, size);
  const std::vector<Term> sizes = line_sizes(writer, view, s.dim);
  const std::vector<Term> index_sizes = size_terms(writer, s.step.layout, s.indices());
  const Elements into = s.into(writer), updates(writer, s.step, s.updates(), s.step.value.dtype);
  const Indices indices(writer, s.step, s.list, s.indices(), size);
  const Term count = writer.number(s.along ? index_view.sizes[s.dim] : index_view.count());
  const Term line_count = writer.number(lines), width = writer.number(own);
  // A dim without places has one block too: it finds that every index is bad.
  launch_each(s.list, writer, lines * std::max<int64_t>((size + own - 1) / own, 1), [&](Term i) {
    const Term block = i / line_count, first = block * width;
    const std::vector<Term> line = writer.coordinates(i - block * line_count, sizes);
    writer.loop(count, [&](Term k) {
      const Update update(s, writer, line, index_sizes, k);
      indices.at(update.index_at, true, [&](Term place) {
        writer.when(first <= place && place - first < width, [&] {
          std::vector<Term> to = line;
          to[static_cast<size_t>(s.dim)] = place;
          if (s.adds) into.store(to, into.load(to) + updates.load(update.at));
          else if (!s.reducer) into.copy(to, updates, update.at);
          else into.store(to, writer.combine(s.reducer->body, into.load(to), updates.load(update.at)));
        });
      });
    });
  });
}

}  // namespace

void write_scatter(const Layout& layout, int32_t node, LaunchList& list) {
  const CallStep step(layout, node);
  list.checks.push_back(node);
  const Scattering scatter(step, list);
  if (scatter.adds || scatter.reducer) require_numbers(step.value);
  write_start(scatter);
  write_walk(scatter);
  if (scatter.sums >= 0) write_rounding(scatter);
}

}  // namespace rosin::kernels
