// Matmul: a group computes a square of the result from parts of both operands in shared memory; where the result is
// small and k long, a group adds up one element.
// Read first: matmul.hpp. Read next: matrix_units.cpp (devices that multiply small matrices), convolution.cpp.
#include "kernels/matmul.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <rosin/error.hpp>

#include "kernels/sum.hpp"

namespace rosin::kernels {
namespace {

constexpr int side = 16;  // a group is side x side items, and as many steps of k are in shared memory
static_assert(side * side == items_of_group);

/// The coordinates of an element in matrix `batch` of the batch.
std::vector<Term> coordinates(Term row, Term column, std::span<const Term> batch) {
  std::vector<Term> all{row, column};
  all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

/// A part of one operand in shared memory: `length` of its rows (a) or columns (b), `side` steps of k. Element (i, l)
/// stands at l * (length + 1) + i, so that neither way of filling it meets itself in a memory bank.
class Part {
 public:
  /// (Both operands may be one value.)
  Part(KernelWriter& writer, const Product& product, bool is_a, int length)
      : w_(writer), array_(writer, product.layout, is_a ? product.a : product.b), is_a_(is_a), length_(length),
        shared_(writer.shared(product.compute(), side * (length + 1))) {
    const View& view = product.view(is_a ? product.a : product.b);
    along_k_ = view.strides[is_a_ ? 1 : 0] == 1 && view.strides[is_a_ ? 0 : 1] != 1;
  }

  /// Fills it from row (column) `first_i` and step `first_l` on, with zeros beyond the ends.
  void fill(Term item, Term first_i, Term end_i, Term first_l, Term end_l, std::span<const Term> batch) {
    for (int r = 0; r < length_ / side; ++r) {
      const Term number = item + r * items_of_group;
      const int fast = along_k_ ? side : length_;
      const Term slow = number / fast, rest = number - slow * fast;
      const Term i = along_k_ ? slow : rest, l = along_k_ ? rest : slow;
      const Term row = first_i + i, step = first_l + l;
      const Term value = w_.variable(w_.literal(w_.type_of_buffer(array_.buffer()), 0));
      w_.when(row < end_i && step < end_l, [&] {
        w_.assign(value, array_.load(is_a_ ? coordinates(row, step, batch) : coordinates(step, row, batch)));
      });
      w_.shared_store(shared_, place(i, l), value);
    }
  }
  Term at(Term i, Term l) const { return w_.shared_load(shared_, place(i, l)); }

 private:
  Term place(Term i, Term l) const { return l * (length_ + 1) + i; }

  KernelWriter& w_;
  ArrayTerm array_;
  bool is_a_, along_k_;
  int length_, shared_;
};

/// Each item computes rows x, x + side, ... and columns y, y + side, ... of its group's square.
Launch tiled(const Product& product, int each) {
  KernelWriter w("matmul", items_of_group, product.index());
  const int length = side * each;
  Part a(w, product, true, length), b(w, product, false, length);
  const ArrayTerm c(w, product.layout, product.c);
  const Term m = w.number(product.m()), n = w.number(product.n()), k = w.number(product.k());
  const std::vector<Term> square = part_of_group(w, product, length, length);
  const std::span<const Term> batch = std::span(square).subspan(2);
  const Term item = w.item(), y = item / side, x = item - y * side;
  const Term row = square[0] * length, column = square[1] * length;

  std::vector<Term> sums(static_cast<size_t>(each * each));
  for (Term& sum : sums) sum = w.variable(w.literal(product.compute(), 0));
  w.loop(w.index(0), k, w.index(side), [&](Term first) {
    a.fill(item, row, m, first, k, batch);
    b.fill(item, column, n, first, k, batch);
    w.barrier();
    w.loop(w.index(side), [&](Term l) {
      std::vector<Term> from_a, from_b;
      for (int i = 0; i < each; ++i) from_a.push_back(a.at(x + i * side, l));
      for (int j = 0; j < each; ++j) from_b.push_back(b.at(y + j * side, l));
      for (int i = 0; i < each * each; ++i) {
        add_product(sums[static_cast<size_t>(i)], from_a[static_cast<size_t>(i % each)],
                    from_b[static_cast<size_t>(i / each)]);
      }
    });
    w.barrier();
  });
  for (int i = 0; i < each * each; ++i) {
    const Term at_row = row + x + i % each * side, at_column = column + y + i / each * side;
    w.when(at_row < m && at_column < n,
           [&] { c.store(coordinates(at_row, at_column, batch), sums[static_cast<size_t>(i)]); });
  }
  return w.finish(product.parts(length, length));
}

/// One group an element.
Launch summed(const Product& product) {
  KernelWriter w("matmul_long", items_of_group, product.index());
  const ArrayTerm a(w, product.layout, product.a), b(w, product.layout, product.b), c(w, product.layout, product.c);
  const Term k = w.number(product.k());
  const std::vector<Term> at = w.coordinates(w.group(0), size_terms(w, product.layout, product.c));
  const std::span<const Term> batch = std::span(at).subspan(2);
  const Term sum = w.variable(w.literal(product.compute(), 0));
  w.loop(w.item(), k, w.index(items_of_group),
         [&](Term l) { add_product(sum, a.load(coordinates(at[0], l, batch)), b.load(coordinates(l, at[1], batch))); });
  sum_over_group(w, {&sum, 1});
  w.when(w.item() == 0, [&] { c.store(at, sum); });
  return w.finish(product.view(product.c).count());
}

/// How many elements an item computes along each side: many as long as there are groups enough to fill a device.
int elements_of_item(const Product& product) {
  const int64_t shorter = std::min(product.m(), product.n());
  for (const int each : {4, 2}) {
    const bool fits = each == 2 || bytes_of(product.compute()) == 4;  // shared memory: 16384 bytes at most
    if (fits && shorter > side * each / 2 && product.parts(side * each, side * each) >= groups_of_device) return each;
  }
  return 1;
}

}  // namespace

void write_matmul(const Layout& layout, int32_t node, LaunchList& list) {
  const Product product(layout, node);
  if (is_complex(product.dtype())) {
    throw Error(ErrorKind::dtype, std::string("matmul: devices multiply integers and floats; got ") +
                                      to_string(product.dtype()) + "; move the operands to the CPU");
  }
  const int64_t count = product.view(node).count();
  if (count == 0) return;
  constexpr int64_t few = 1024, long_sum = 1024;
  if (count <= few && product.k() >= long_sum) return list.launches.push_back(summed(product));
  std::optional<Launch> by_units = by_matrix_units(product, list.device);
  list.launches.push_back(by_units ? *std::move(by_units) : tiled(product, elements_of_item(product)));
}

}  // namespace rosin::kernels
