// Pooling layers: see rosin/pool_layers.hpp.
#include <rosin/pool_layers.hpp>

#include <algorithm>

#include <rosin/movement.hpp>

#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "nn/padding.hpp"

namespace rosin {
namespace {

/// The padding for images x; SamePad follows from the window of each spatial dim.
template <class L> Extents padding_of(const L& layer, const Array& x) {
  const PoolOptions& options = layer.options;
  const Extents& window = layer.k;
  if (window.empty()) {
    throw Error(ErrorKind::argument, "layer " + layer.rosin_show() + ": the window has no sizes; got (); give one " +
                                         "number, or one for each spatial dim");
  }
  if (!options.pad.is_same()) return options.pad.extents();
  const auto list = window.list();
  int64_t windows[3] = {};
  const int spatial = std::clamp(x.rank() - 2, 1, 3);
  const auto of_dim = [](std::span<const int64_t> all, int d) {  // what no pool takes is refused by the pool itself
    return std::clamp<int64_t>(all[std::min(all.size() - 1, static_cast<size_t>(d))], 1, int64_t{1} << 30);
  };
  const auto steps = options.dilation.list();
  for (int d = 0; d < spatial; ++d) {
    windows[d] = (of_dim(list, d) - 1) * (steps.empty() ? 1 : of_dim(steps, d)) + 1;
  }
  return same_padding({windows, static_cast<size_t>(spatial)});
}

std::string tuple_of(const Extents& extents) {
  return tuple_text(extents.list().data(), static_cast<int>(extents.list().size()));
}

std::string text_of(const char* name, const Extents& k, const PoolOptions& options) {
  std::string text = std::string(name) + "(" + tuple_of(k);
  const auto pad = options.pad.extents().list(), stride = options.stride.list(), window = k.list();
  const bool padded = std::any_of(pad.begin(), pad.end(), [](int64_t value) { return value != 0; });
  if (options.pad.is_same()) text += ", pad=SamePad()";
  else if (padded) text += ", pad=" + compact_text(pad.data(), static_cast<int>(pad.size()));
  if (!stride.empty() && !std::equal(stride.begin(), stride.end(), window.begin(), window.end())) {
    text += ", stride=" + compact_text(stride.data(), static_cast<int>(stride.size()));
  }
  const auto dilation = options.dilation.list();
  if (std::any_of(dilation.begin(), dilation.end(), [](int64_t step) { return step != 1; })) {
    text += ", dilation=" + compact_text(dilation.data(), static_cast<int>(dilation.size()));
  }
  if (options.ceil) text += ", ceil=true";
  if (!options.count_pad) text += ", count_pad=false";
  return text + ")";
}

}  // namespace

Array MaxPool::operator()(const Array& x) const {
  return located(*this, [&] {
    return maxpool(x, k, options.stride, padding_of(*this, x), {options.dilation, options.ceil});
  });
}
std::string MaxPool::rosin_show() const { return text_of("MaxPool", k, options); }

Array MeanPool::operator()(const Array& x) const {
  const MeanWindowOptions means{options.dilation, options.ceil, options.count_pad};
  return located(*this, [&] { return meanpool(x, k, options.stride, padding_of(*this, x), means); });
}
std::string MeanPool::rosin_show() const { return text_of("MeanPool", k, options); }

std::string AdaptiveMaxPool::rosin_show() const { return "AdaptiveMaxPool(" + tuple_of(out) + ")"; }
std::string AdaptiveMeanPool::rosin_show() const { return "AdaptiveMeanPool(" + tuple_of(out) + ")"; }

Array Flatten::operator()(const Array& x) const { return flatten(x); }

}  // namespace rosin
