// Conversions of losses on scores (..., classes, batch) and labels (..., batch). Read first: convert.hpp.
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// Labels of the stated number count for nothing.
Array negative_likelihood(const NodeCall& call, const Array& scores) {
  const int dim = scores.rank() - 2;
  if (dim < 0) call.refuse("scores must have classes", to_string(scores.shape()));
  const Array labels = as(call[1], Int64);
  const bool ignores = call.find("ignore_index") != nullptr;
  const Array kept = ignores ? ne(labels, call.integer("ignore_index", 0)) : Array();
  const Array at = ignores ? where(kept, labels, as(0, Int64)) : labels;
  Array weight = call.has(2) ? gather(call[2], at, 0) : ones(at.shape(), scores.dtype());
  if (ignores) weight = where(kept, weight, zeros_like(weight));
  const Array loss = -squeeze(take_along(scores, unsqueeze(at, dim), dim), dim) * weight;
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return loss;
  return reduction == "sum" ? sum(loss) : sum(loss) / sum(weight);
}

}  // namespace

Arrays nll_loss(const NodeCall& call) { return {negative_likelihood(call, call[0])}; }

Arrays cross_entropy_loss(const NodeCall& call) {
  if (call[0].rank() < 2) call.refuse("scores must have classes", to_string(call[0].shape()));
  const Array scores = logsoftmax(call[0], call[0].rank() - 2);
  return {negative_likelihood(call, scores), scores};
}

}  // namespace rosin::onnx
