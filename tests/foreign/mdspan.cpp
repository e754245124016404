// Arrays as std::mdspan, for standard libraries that have it; see ../foreign_headers_test.py.
#include <cstdio>

#include <mdspan>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/mdspan.hpp>

template <class M>
concept IsTaken = rosin::MdspanLike<M>;
static_assert(IsTaken<std::mdspan<float, std::dextents<int, 3>>>);
static_assert(IsTaken<std::mdspan<const double, std::extents<size_t, 4, std::dynamic_extent>, std::layout_left>>);
static_assert(IsTaken<std::mdspan<int, std::dextents<int64_t, 2>, std::layout_stride>>);
static_assert(!IsTaken<std::mdspan<const char*, std::dextents<int, 1>>>);

int main() {
  const rosin::Array x = rosin::tril(rosin::ones({2, 3}), 1);
  const auto span = rosin::as_mdspan<float, 2>(x);
  std::printf("%d %d:", static_cast<int>(span.extent(0)), static_cast<int>(span.extent(1)));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) std::printf(" %g", static_cast<double>(span[i, j]));
  }
  std::printf("\n");
}
