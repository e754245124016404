// Rows of what moves elements, joins, cuts and makes arrays. Read first: call.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

using Sizes = std::vector<int64_t>;
using Places = std::vector<int>;

Sizes sizes_of(const Array& x) {
  const Shape shape = x.shape();
  return Sizes(shape.begin(), shape.end());
}

Array copy_of_input(Call& c) { return identity(c.array(0)); }

Array reshaped(Call& c) { return reshape(c.array(0), c.sizes(1, "shape")); }
Array like_other(Call& c) { return reshape(c.array(0), c.array(1).shape()); }
Array vector_of(Call& c) { return reshape(c.array(0), {-1}); }

Array flattened(Call& c) {
  const Array x = c.array(0);
  if (x.rank() == 0) return reshape(x, {1});
  const int last = c.dim(x, 1, "start_dim", 0), first = c.dim(x, 2, "end_dim", -1);
  Sizes sizes = sizes_of(x);
  int64_t joined = 1;
  for (int d = first; d <= last; ++d) joined *= x.size(d);
  sizes.erase(sizes.begin() + first, sizes.begin() + last + 1);
  sizes.insert(sizes.begin() + first, joined);
  return reshape(x, sizes);
}

Array unflattened(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 1, "dim", 0);
  Sizes sizes = sizes_of(x), parts = reversed(c.integers(2, "sizes"));
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  return reshape(x, sizes);
}

/// PyTorch's order of its dims.
Array permuted(const Array& x, const Sizes& order) {
  Places here;
  for (const int64_t dim : reversed(order)) here.push_back(turned(dim, x.rank()));
  return permute(x, here);
}

Array swapped(const Array& x, int a, int b) {
  Places order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (x.rank()) std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return permute(x, order);
}
Array transposed(Call& c) {
  const Array x = c.array(0);
  return swapped(x, c.dim(x, 1, "dim0", 0), c.dim(x, 2, "dim1", 0));
}
Array matrices_transposed(Call& c) { return swapped(c.array(0), 0, 1); }
Array small_transposed(Call& c) { return c.array(0).rank() < 2 ? identity(c.array(0)) : transpose(c.array(0)); }

/// Dims of x at `from` moved to `to`, in order; the others keep theirs.
Array moved(const Array& x, const Places& from, const Places& to) {
  Places order(static_cast<size_t>(x.rank()), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  for (int d = 0; d < x.rank(); ++d) {
    if (std::ranges::find(from, d) == from.end()) rest.push_back(d);
  }
  auto next = rest.begin();
  for (int& place : order) {
    if (place < 0) place = *next++;
  }
  return permute(x, order);
}
Array moved_dims(Call& c) {
  const Array x = c.array(0);
  const Places from = c.dims(x, 1, "source"), to = c.dims(x, 2, "destination");
  if (from.size() == 1 && x.rank() > 0) return movedim(x, from[0], to[0]);
  return x.rank() == 0 ? x : moved(x, from, to);
}

Array flipped(Call& c) {
  const Array x = c.array(0);
  if (c.integers(1, "dims").empty() || x.rank() == 0) return identity(x);
  return flip(x, c.dims(x, 1, "dims"));
}

Array expanded(Call& c) {
  const Array x = c.array(0);
  Sizes sizes = c.sizes(1, "shape");
  for (int d = 0; d < x.rank(); ++d) {
    if (sizes[static_cast<size_t>(d)] < 0) sizes[static_cast<size_t>(d)] = x.size(d);
  }
  return expand(x, Shape(std::span<const int64_t>(sizes)));
}

Shape common_shape(const Arrays& all) {
  Array sum = zeros_like(all[0]);
  for (const Array& x : all) sum = sum + zeros_like(x);
  return sum.shape();
}

Array squeezed(Call& c) {
  const Array x = c.array(0);
  if (!c.has(1, "dim")) return squeeze(x);
  Places dims;
  for (const int dim : x.rank() && !c.integers(1, "dim").empty() ? c.dims(x, 1, "dim") : Places()) {
    if (x.size(dim) == 1) dims.push_back(dim);
  }
  return dims.empty() ? identity(x) : squeeze(x, dims);
}
Array unsqueezed(Call& c) {
  const Array x = c.array(0);
  return unsqueeze(x, turned(c.integer(1, "dim", 0), x.rank() + 1));
}

Array at_least(const Array& x, int rank) {
  if (x.rank() >= rank) return identity(x);
  if (x.rank() == 0) return reshape(x, Sizes(static_cast<size_t>(rank), 1));
  if (rank == 2) return unsqueeze(x, -1);
  return x.rank() == 1 ? reshape(x, {1, x.count(), 1}) : unsqueeze(x, 0);
}
template <int rank> Arrays at_least_all(Call& c) {
  Arrays all = c.list(0);
  for (Array& x : all) x = at_least(x, rank);
  return all;
}

Array narrowed(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 1, "dim", 0);
  const int64_t start = c.integer(2, "start", 0), from = start < 0 ? start + x.size(dim) : start;
  return slice(x, dim, from, from + c.integer(3, "length", 0));
}
Slice range(Call& c, int start_at) {
  return slice(c.integer(start_at, "start", 0), c.integer(start_at + 1, "end", to_end),
               c.integer(start_at + 2, "step", 1));
}
std::vector<Slice> ranges_of(const Array& x, int dim, const Slice& range) {
  std::vector<Slice> ranges(static_cast<size_t>(x.rank()), slice());
  ranges[static_cast<size_t>(dim)] = range;
  return ranges;
}
Array sliced(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 1, "dim", 0);
  return index(x, ranges_of(x, dim, range(c, 2)));
}
Array selected(Call& c) {
  const Array x = c.array(0);
  return select(x, c.dim(x, 1, "dim", 0), c.integer(2, "index", 0));
}

/// What stands in the brackets, where those are numbers and ranges, or one array of places in the first dim.
Array bracketed(Call& c) {
  const Array x = c.array(0);
  const Value* const inside = c.find(1, "");
  std::vector<Slice> ranges;
  if (inside->kind == Value::Kind::list && inside->items.size() == 1 && inside->items[0].kind == Value::Kind::array) {
    const Array places = c.list(1, "")[0];
    if (places.dtype() == Bool && places.rank() != x.rank()) throw Refused("a mask of some dims");
    return places.dtype() == Bool ? masked_select(x, places) : gather(x, places, -1);
  }
  for (const Value& one : inside->kind == Value::Kind::list ? inside->items : std::vector<Value>{*inside}) {
    if (one.kind == Value::Kind::integer) {
      ranges.emplace_back(static_cast<int64_t>(one.number));
    } else if (one.kind == Value::Kind::slice) {
      const auto number = [&](size_t i, int64_t otherwise) {
        return one.items[i].kind == Value::Kind::none ? otherwise : static_cast<int64_t>(one.items[i].number);
      };
      ranges.push_back(slice(number(0, 0), number(1, to_end), number(2, 1)));
    } else {
      throw Refused("index: numbers and ranges alone");
    }
  }
  ranges.resize(static_cast<size_t>(x.rank()), slice());
  std::ranges::reverse(ranges);
  return index(x, ranges);
}

Array selection_set(Call& c) {
  const Array x = c.array(0);
  return set(x, ranges_of(x, c.dim(x, 2, "dim", 0), Slice(c.integer(3, "index", 0))), c.array(1, "src"));
}

/// The dims of PyTorch's matrices first, as rosin has them.
Array diagonal_of(const Array& x, int rows, int columns, int64_t offset) {
  return diagonal(moved(x, {columns, rows}, {0, 1}), -offset);
}
Array diagonal_of(Call& c, int at, int64_t rows, int64_t columns) {
  const Array x = c.array(0);
  const int row_dim = c.dim(x, at + 1, "dim1", rows), column_dim = c.dim(x, at + 2, "dim2", columns);
  return diagonal_of(x, row_dim, column_dim, c.integer(at, "offset", 0));
}

/// Vectors along dim 0 as diagonals of matrices in the first two dims.
Array embedded(const Array& v, int64_t k) {
  const Array mask = diagm(ones({v.size(0)}), k) > 0;
  const Array wide = pad(v, 0, 0, std::abs(k));
  return where(mask, unsqueeze(wide, k >= 0 ? 1 : 0), 0);
}
Array diagonals_embedded(Call& c) {
  const Array v = c.array(0);
  const int64_t k = c.integer(1, "offset", 0);
  const int rank = v.rank() + 1;
  const int rows = turned(c.integer(2, "dim1", -2), rank), columns = turned(c.integer(3, "dim2", -1), rank);
  return moved(embedded(v, -k), {0, 1}, {columns, rows});
}
Array diagonal_set(Call& c) {
  const Array x = c.array(0);
  const int rows = c.dim(x, 3, "dim1", 0), columns = c.dim(x, 4, "dim2", 1);
  const int64_t k = c.integer(2, "offset", 0);
  const Array front = moved(x, {columns, rows}, {0, 1});
  const auto fitted = [&](const Array& v) {
    const Array whole = embedded(v, -k);
    return index(pad(pad(whole, 0, 0, front.size(0)), 1, 0, front.size(1)),
                 {slice(0, front.size(0)), slice(0, front.size(1))});
  };
  const Array v = c.array(1, "src");
  return moved(where(fitted(ones_like(v)) > 0, fitted(v), front), {0, 1}, {columns, rows});
}
Array diagonal_either_way(Call& c) {
  const Array x = c.array(0);
  const int64_t k = c.integer(1, "diagonal", 0);
  return x.rank() == 1 ? diagm(x, -k) : diagonal(x, -k);
}

Array joined(Call& c) {
  const Arrays all = c.list(0);
  return concat(all, c.dim(all[0], 1, "dim", 0));
}
template <int rank, int dim> Array joined_at(Call& c) {
  Arrays all = c.list(0);
  for (Array& x : all) x = at_least(x, rank);
  return concat(all, turned(all[0].rank() == 1 ? 0 : dim, all[0].rank()));
}
Array column_stacked(Call& c) {
  Arrays all = c.list(0);
  for (Array& x : all) x = x.rank() < 2 ? reshape(x, {1, -1}) : x;
  return concat(all, turned(1, all[0].rank()));
}
Array stacked(Call& c) {
  const Arrays all = c.list(0);
  return stack(all, turned(c.integer(1, "dim", 0), all[0].rank() + 1));
}

Array tiled(Call& c) { return tile(c.array(0), c.sizes(1, "repeats")); }
Array tiled_dims(Call& c) {
  Sizes times = c.sizes(1, "dims");
  times.resize(std::max(times.size(), static_cast<size_t>(c.array(0).rank())), 1);
  return tile(c.array(0), times);
}
Array interleaved(Call& c) {
  Array x = c.array(0);
  if (!c.has(2, "dim")) x = reshape(x, {-1});
  const int dim = c.dim(x, 2, "dim", 0);
  c.has(-1, "output_size");
  const Array times = c.array(1, "repeats");
  if (times.count() == 1) return repeat(x, times.item<int64_t>(), dim);
  return repeat(x, times, dim);
}

Arrays cut(const Array& x, int dim, const Sizes& sizes) { return split(x, sizes, dim); }
Arrays split_of(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 2, "dim", 0);
  Sizes sizes = c.integers(1, "split_size");
  if (c.find(1, "split_size")->kind != Value::Kind::list) {
    const int64_t size = sizes[0], whole = x.size(dim);
    sizes.assign(static_cast<size_t>((whole + size - 1) / size), size);
    sizes.back() = whole - size * (static_cast<int64_t>(sizes.size()) - 1);
  }
  return cut(x, dim, sizes);
}
Arrays chunks_of(Call& c) {
  const Array x = c.array(0);
  return chunk(x, c.integer(1, "chunks", 1), c.dim(x, 2, "dim", 0));
}
Arrays parts_along(Call& c, int dim) {
  const Array x = c.array(0);
  Sizes sizes, ends;
  const Value* const value = c.find(1, "");
  const int64_t whole = x.size(dim);
  if (value->kind == Value::Kind::list || (value->kind == Value::Kind::array && c.array(1).rank() == 1)) {
    ends = value->kind == Value::Kind::list ? c.integers(1, "") : c.array(1).to_vector<int64_t>();
  } else {
    const int64_t parts = c.integer(1, "", 1);
    for (int64_t i = 1, end = 0; i < parts; ++i) ends.push_back(end += whole / parts + (i <= whole % parts ? 1 : 0));
  }
  ends.push_back(whole);
  Arrays all;
  int64_t start = 0;
  for (const int64_t end : ends) all.push_back(slice(x, dim, start, std::max(start, end))), start = end;
  return all;
}
Arrays unbound(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 1, "dim", 0);
  return unstack(x, dim);
}

Array rolled(Call& c) {
  Array x = c.array(0);
  const Sizes shifts = c.integers(1, "shifts");
  if (!c.has(2, "dims")) return reshape(roll(reshape(x, {-1}), shifts[0]), x.shape());
  const Places dims = c.dims(x, 2, "dims");
  for (size_t i = 0; i < dims.size(); ++i) x = roll(x, shifts[i], dims[i]);
  return x;
}
Array turned_by_90(Call& c) {
  const Array x = c.array(0);
  const Places dims = c.has(2, "dims") ? c.dims(x, 2, "dims") : Places{turned(0, x.rank()), turned(1, x.rank())};
  return rot90(x, c.integer(1, "k", 1), dims[0], dims[1]);
}

Arrays grids(Call& c) {
  Arrays vectors = c.list(0);
  const bool columns_first = c.text(-1, "indexing", "ij") == "xy" && vectors.size() > 1;
  for (Array& v : vectors) v = reshape(v, {-1});
  if (columns_first) std::swap(vectors[0], vectors[1]);
  std::ranges::reverse(vectors);
  Arrays all = meshgrid(vectors);
  std::ranges::reverse(all);
  if (columns_first) std::swap(all[0], all[1]);
  return all;
}
Array all_pairs(Call& c) {
  Arrays vectors = c.list(0);
  if (vectors.size() == 1) return identity(vectors[0]);
  std::ranges::reverse(vectors);
  Arrays all = meshgrid(vectors);
  std::ranges::reverse(all);
  for (Array& x : all) x = reshape(x, {-1});
  return stack(all, 0);
}

Array blocks(Call& c) {
  Arrays all = c.list(0);
  for (Array& x : all) x = at_least(x, 2);
  return block_diag(all);
}

using Widths = std::vector<std::pair<int64_t, int64_t>>;
Widths widths(Call& c) {
  const Sizes numbers = c.integers(1, "pad");
  Widths pairs;
  for (size_t i = 0; i < numbers.size(); i += 2) pairs.emplace_back(numbers[i], numbers[i + 1]);
  return pairs;
}
Array padded_with(Call& c, int value_at) {
  c.text(value_at == 3 ? 2 : -1, "mode");
  return pad(c.array(0), widths(c), c.has(value_at, "value") ? c.array(value_at, "value") : Array(0));
}
template <PadMode mode> Array padded(Call& c) {
  c.text(2, "mode");
  return pad(c.array(0), widths(c), mode);
}

/// Windows along a dim, as a new last dim of PyTorch's.
Array windows(Call& c) {
  Array x = c.array(0);
  if (x.rank() == 0) x = reshape(x, {1});
  const int dim = c.dim(x, 1, "dimension", 0);
  const int64_t size = c.integer(2, "size", 1), step = c.integer(3, "step", 1);
  const int64_t count = (x.size(dim) - size) / step + 1;
  const Array places = arange(size) + step * reshape(arange(count), {1, count});
  Array y = gather(x, places, dim);
  return c.array(0).rank() == 0 ? reshape(y, {size}) : moved(y, {dim}, {0});
}

const Table shapes(
    "movements",
    {
        {"reshape", reshaped},
        {"view", reshaped},
        {"view_copy", reshaped},
        {"reshape_as", like_other},
        {"view_as", like_other},
        {"ravel", vector_of},
        {"flatten", flattened},
        {"unflatten", unflattened},
        {"permute", [](Call& c) { return permuted(c.array(0), c.integers(1, "dims")); }},
        {"permute_copy", [](Call& c) { return permuted(c.array(0), c.integers(1, "dims")); }},
        {"transpose", transposed},
        {"transpose_copy", transposed},
        {"t", small_transposed},
        {"t_copy", small_transposed},
        {"T", [](Call& c) { return c.array(0).rank() < 2 ? identity(c.array(0)) : transpose(c.array(0)); }},
        {"H", [](Call& c) { return c.array(0).rank() < 2 ? identity(c.array(0)) : transpose(c.array(0)); }},
        {"mT", matrices_transposed},
        {"mH", matrices_transposed},
        {"movedim", moved_dims},
        {"flip", flipped},
        {"fliplr", [](Call& c) { return flip(c.array(0), turned(1, c.array(0).rank())); }},
        {"flipud", [](Call& c) { return flip(c.array(0), -1); }},
        {"expand", expanded},
        {"expand_copy", expanded},
        {"broadcast_to", expanded},
        {"expand_as", [](Call& c) { return expand(c.array(0), c.array(1).shape()); }},
        {"broadcast_tensors",
         [](Call& c) {
           Arrays all = c.list(0);
           const Shape shape = common_shape(all);
           for (Array& x : all) x = expand(x, shape);
           return all;
         }},
        {"squeeze", squeezed},
        {"squeeze/multiple", squeezed},
        {"squeeze_copy", squeezed},
        {"unsqueeze", unsqueezed},
        {"unsqueeze_copy", unsqueezed},
        {"atleast_1d", at_least_all<1>},
        {"atleast_2d", at_least_all<2>},
        {"atleast_3d", at_least_all<3>},
        {"contiguous", copy_of_input},
        {"clone", copy_of_input},
        {"alias_copy", copy_of_input},
        {"sum_to_size",
         [](Call& c) {
           const Sizes sizes = c.sizes(1, "size");
           return sum_to(c.array(0), Shape(std::span<const int64_t>(sizes)));
         }},
    });

const Table parts(
    "movements",
    {
        {"narrow", narrowed},
        {"narrow_copy", narrowed},
        {"slice", sliced},
        {"select", selected},
        {"__getitem__", bracketed},
        {"select_scatter", selection_set},
        {"diagonal", [](Call& c) { return diagonal_of(c, 1, 0, 1); }},
        {"diagonal_copy", [](Call& c) { return diagonal_of(c, 1, 0, 1); }},
        {"linalg.diagonal", [](Call& c) { return diagonal_of(c, 1, -2, -1); }},
        {"diagonal_scatter", diagonal_set},
        {"diag", diagonal_either_way},
        {"diag_embed", diagonals_embedded},
        {"diagflat", [](Call& c) { return diagm(reshape(c.array(0), {-1}), -c.integer(1, "offset", 0)); }},
        {"trace", trace},
        {"tril", [](Call& c) { return triu(c.array(0), -c.integer(1, "diagonal", 0)); }},
        {"triu", [](Call& c) { return tril(c.array(0), -c.integer(1, "diagonal", 0)); }},
        {"cat", joined},
        {"stack", stacked},
        {"hstack", joined_at<1, 1>},
        {"vstack", joined_at<2, 0>},
        {"dstack", joined_at<3, 2>},
        {"column_stack", column_stacked},
        {"repeat", tiled},
        {"tile", tiled_dims},
        {"repeat_interleave", interleaved},
        {"split", split_of},
        {"unsafe_split", split_of},
        {"split/list_args", split_of},
        {"split_with_sizes", split_of},
        {"split_with_sizes_copy", split_of},
        {"chunk", chunks_of},
        {"unsafe_chunk", chunks_of},
        {"tensor_split", [](Call& c) { return parts_along(c, c.dim(c.array(0), 2, "dim", 0)); }},
        {"hsplit", [](Call& c) { return parts_along(c, turned(c.array(0).rank() == 1 ? 0 : 1, c.array(0).rank())); }},
        {"vsplit", [](Call& c) { return parts_along(c, turned(0, c.array(0).rank())); }},
        {"dsplit", [](Call& c) { return parts_along(c, turned(2, c.array(0).rank())); }},
        {"unbind", unbound},
        {"unbind_copy", unbound},
        {"roll", rolled},
        {"rot90", turned_by_90},
        {"meshgrid/list_of_tensors", grids},
        {"meshgrid/variadic_tensors", grids},
        {"cartesian_prod", all_pairs},
        {"block_diag", blocks},
        {"constant_pad_nd", [](Call& c) { return padded_with(c, 2); }},
        {"nn.functional.pad/constant", [](Call& c) { return padded_with(c, 3); }},
        {"nn.functional.pad/reflect", padded<PadMode::reflect>},
        {"nn.functional.pad/replicate", padded<PadMode::repeat>},
        {"nn.functional.pad/replicate_negative", padded<PadMode::repeat>},
        {"nn.functional.pad/circular", padded<PadMode::circular>},
        {"unfold", windows},
        {"unfold_copy", windows},
    });

}  // namespace
}  // namespace rosin::opinfo
