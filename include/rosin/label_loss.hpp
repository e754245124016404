// Losses of labels, which are numbers of classes from 0 on: no one-hot array is made. And of sequences of them whose
// places in time are not known (CTC). Read first: loss.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include <rosin/array.hpp>
#include <rosin/loss.hpp>

namespace rosin {

struct LabelOptions {
  int dims = 0;  // of the classes
  Aggregation agg = {};
  std::optional<int64_t> ignore = {};  // the label of observations that do not count, such as -100
  Array weights = {};                  // of the classes: (classes); nothing: 1
  double smoothing = 0;                // the share of each observation that all classes get alike, in [0, 1]
};
/// agg(-w(label) * logsoftmax(yhat)(label)) of logits yhat (classes, batch...) and labels (batch...), any integers. The
/// mean is that of the observations that count, by their weights: sum(losses) / sum(w(label)); NaN where none counts.
/// `agg` gets losses in the shape of the labels, 0 where they do not count. With smoothing s the target is
/// (1 - s) * onehot + s / classes, times the weights. Labels that are floats in the shape of yhat are the probabilities
/// of the classes, in the place of onehot; the mean divides by the number of observations then. Source:
/// torch.nn.CrossEntropyLoss. Errors: shape (labels or weights do not fit yhat), dtype (other labels), argument
/// (smoothing not in [0, 1]; `ignore` with probabilities; at run time: a label that is no class).
ROSIN_API Array labelcrossentropy(const Array& yhat, const Array& labels, const LabelOptions& options = {});

struct MultiMarginOptions {
  int dims = 0;  // of the classes
  Aggregation agg = {};
  double margin = 1;
  double p = 1;        // 1 or 2
  Array weights = {};  // of the classes: (classes); nothing: 1
};
/// agg(w(label) / classes * sum(max(0, margin - yhat(label) + yhat(c))^p)), over all classes c but the label. Source:
/// torch.nn.MultiMarginLoss. Errors: as labelcrossentropy; argument: an order other than 1 and 2.
ROSIN_API Array multi_margin_loss(const Array& yhat, const Array& labels, const MultiMarginOptions& options = {});

struct CtcOptions {
  Aggregation agg = {};
  int64_t blank = -1;          // the class of the blank, from the end where negative: the last; PyTorch's default is 0
  Array lengths = {};          // of the sequences: (batch); nothing: all of yhat
  Array label_lengths = {};    // (batch); nothing: all labels
  bool zero_infinity = false;  // a sequence too short for its labels has the loss 0 instead of Inf
};
/// Connectionist temporal classification: -log of the probability that logits yhat (classes, time) or (classes, time,
/// batch) give the labels (labels) or (labels, batch), summed over all ways to stretch them, with blanks between. agg
/// gets one loss for each sequence; the default is their mean (PyTorch's divides each by its number of labels first).
/// Labels beyond label_lengths are not looked at. Logarithms of probabilities serve as logits. A sequence that is too
/// short for its labels has the loss Inf and no gradient. Source: Graves et al. (2006); NNlib.ctc_loss. Errors: shape,
/// dtype (as labelcrossentropy), argument (a blank that is no class; at run time: a label that is none).
ROSIN_API Array ctc_loss(const Array& yhat, const Array& labels, const CtcOptions& options = {});

}  // namespace rosin
