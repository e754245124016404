// Rows of products, of linear algebra and of Fourier transforms. Read first: call.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Array matrix(Call& c, int at, const char* name = "") { return mt(c.array(at, name)); }

/// PyTorch's product: a b of arrays whose dims are reversed is b a here.
Array product(const Array& a, const Array& b) {
  if (a.rank() == 1 && b.rank() == 1) return dot(a, b);
  if (b.rank() == 1) return squeeze(matmul(reshape(b, {1, -1}), a), 0);
  if (a.rank() == 1) return squeeze(matmul(b, reshape(a, {-1, 1})), 1);
  return matmul(b, a);
}
Array multiplied(Call& c) { return product(c.array(0), c.array(1, "other")); }

Array added(Call& c, const Array& term) {
  const double beta = c.real(-1, "beta", 1);
  const Array start = beta == 0 ? zeros_like(c.array(0)) : beta * c.array(0);
  return start + c.real(-1, "alpha", 1) * term;
}
Array added_product(Call& c) { return added(c, product(c.array(1), c.array(2))); }
Array added_batches(Call& c) {
  const Array products = product(c.array(1), c.array(2));
  return added(c, squeeze(sum(products, 2), 2));
}
Array outer_product(const Array& a, const Array& b) { return outer(b, a); }

Array inner(Call& c) {
  const Array a = c.array(0), b = c.array(1);
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  return tensordot(b, a, std::vector<int>{0}, std::vector<int>{0});
}

Array contracted(Call& c) {
  const Array a = c.array(0), b = c.array(1);
  const Value* const dims = c.find(2, "dims");
  std::vector<int> of_a, of_b;
  if (dims && dims->kind == Value::Kind::list) {
    for (const Value& dim : dims->items[0].items) of_a.push_back(turned(static_cast<int64_t>(dim.number), a.rank()));
    for (const Value& dim : dims->items[1].items) of_b.push_back(turned(static_cast<int64_t>(dim.number), b.rank()));
  } else {
    const int count = static_cast<int>(c.integer(2, "dims", 2));
    for (int i = 0; i < count; ++i) of_a.push_back(turned(i - count, a.rank())), of_b.push_back(turned(i, b.rank()));
  }
  return tensordot(b, a, of_b, of_a);
}

/// The equation with the dims of each array the other way round.
std::string turned_equation(const std::string& text) {
  std::string all, one;
  const auto flush = [&] {
    std::ranges::reverse(one);
    all += one;
    one.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == ',') flush(), all += ',';
    else if (text[i] == '-') flush(), all += "->", ++i;
    else one += text[i];
  }
  flush();
  if (all.find("->") != std::string::npos) return all;
  std::string letters;
  for (const char letter : all) {
    if (std::isalpha(static_cast<unsigned char>(letter)) && std::ranges::count(all, letter) == 1) letters += letter;
  }
  std::ranges::sort(letters, std::greater<>());
  return all + "->" + letters + (all.find("...") != std::string::npos ? "..." : "");
}
Array summed_by_name(Call& c) { return einsum(turned_equation(c.text(1, "")), c.list(0)); }

Array kronecker(Call& c) {
  Array a = c.array(0), b = c.array(1);
  if (a.rank() > 2 || b.rank() > 2) throw Refused("kron: matrices alone");
  const int rank = std::max(a.rank(), b.rank());
  a = reshape(a, {a.rank() > 0 ? a.size(0) : 1, -1});
  b = reshape(b, {b.rank() > 0 ? b.size(0) : 1, -1});
  const Array y = kron(a, b);
  return rank == 2 ? y : rank == 1 ? reshape(y, {-1}) : reshape(y, Shape());
}

Array cross_product(Call& c) {
  const Array a = c.array(0);
  return cross(a, c.array(1), c.dim(a, 2, "dim", -1));
}

Array covariance(Call& c) {
  Array x = c.array(0);
  c.refuse(-1, "fweights");
  c.refuse(-1, "aweights");
  if (x.rank() < 2) x = reshape(x, {-1, 1});
  const Array y = cov(transpose(x), c.integer(-1, "correction", 1));
  return y.count() == 1 ? reshape(y, Shape()) : y;
}

Array distances(Call& c) {
  const Array a = c.array(0), b = c.array(1);
  c.text(3, "compute_mode");
  return cdist(b, a, c.real(2, "p", 2));
}

Array vander(Call& c) {
  const Array x = c.array(0);
  const int64_t n = c.integer(-1, "N", x.rank() ? x.size(0) : 1);
  return pow(unsqueeze(x.rank() ? x : reshape(x, {1}), 0), cast(arange(n), x.dtype()));
}

Array dotted(Call& c) {
  const Array product = c.array(0) * c.array(1);
  const int dim = c.dim(product, -1, "dim", -1);
  return squeeze(sum(product, dim), dim);
}

Array chained(Call& c) {
  const Arrays all = c.list(0);
  Array y = all[0];
  for (size_t i = 1; i < all.size(); ++i) y = product(y, all[i]);
  return y;
}

const Table products("matrices", {
                                     {"matmul", multiplied},
                                     {"__rmatmul__", [](Call& c) { return product(c.array(1), c.array(0)); }},
                                     {"mm", multiplied},
                                     {"bmm", multiplied},
                                     {"mv", multiplied},
                                     {"dot", dot},
                                     {"vdot", dot},
                                     {"outer", [](Call& c) { return outer_product(c.array(0), c.array(1)); }},
                                     {"inner", inner},
                                     {"addmm", added_product},
                                     {"addmm/decomposed", added_product},
                                     {"addmv", added_product},
                                     {"baddbmm", added_product},
                                     {"addbmm", added_batches},
                                     {"addr", [](Call& c) { return added(c, outer_product(c.array(1), c.array(2))); }},
                                     {"tensordot", contracted},
                                     {"einsum", summed_by_name},
                                     {"kron", kronecker},
                                     {"linalg.multi_dot", chained},
                                     {"linalg.vecdot", dotted},
                                     {"linalg.vander", vander},
                                     {"linalg.cross", cross_product},
                                     {"cross", cross_product},
                                     {"cov", covariance},
                                     {"cdist", distances},
                                 });

/// Shapes that a factorisation takes, and what is given back.
Array factor(Call& c, const Array& lower) { return c.flag(-1, "upper", false) ? lower : mt(lower); }
Array cholesky_of(Call& c) { return factor(c, linalg::cholesky(matrix(c, 0))); }

/// PyTorch's right side is a vector where its dims are those of the matrices less one.
Array solved(const Array& a, const Array& b) {
  const Shape shape = b.shape();
  const bool vectors =
      b.rank() == 1 || (b.rank() == a.rank() - 1 && std::equal(shape.begin(), shape.end(), a.shape().begin() + 1));
  if (!vectors) return mt(linalg::solve(mt(a), mt(b)));
  return squeeze(linalg::solve(mt(a), unsqueeze(b, 1)), 1);
}
Array solution(Call& c) {
  c.flag(-1, "left", true) ? void() : throw Refused("solve: from the left alone");
  return solved(c.array(0), c.array(1));
}

Array triangular(const Array& a, const Array& b, bool upper, bool unit, bool transposed) {
  return mt(linalg::triangular_solve(mt(a), mt(b), {.upper = upper, .unit_diagonal = unit, .transposed = transposed}));
}
Array triangular_solution(Call& c) {
  const Array a = c.array(0), b = c.array(1);
  const bool upper = c.flag(-1, "upper", false), unit = c.flag(-1, "unitriangular", false);
  if (c.flag(-1, "left", true)) return triangular(a, b, upper, unit, false);
  return mt(triangular(mt(a), mt(b), !upper, unit, false));
}

Arrays of_sign(const linalg::SignAndLog& all) { return {all.sign, all.logabsdet}; }

Arrays parts_of_qr(Call& c) {
  if (c.text(1, "mode", "reduced") != "reduced") throw Refused("qr: the reduced one alone");
  const linalg::QR all = linalg::qr(matrix(c, 0));
  return {mt(matmul(all.q, all.r)), mt(abs(all.r))};
}
Arrays parts_of_svd(Call& c) {
  const Array a = matrix(c, 0);
  c.flag(-1, "full_matrices", false);
  const linalg::SVD all = linalg::svd(a);
  return {all.s, mt(matmul(all.u * unsqueeze(all.s, 0), all.vt))};
}
/// The symmetric matrix of which a triangle is told. PyTorch's gradient is that by the whole of it.
Array symmetric(const Array& a, bool upper) {
  const Array half = upper ? triu(a, 1) : tril(a, -1);
  return a + stop_gradient(half + mt(half) + a * eye(a.size(0), a.dtype()) - a);
}
Array told_symmetric(Call& c) { return symmetric(matrix(c, 0), c.text(1, "UPLO", "L") == "U"); }
Arrays parts_of_eigh(Call& c) {
  const linalg::Eigh all = linalg::eigh(told_symmetric(c));
  return {all.values, mt(matmul(all.vectors * unsqueeze(all.values, 0), mt(all.vectors)))};
}
Arrays parts_of_lu(Call& c) {
  c.flag(1, "pivot", true) ? void() : throw Refused("lu: with pivots alone");
  const linalg::LU all = linalg::lu(matrix(c, 0));
  return {mt(all.lower), mt(all.upper)};
}

Array pseudo_inverse(Call& c) {
  const Value* const rtol = c.find(-1, "rtol");
  if (rtol && rtol->kind == Value::Kind::array && c.array(-1, "rtol").count() > 1)
    throw Refused("pinv: one rtol for all");
  c.refuse(-1, "atol");
  Array a = matrix(c, 0);
  if (c.flag(-1, "hermitian", false)) a = symmetric(a, false);
  return mt(linalg::pinv(a, c.real(-1, "rtol", -1)));
}
/// The solution and, of systems with more equations than unknowns, the sums of squares that stay.
Arrays least_squares(Call& c) {
  const std::string driver = c.text(-1, "driver");
  const Array a = matrix(c, 0), b = matrix(c, 1), x = linalg::lstsq(a, b);
  if (driver == "gelsy" || a.size(0) <= a.size(1)) return {mt(x), zeros({0}, a.dtype())};
  return {mt(x), squeeze(sum(square(matmul(a, x) - b), 0), 0)};
}

bool names_frobenius(const Value* order) {
  return !order || (order->kind == Value::Kind::text && order->text == "fro");
}
double number_of(const Value& order) {
  if (order.kind != Value::Kind::text) return order.number;
  return order.text == "inf" ? infinity : -infinity;
}

/// The norm of matrices in two dims of x (PyTorch's rows and columns), which become 1.
Array norm_of_matrices(const Array& x, const Value* order, int rows, int columns, bool keep) {
  std::vector<int> axes{rows, columns};
  for (int d = 0; d < x.rank(); ++d) {
    if (d != rows && d != columns) axes.push_back(d);
  }
  const Array a = permute(x, axes);
  const bool nuclear = order && order->kind == Value::Kind::text && order->text == "nuc";
  Array y = names_frobenius(order) ? linalg::matrix_norm(a)
            : nuclear              ? linalg::matrix_norm(a, linalg::MatrixNorm::nuclear)
                                   : linalg::matrix_norm(a, number_of(*order));
  std::vector<int64_t> sizes;
  const Shape shape = x.shape();
  for (int d = 0; d < x.rank(); ++d) {
    if (d != rows && d != columns) sizes.push_back(shape[d]);
    else if (keep) sizes.push_back(1);
  }
  return reshape(y, sizes);
}
Array matrix_norm_of(Call& c) {
  const Array x = c.typed(c.array(0));
  const std::vector<int> dims = c.has(2, "dim") ? c.dims(x, 2, "dim") : std::vector<int>{1, 0};
  return norm_of_matrices(x, c.find(1, "ord"), dims[0], dims[1], c.flag(3, "keepdim", false));
}
Array vector_norm_of(Call& c) {
  const Array x = c.typed(c.array(0));
  const std::vector<int> dims = c.dims(x, 2, "dim");
  return without(linalg::vector_norm(x, c.real(1, "ord", 2), Dims(dims)), dims, c.flag(3, "keepdim", false));
}
Array any_norm(Call& c) {
  const Array x = c.typed(c.array(0));
  const Value* const order = c.find(1, "ord");
  const bool keep = c.flag(3, "keepdim", false);
  const bool named = c.has(2, "dim");
  const std::vector<int> dims = c.dims(x, 2, "dim");
  if (order && dims.size() == 2) return norm_of_matrices(x, order, named ? dims[0] : 1, named ? dims[1] : 0, keep);
  const double number = order && !names_frobenius(order) ? number_of(*order) : 2;
  return without(linalg::vector_norm(x, number, Dims(dims)), dims, keep);
}
Array nuclear_norm(Call& c) {
  const Array x = c.array(0);
  const std::vector<int> dims = c.has(2, "dim") ? c.dims(x, 2, "dim") : std::vector<int>{1, 0};
  return norm_of_matrices(x, c.find(1, "p"), dims[0], dims[1], c.flag(3, "keepdim", false));
}

const Table algebra("matrices",
                    {
                        {"linalg.cholesky", cholesky_of, 100},
                        {"linalg.cholesky_ex",
                         [](Call& c) {
                           return c.flag(-1, "check_errors", false), Arrays{cholesky_of(c), Array()};
                         },
                         100},
                        {"linalg.det", [](Call& c) { return linalg::det(matrix(c, 0)); }, 100},
                        {"linalg.slogdet", [](Call& c) { return of_sign(linalg::slogdet(matrix(c, 0))); }, 100},
                        {"logdet",
                         [](Call& c) {
                           const linalg::SignAndLog all = linalg::slogdet(matrix(c, 0));
                           return where(all.sign > 0, all.logabsdet, std::nan(""));
                         },
                         100},
                        {"linalg.inv", [](Call& c) { return mt(linalg::inv(matrix(c, 0))); }, 100},
                        {"linalg.inv_ex",
                         [](Call& c) {
                           return Arrays{mt(linalg::inv(matrix(c, 0))), Array()};
                         },
                         100},
                        {"linalg.solve", solution, 100},
                        {"linalg.solve_ex",
                         [](Call& c) {
                           return Arrays{solution(c), Array()};
                         },
                         100},
                        {"linalg.solve_triangular", triangular_solution, 100},
                        {"triangular_solve",
                         [](Call& c) {
                           const bool upper = c.flag(2, "upper", true), transposed = c.flag(3, "transpose", false);
                           return Arrays{
                               triangular(c.array(1), c.array(0), upper, c.flag(4, "unitriangular", false), transposed),
                               c.array(1)};
                         },
                         100},
                        {"linalg.qr", parts_of_qr, 100},
                        {"linalg.svd", parts_of_svd, 100},
                        {"linalg.svdvals", [](Call& c) { return linalg::svdvals(matrix(c, 0)); }, 100},
                        {"linalg.eigh", parts_of_eigh, 100},
                        {"linalg.eigvalsh", [](Call& c) { return linalg::eigvalsh(told_symmetric(c)); }, 100},
                        {"linalg.lu", parts_of_lu, 100},
                        {"linalg.lstsq",
                         [](Call& c) {
                           Arrays all = least_squares(c);
                           all.resize(4);
                           return all;
                         },
                         100},
                        {"linalg.lstsq/grad_oriented", least_squares, 100},
                        {"linalg.pinv", pseudo_inverse, 100},
                        {"linalg.pinv/hermitian", pseudo_inverse, 100,
                         "PyTorch's gradient reads the other triangle too"},
                        {"linalg.pinv/singular",
                         [](Call& c) { return mt(linalg::pinv(mt(product(c.array(0), mt(c.array(1)))))); }, 1000},
                        {"pinverse", pseudo_inverse, 100},
                        {"linalg.matrix_power",
                         [](Call& c) { return mt(linalg::matrix_power(matrix(c, 0), c.integer(1, "n", 1))); }, 100},
                        {"linalg.matrix_norm", matrix_norm_of, 100},
                        {"linalg.vector_norm", vector_norm_of},
                        {"linalg.norm", any_norm, 100},
                        {"linalg.norm/subgradients_at_zero", any_norm, 100, "PyTorch's second gradient at 0 is NaN"},
                        {"norm/nuc", nuclear_norm, 100},
                    });

FftNorm other_way(FftNorm norm) {
  return norm == FftNorm::backward ? FftNorm::forward : norm == FftNorm::forward ? FftNorm::backward : norm;
}
FftNorm norm_named(const std::string& name) {
  return name == "ortho" ? FftNorm::ortho : name == "forward" ? FftNorm::forward : FftNorm::backward;
}

template <Array (*f)(const Array&, int, const FftOptions&)> Array transform(Call& c) {
  const Array x = c.array(0);
  return f(x, c.dim(x, 2, "dim", -1), {c.integers(1, "n"), norm_named(c.text(-1, "norm"))});
}

/// The dims and sizes of a call in rosin's order.
std::vector<int> transformed_dims(Call& c, const Array& x, int usual, FftOptions& options) {
  options.sizes = reversed(c.integers(1, "s"));
  options.norm = norm_named(c.text(-1, "norm"));
  std::vector<int> dims;
  if (c.has(2, "dim")) {
    dims = c.dims(x, 2, "dim");
    std::ranges::reverse(dims);
  } else {
    const size_t count = !options.sizes.empty() ? options.sizes.size() : static_cast<size_t>(usual ? usual : x.rank());
    dims.resize(count);
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}
using DimsTransform = Array (*)(const Array&, Dims, const FftOptions&);
template <DimsTransform f> Array over_dims(Call& c, int usual) {
  FftOptions options;
  const std::vector<int> dims = transformed_dims(c, c.array(0), usual, options);
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    if (options.sizes[i] < 0) options.sizes[i] = c.array(0).size(dims[i]);
  }
  return f(c.array(0), Dims(dims), options);
}

/// Transforms of what is symmetric in time: those of real numbers the other way.
Array fft_of_half(const Array& x, Dims dims, const FftOptions& options) {
  return irfftn(conj(x), dims, {options.sizes, other_way(options.norm)});
}
Array half_of_ifft(const Array& x, Dims dims, const FftOptions& options) {
  return conj(rfftn(x, dims, {options.sizes, other_way(options.norm)}));
}
template <DimsTransform f> Array along_dim(const Array& x, int dim, const FftOptions& options) {
  return f(x, dim, options);
}

Array shifted(Call& c, Array (*f)(const Array&, Dims)) {
  const Array x = c.array(0);
  return f(x, Dims(c.dims(x, 1, "dim")));
}

Array pieces(Call& c) {
  StftOptions options;
  options.n_fft = c.integer(1, "n_fft", 1);
  options.hop_length = c.integer(2, "hop_length", 0);
  c.refuse(3, "win_length");
  options.window = c.array_or_nothing(4, "window");
  options.center = c.flag(5, "center", true);
  options.normalized = c.flag(7, "normalized", false);
  if (!c.flag(8, "onesided", true)) throw Refused("stft: one side alone");
  const Array y = mt(stft(c.array(0), options));
  return c.flag(-1, "return_complex", true) ? y : view_as_real(y);
}

template <Array (*f)(int64_t, bool)> Array window(Call& c) {
  return c.typed(f(c.integer(0, "", 0), !c.flag(-1, "sym", true)));
}

const Table transforms("matrices", {
                                       {"fft.fft", transform<fft>},
                                       {"fft.ifft", transform<ifft>},
                                       {"fft.rfft", transform<rfft>},
                                       {"fft.irfft", transform<irfft>},
                                       {"fft.hfft", transform<along_dim<fft_of_half>>},
                                       {"fft.ihfft", transform<along_dim<half_of_ifft>>},
                                       {"fft.fft2", [](Call& c) { return over_dims<fftn>(c, 2); }},
                                       {"fft.ifft2", [](Call& c) { return over_dims<ifftn>(c, 2); }},
                                       {"fft.rfft2", [](Call& c) { return over_dims<rfftn>(c, 2); }},
                                       {"fft.irfft2", [](Call& c) { return over_dims<irfftn>(c, 2); }},
                                       {"fft.hfft2", [](Call& c) { return over_dims<fft_of_half>(c, 2); }},
                                       {"fft.ihfft2", [](Call& c) { return over_dims<half_of_ifft>(c, 2); }},
                                       {"fft.fftn", [](Call& c) { return over_dims<fftn>(c, 0); }},
                                       {"fft.ifftn", [](Call& c) { return over_dims<ifftn>(c, 0); }},
                                       {"fft.rfftn", [](Call& c) { return over_dims<rfftn>(c, 0); }},
                                       {"fft.irfftn", [](Call& c) { return over_dims<irfftn>(c, 0); }},
                                       {"fft.hfftn", [](Call& c) { return over_dims<fft_of_half>(c, 0); }},
                                       {"fft.ihfftn", [](Call& c) { return over_dims<half_of_ifft>(c, 0); }},
                                       {"fft.fftshift", [](Call& c) { return shifted(c, fftshift); }},
                                       {"fft.ifftshift", [](Call& c) { return shifted(c, ifftshift); }},
                                       {"stft", pieces},
                                       {"signal.windows.hann", window<hann_window>},
                                       {"signal.windows.hamming", window<hamming_window>},
                                   });

}  // namespace
}  // namespace rosin::opinfo
