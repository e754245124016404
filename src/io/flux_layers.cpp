// The table, newest versions first. Source: Flux's tags v0.6.10 to v0.16.11.
#include "io/flux_layers.hpp"

#include <algorithm>

namespace rosin {
namespace {

constexpr FluxLayer rows[] = {
    {"Chain", "layers", "layers", "layers"},
    {"Dense", "weight bias σ", "weight bias -", ""},
    {"Dense", "W b σ", "weight bias -", "typed"},
    {"Scale", "scale bias σ", "scale bias -", ""},
    {"Diagonal", "α β", "scale bias", "typed"},
    {"Bilinear", "weight bias σ", "weight bias -", ""},
    {"Conv", "σ weight bias stride pad dilation groups", "- weight bias - - - -", "dilation"},
    {"Conv", "σ weight bias stride pad dilation", "- weight bias - - -", "dilation"},
    {"ConvTranspose", "σ weight bias stride pad outpad dilation groups", "- weight bias - - - - -", "outpad"},
    {"ConvTranspose", "σ weight bias stride pad dilation groups", "- weight bias - - - -", "dilation"},
    {"ConvTranspose", "σ weight bias stride pad dilation", "- weight bias - - -", "dilation"},
    {"DepthwiseConv", "σ weight bias stride pad dilation", "- weight bias - - -", "dilation"},
    {"CrossCor", "σ weight bias stride pad dilation", "- weight bias - - -", "dilation"},
    {"MaxPool", "k pad stride", "- - -", "k"},
    {"MeanPool", "k pad stride", "- - -", "k"},
    {"AdaptiveMaxPool", "out", "-", "typed"},
    {"AdaptiveMeanPool", "out", "-", "typed"},
    {"BatchNorm", "λ β γ μ σ² ϵ momentum affine track_stats active chs", "- bias scale mean variance - - - - - -", "ϵ"},
    {"BatchNorm", "λ β γ μ σ² ϵ momentum active", "- bias scale mean variance - - -", "ϵ"},
    {"BatchNorm", "λ β γ μ σ ϵ momentum active", "- bias scale mean deviation - - -", "ϵ"},
    {"InstanceNorm", "λ β γ μ σ² ϵ momentum affine track_stats active chs", "- bias scale mean variance - - - - - -",
     "ϵ"},
    {"InstanceNorm", "λ β γ μ σ² ϵ momentum active", "- bias scale mean variance - - -", "ϵ"},
    {"GroupNorm", "G λ β γ μ σ² ϵ momentum affine track_stats active chs", "- - bias scale - - - - - - - -", "G"},
    {"GroupNorm", "G λ β γ μ σ² ϵ momentum active", "- - bias scale - - - - -", "G"},
    {"LayerNorm", "λ diag ϵ size affine", "- * - - -", "diag"},
    {"LayerNorm", "diag", "*", "diag"},
    {"Dropout", "p dims active rng", "- - - -", "p"},
    {"Dropout", "p dims active", "- - -", "p"},
    {"Dropout", "p active", "- -", "p"},
    {"AlphaDropout", "p active rng", "- - -", "p"},
    {"Embedding", "weight", "weight", ""},
    {"EmbeddingBag", "weight reduction", "weight -", "typed"},
    {"SkipConnection", "layers connection", "layers.0 connection.0", "connection"},
    {"Parallel", "connection layers", "connection.0 layers", "connection"},
    {"PairwiseFusion", "connection layers", "connection.0 layers", ""},
    {"Maxout", "layers", "layers", ""},
    {"Maxout", "over", "layers", "typed"},
    {"Recur", "cell state", "cell -", "typed"},
    {"Recur", "cell init state", "cell - -", "typed"},
    {"RNN", "cell", "cell", ""},
    {"LSTM", "cell", "cell", ""},
    {"GRU", "cell", "cell", ""},
    {"GRUv3", "cell", "cell", ""},
    {"RNNCell", "σ Wi Wh bias", "- input_weight recurrent_weight bias", "Wh"},
    {"RNNCell", "σ Wi Wh b state0", "- input_weight recurrent_weight bias state0", "Wh"},
    {"LSTMCell", "Wi Wh bias", "input_weight recurrent_weight bias", "Wh"},
    {"LSTMCell", "Wi Wh b state0", "input_weight recurrent_weight bias state0", "Wh"},
    {"LSTMCell", "Wi Wh b h c", "input_weight recurrent_weight bias h c", "Wh"},
    {"GRUCell", "Wi Wh b", "input_weight recurrent_weight bias", "Wh"},
    {"GRUCell", "Wi Wh b state0", "input_weight recurrent_weight bias state0", "Wh"},
    {"GRUv3Cell", "Wi Wh b Wh_h̃", "input_weight recurrent_weight bias candidate_weight", "Wh_h̃"},
    {"GRUv3Cell", "Wi Wh b Wh_h̃ state0", "input_weight recurrent_weight bias candidate_weight state0", "Wh_h̃"},
    {"MultiHeadAttention", "nheads q_proj k_proj v_proj attn_drop out_proj", "- q_proj k_proj v_proj - out_proj",
     "nheads"},
    {"Upsample", "scale size", "- -", "typed"},
    {"PixelShuffle", "r", "-", "typed"},
};

/// Whether the file's names are fields of that row, in its order; JLD2 leaves out those without content.
bool has_names_of(const JuliaTree& tree, const JuliaValue& value, const FluxLayer& row) {
  uint32_t column = 0;
  for (uint32_t i = 0; i < value.count; ++i, ++column) {
    const JuliaChild& child = tree.child(value, i);
    if (child.name == JuliaTree::no_name) return false;
    std::string_view field = listed_name(row.flux, column);
    while (!field.empty() && field != tree.text(child.name)) field = listed_name(row.flux, ++column);
    if (field.empty()) return false;
  }
  return true;
}

bool has_names(const JuliaTree& tree, const JuliaValue& value) {
  return value.count > 0 && tree.child(value, 0).name != JuliaTree::no_name;
}

}  // namespace

std::span<const FluxLayer> flux_layers() noexcept { return rows; }

std::string_view listed_name(std::string_view list, uint32_t i) noexcept {
  for (; i > 0 && !list.empty(); --i) {
    const size_t end = list.find(' ');
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return list.substr(0, list.find(' '));
}

uint32_t listed_count(std::string_view list) noexcept {
  return static_cast<uint32_t>(std::count(list.begin(), list.end(), ' ')) + 1;
}

std::string_view flux_type(std::string_view type) noexcept {
  if (!type.starts_with("Flux.")) return {};
  return type.substr(type.rfind('.') + 1);
}

const FluxLayer* find_layer(const JuliaTree& tree, const JuliaValue& value) {
  if (value.count > 12) return nullptr;
  const bool named = has_names(tree, value);
  if (value.kind == JuliaKind::structure) {
    const std::string_view type = flux_type(tree.text_of(value));
    for (const FluxLayer& row : rows) {
      if (type != row.type) continue;
      if (named ? has_names_of(tree, value, row) : listed_count(row.flux) == value.count) return &row;
    }
    return nullptr;
  }
  if (value.kind != JuliaKind::named || !named) return nullptr;
  for (const FluxLayer& row : rows) {
    const std::string_view mark = row.mark;
    if (mark.empty() || mark == "typed" || !tree.named_child(value, mark)) continue;
    if (has_names_of(tree, value, row)) return &row;
  }
  return nullptr;
}

}  // namespace rosin
