// Rows of the table of ops: functions without an oracle of the op suite. Read first: op_table.hpp.
#include "op_table.hpp"

namespace rosin::suite {

std::vector<OpEntry> untabled_entries() {
  std::vector<OpEntry> entries;
  for (const std::string_view name :
       {"full", "zeros", "ones", "zeros_like", "ones_like", "full_like", "arange", "linspace", "eye", "uniform",
        "normal", "bernoulli", "randint", "permutation",
        // compared by src/ops/arrange_test.cpp
        "einsum", "tensordot", "kron", "diagonal", "diagm", "trace", "roll", "set", "nonzero", "masked_select",
        "searchsorted", "bincount", "histogram", "quantile", "median",
        // compared by src/ops/rearrange_test.cpp and tests/opinfo
        "movedim", "rot90", "diff", "block_diag", "isin", "cross", "cdist", "cov", "corrcoef", "trapezoid",
        "cumulative_trapezoid", "gather_nd", "scatter_nd", "scatter_nd_add", "count_nonzero", "nansum", "nanmean",
        "isclose", "rand_like", "randn_like",
        // compared by src/ops/linalg_test.cpp
        "cholesky", "triangular_solve", "solve", "inv", "det", "svdvals", "eigvalsh", "pinv", "lstsq", "vector_norm",
        "matrix_norm", "matrix_power",
        // compared by src/ops/fft_test.cpp
        "fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "fftshift", "ifftshift", "fftfreq", "rfft2",
        "irfft2", "rfftn", "irfftn", "rfftfreq", "hann_window", "hamming_window", "stft", "istft",
        // compared by src/ops/special_test.cpp and tests/opinfo
        "polygamma", "ndtr", "sinc", "xlogy", "xlog1py", "entr", "logit", "heaviside", "fmod", "frac", "nan_to_num",
        "lerp", "deg2rad", "rad2deg",
        // compared by src/ops/pool_test.cpp and tests/opinfo
        "max_unpool", "lpnormpool",
        // compared by src/ops/distributions_test.cpp
        "exponential", "laplace", "gumbel", "truncated_normal", "gamma", "beta", "poisson", "categorical",
        "multinomial", "choice",
        // compared by src/ops/densities_test.cpp
        "kl_divergence",
        // compared by src/nn/attention_test.cpp
        "dot_product_attention_scores", "make_causal_mask", "rotary_embedding", "alibi_bias"}) {
    entries.push_back({name, "", nullptr});
  }
  return entries;
}

}  // namespace rosin::suite
