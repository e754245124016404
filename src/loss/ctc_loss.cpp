// Connectionist temporal classification: see rosin/label_loss.hpp. The recursion goes forward over time, in logarithms,
// with the states of blanks and of labels apart; its gradient is that of the recorded steps.
#include <rosin/label_loss.hpp>

#include <limits>
#include <string>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/node.hpp"
#include "graph/refuse_type.hpp"
#include "loss/loss_parts.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/lookup.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

constexpr const char* name = "ctc_loss";
// Logarithms of what is as good as impossible: finite, as -Inf has no slope. A class has the lowest one at least, a
// state that cannot be reached far less, and what is below the last is called impossible.
constexpr double lowest_score = -1e20, unreached = -1e30, impossible = -1e19;

/// What is given for a batch; a single sequence is a batch of one.
struct Sequences {
  Array scores;         // (classes, time, batch) logarithms of probabilities, Float32 or Float64
  Array labels;         // (labels, batch), 0 beyond the number of labels
  Array lengths;        // (1, batch) or nothing
  Array label_lengths;  // (1, batch) or nothing
  int64_t blank = 0;

  int64_t time() const { return scores.size(1); }
  int64_t batch() const { return scores.size(2); }
  int64_t label_count() const { return labels.size(0); }
};

Array row_of_lengths(const Array& lengths, int64_t batch, const char* what) {
  if (lengths.is_nothing()) return {};
  if (!is_integer(lengths.dtype())) {
    refuse(ErrorKind::dtype, name, std::string(what) + " must be integers", to_string(lengths.dtype()),
           "convert them with cast(x, Int32)");
  }
  if (lengths.count() == batch) return cast(reshape(lengths, {1, batch}), Int64);
  refuse(ErrorKind::shape, name,
         std::string(what) + " must be one number for each of " + std::to_string(batch) + " sequences",
         to_string(lengths.shape()), "leave them out where all are whole");
}

void check_shapes(const Array& yhat, const Array& labels) {
  if (yhat.is_nothing() || labels.is_nothing()) {
    refuse(ErrorKind::argument, name, "yhat and labels must be arrays", "nothing", "pass logits and class numbers");
  }
  require_real(name, yhat);
  if (!is_integer(labels.dtype())) {
    refuse(ErrorKind::dtype, name, "labels must be integers", to_string(labels.dtype()), "they are numbers of classes");
  }
  const bool fits = (yhat.rank() == 2 && labels.rank() == 1) ||
                    (yhat.rank() == 3 && labels.rank() == 2 && yhat.size(2) == labels.size(1));
  if (fits && yhat.size(0) > 0 && yhat.size(1) > 0) return;
  refuse(ErrorKind::shape, name,
         "yhat is (classes, time, batch) and labels (labels, batch), both without batch for one",
         to_string(yhat.shape()) + " and " + to_string(labels.shape()), "permute them");
}

Sequences sequences_of(const Array& yhat, const Array& labels, const CtcOptions& options) {
  Sequences s;
  const int64_t classes = yhat.size(0), batch = yhat.rank() == 3 ? yhat.size(2) : 1, count = labels.size(0);
  s.blank = options.blank < 0 ? options.blank + classes : options.blank;
  if (s.blank < 0 || s.blank >= classes) {
    refuse(ErrorKind::argument, name, "blank must be one of " + std::to_string(classes) + " classes",
           std::to_string(options.blank), "-1 is the last one");
  }
  const Array wide = yhat.dtype() == Float64 ? yhat : cast(yhat, Float32);
  s.scores = max(logsoftmax(reshape(wide, {classes, yhat.size(1), batch}), 0), lowest_score);
  s.lengths = row_of_lengths(options.lengths, batch, "lengths");
  s.label_lengths = row_of_lengths(options.label_lengths, batch, "label_lengths");
  s.labels = reshape(labels.dtype() == UInt64 ? cast(labels, Int64) : labels, {count, batch});
  if (!s.label_lengths.is_nothing()) s.labels = where(lt(arange(count), s.label_lengths), s.labels, 0);
  return s;
}

/// Logarithms of the probability to be, after some time, in the blank before label k (labels + 1, batch), and in label
/// k (labels, batch).
struct States {
  Array blanks, labels;
};

/// The probabilities of blanks (1, time, batch) and of each label (labels, time, batch) at all times.
States emissions(const Sequences& s) {
  const int64_t count = s.label_count(), batch = s.batch();
  const Array valid = squeeze(are_labels(s.labels, s.scores.size(0)), 0);
  const Array places = expand(reshape(where(valid, s.labels, 0), {count, 1, batch}), {count, s.time(), batch});
  return {slice(s.scores, 0, s.blank, s.blank + 1), take_along(s.scores, places, 0)};
}

States at(const States& emitted, int64_t t) { return {select(emitted.blanks, 1, t), select(emitted.labels, 1, t)}; }

/// One place for the label before: unreached before the first.
Array shifted(const Array& labels) { return pad(labels, 0, 1, 0, unreached); }

/// Where a label may follow another one with no blank between: they differ. (labels, batch)
Array may_follow(const Array& labels) {
  const int64_t count = labels.size(0);
  if (count < 2) return zeros(labels.shape(), Bool);
  return pad(ne(slice(labels, 0, 1, count), slice(labels, 0, 0, count - 1)), 0, 1, 0, false);
}

States first_states(const States& emitted, int64_t count) {
  return {pad(emitted.blanks, 0, 0, count, unreached),
          count == 0 ? emitted.labels : pad(slice(emitted.labels, 0, 0, 1), 0, 0, count - 1, unreached)};
}

States next_states(const States& before, const States& emitted, const Array& follows) {
  const int64_t count = before.labels.size(0);
  const Array last_label = shifted(before.labels);
  const Array blanks = logaddexp(before.blanks, last_label) + emitted.blanks;
  const Array from_label = where(follows, slice(last_label, 0, 0, count), unreached);
  const Array from_blank = logaddexp(before.labels, slice(before.blanks, 0, 0, count));
  return {blanks, logaddexp(from_blank, from_label) + emitted.labels};
}

/// The states after each sequence's last time.
States last_states(const Sequences& s) {
  const States emitted = emissions(s);
  const Array follows = may_follow(s.labels);
  States states = first_states(at(emitted, 0), s.label_count());
  for (int64_t t = 1; t < s.time(); ++t) {
    const States next = next_states(states, at(emitted, t), follows);
    const Array goes_on = s.lengths.is_nothing() ? Array() : gt(s.lengths, t);
    const auto choose = [&](const Array& now, const Array& kept) {
      return goes_on.is_nothing() ? now : where(goes_on, now, kept);
    };
    states = {choose(next.blanks, states.blanks), choose(next.labels, states.labels)};
  }
  return states;
}

}  // namespace

Array ctc_loss(const Array& scores, const Array& labels, const CtcOptions& options) {
  const Array yhat = widened(scores);
  check_shapes(yhat, labels);
  const DeviceScope scope(*yhat.node());
  const Sequences s = sequences_of(yhat, labels, options);
  const States states = last_states(s);
  const Array whole = logaddexp(states.blanks, shifted(states.labels));  // at k: k labels were given
  const int64_t count = s.label_count();
  const Array given =
      s.label_lengths.is_nothing() ? slice(whole, 0, count, count + 1) : take_along(whole, s.label_lengths, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Array losses = where(lt(given, impossible), options.zero_infinity ? 0.0 : infinity, -given);
  const Array each = yhat.rank() == 3 ? reshape(losses, {s.batch()}) : reshape(losses, Shape{});
  return aggregated(is_float(yhat.dtype()) ? cast(each, yhat.dtype()) : each, options.agg);
}

}  // namespace rosin
