// Vision transformers (ViT-B/16 and other sizes) with the names and layouts of torchvision.
// Source: Dosovitskiy et al.: An Image Is Worth 16x16 Words: Transformers for Image Recognition at Scale (2020).
#pragma once

#include <rosin/rosin.hpp>

#include <string>
#include <vector>

#include "attention.hpp"

namespace models {

struct ViTOptions {
  int64_t image = 224;
  int64_t patch = 16;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  int64_t hidden = 3072;  // of the products between the attentions
  int64_t classes = 1000;
  double dropout = 0;
};

/// torch.nn.MultiheadAttention of x with itself: one product gives queries, keys and values.
struct SelfAttention {
  rosin::Array in_proj_weight;  // (3 * width, width)
  rosin::Array in_proj_bias;    // (3 * width)
  rosin::Dense out_proj;
  int64_t heads = 1;
  rosin::Dropout drop{0};

  rosin::Array operator()(const rosin::Array& x) const {
    const std::vector<rosin::Array> parts = rosin::chunk(project(in_proj_weight, in_proj_bias, x), 3, 0);
    return out_proj(attention(parts[0], parts[1], parts[2], heads, {}, drop));
  }
};

struct ViTBlock {
  rosin::LayerNorm ln_1;
  SelfAttention self_attention;
  rosin::Dropout drop{0};
  rosin::LayerNorm ln_2;
  rosin::Chain mlp;

  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array y = x + drop(self_attention(ln_1(x)));
    return y + mlp(ln_2(y));
  }
};

struct ViTEncoder {
  rosin::Array pos_embedding;  // (1, tokens, width), as PyTorch has it
  rosin::Dropout drop{0};
  rosin::Chain layers;
  rosin::LayerNorm ln;

  rosin::Array operator()(const rosin::Array& x) const {
    return ln(layers(drop(x + rosin::permute(pos_embedding, {2, 1, 0}))));
  }
};

struct VisionTransformer {
  rosin::Array class_token;  // (1, 1, width)
  rosin::CrossCor conv_proj;
  ViTEncoder encoder;
  rosin::Chain heads;

  /// Images (width, height, 3, batch) of the stated size -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array patches = conv_proj(x);  // (columns, rows, width, batch)
    const int64_t width = patches.size(2), batch = patches.size(3);
    const rosin::Array tokens = rosin::permute(rosin::reshape(patches, {-1, width, batch}), {1, 0, 2});
    const rosin::Array first = rosin::expand(rosin::reshape(class_token, {width, 1, 1}), {width, 1, batch});
    return heads(rosin::select(encoder(rosin::concat({first, tokens}, 1)), 1, 0));
  }
};

inline VisionTransformer vision_transformer(const ViTOptions& options = {}) {
  const int64_t width = options.width, patches = options.image / options.patch;
  const rosin::Dropout drop(options.dropout);
  std::vector<std::string> names;
  for (int64_t i = 0; i < options.layers; ++i) names.push_back("encoder_layer_" + std::to_string(i));
  std::vector<rosin::NamedLayer> blocks;
  for (const std::string& name : names) {
    const SelfAttention inner{rosin::glorot_uniform({3 * width, width}), rosin::zeros({3 * width}),
                              rosin::Dense(width, width), options.heads, drop};
    const rosin::Chain mlp(rosin::Dense(width, options.hidden), rosin::gelu_erf, drop,
                           rosin::Dense(options.hidden, width), drop);
    blocks.push_back({name, ViTBlock{rosin::LayerNorm(width, {.eps = 1e-6}), inner, drop,
                                     rosin::LayerNorm(width, {.eps = 1e-6}), mlp}});
  }
  const ViTEncoder encoder{0.02 * rosin::randn({1, patches * patches + 1, width}), drop, rosin::Chain(blocks),
                           rosin::LayerNorm(width, {.eps = 1e-6})};
  return {rosin::zeros({1, 1, width}),
          rosin::CrossCor({options.patch, options.patch}, 3, width, {.stride = options.patch}), encoder,
          rosin::Chain({rosin::NamedLayer{"head", rosin::Dense(width, options.classes)}})};
}

/// torchvision.models.vit_b_16.
inline VisionTransformer vit_b_16(int64_t classes = 1000) { return vision_transformer({.classes = classes}); }

}  // namespace models
