// The gradient of attention by matrix units. Read first: attention_units.hpp.
#include "kernels/attention_units.hpp"

namespace rosin::kernels::units {
namespace {

class BackwardUnits : UnitsKernel {
 public:
  BackwardUnits(const Attention& attention, const Shape& shape, Owned owned, const Work& work, int32_t dots)
      : UnitsKernel(attention, shape, owned, work.strips, work.places,
                    owned == Owned::keys ? "attention_keys_units" : "attention_queries_units"),
        only_(work.only), slope_(w_, a_, a_.slope(), a_.value_features()), state_(w_, a_.step.layout, a_.state()),
        dots_(w_.buffer(DType::Float32, {-1, dots})), own_(rows_of(own_rows(), a_.features())),
        own_values_(rows_of(own_rows(), a_.value_features())), walked_rows_(rows_of(walked_, a_.features())),
        walked_values_(rows_of(walked_, a_.value_features())),
        turned_(only_ == of_values ? Matrix{} : turned_of(walked_, a_.features())) {}

  Launch write_queries() {
    const int64_t groups = begin();
    Strips sums = zeros(tiles_of(a_.features()));
    fill(own_, q_, own_rows(), owned_head_, first_, logits_.queries());
    fill(own_values_, slope_, own_rows(), owned_head_, first_, logits_.queries());
    const std::vector<Line> lines = own_lines();
    w_.loop(w_.index(0), logits_.end_of_keys(first_, own_rows()), w_.index(walked_), [&](Term key) {
      const Term head = kv_head(owned_head_);
      fill(walked_rows_, k_, walked_, head, key, logits_.keys());
      fill(walked_values_, v_, walked_, head, key, logits_.keys());
      fill_turned(turned_, k_, walked_, head, key, logits_.keys());
      w_.barrier();
      accumulate(sums, find_slopes(key, owned_head_, lines).slopes, turned_);
      w_.barrier();
    });
    store(sums, Sequence(w_, a_, a_.result(0), a_.features()), logits_.queries(),
          [&](int, int) { return number(a_.how.scale); });
    return w_.finish(groups);
  }

  Launch write_keys() {
    const int64_t groups = begin();
    const bool has_keys = only_ != of_values, has_values = only_ != of_keys;
    const Matrix turned_slopes = has_values ? turned_of(walked_, a_.value_features()) : Matrix{};
    Strips keys, values;
    if (has_keys) keys = zeros(tiles_of(a_.features()));
    if (has_values) values = zeros(tiles_of(a_.value_features()));
    fill(own_, k_, own_rows(), owned_head_, first_, logits_.keys());
    fill(own_values_, v_, own_rows(), owned_head_, first_, logits_.keys());
    const int each_head = a_.how.heads / a_.how.kv_heads;
    w_.loop(w_.index(each_head), [&](Term i) {
      const Term head = owned_head_ * each_head + i;
      w_.loop(logits_.begin_of_queries(first_), logits_.queries(), w_.index(walked_), [&](Term query) {
        fill(walked_rows_, q_, walked_, head, query, logits_.queries());
        fill(walked_values_, slope_, walked_, head, query, logits_.queries());
        if (has_keys) fill_turned(turned_, q_, walked_, head, query, logits_.queries());
        if (has_values) fill_turned(turned_slopes, slope_, walked_, head, query, logits_.queries());
        const std::vector<Line> lines = walked_lines(query, head);
        w_.barrier();
        const Found found = find_slopes(query, head, lines);
        if (has_values && a_.result(of_values) >= 0) accumulate(values, found.weights, turned_slopes);
        if (has_keys && a_.result(of_keys) >= 0) accumulate(keys, found.slopes, turned_);
        w_.barrier();
      });
    });
    if (has_keys && a_.result(of_keys) >= 0) {
      store(keys, Sequence(w_, a_, a_.result(of_keys), a_.features()), logits_.keys(),
            [&](int, int) { return number(a_.how.scale); });
    }
    if (has_values && a_.result(of_values) >= 0) {
      store(values, Sequence(w_, a_, a_.result(of_values), a_.value_features()), logits_.keys(),
            [&](int, int) { return number(1); });
    }
    return w_.finish(groups);
  }

 private:
  static constexpr int of_keys = 1, of_values = 2;  // results

  struct Found {
    Strips weights, slopes;
  };

  /// Of a query: its state, times log2(e), and its dot; 0 beyond the end and where it sees no key, so that it has no
  /// weights.
  struct Line {
    Term state, dot;
  };
  Line line_of(Term query, Term head) {
    const Line line{w_.variable(number(0)), w_.variable(number(0))};
    w_.when(query < logits_.queries(), [&] {
      const Term state = state_.load(std::array{query, head, batch_item_});
      w_.when(state != number(-infinity), [&] {
        w_.assign(line.state, state * number(log2_of_e));
        w_.assign(line.dot, w_.load(dots_, logits_.line(query, head, batch_item_)));
      });
    });
    return line;
  }
  /// Of the queries that an item owns, and of those that it meets in a block, some a tile.
  std::vector<Line> own_lines() {
    std::vector<Line> lines;
    for (int i = 0; i < shape_.lines * strips_; ++i) {
      lines.push_back(line_of(row(i / shape_.lines, shape_.next * (i % shape_.lines)), owned_head_));
    }
    return lines;
  }
  std::vector<Line> walked_lines(Term first, Term head) {
    std::vector<Line> lines;
    const int next = shape_.next, count = walked_ / shape_.width * next;
    for (int i = 0; i < count; ++i) lines.push_back(line_of(place(0, i / next, i % next, first, head).query, head));
    return lines;
  }

  /// Of a block: the weights as values are summed by them, and the slopes of logits.
  Found find_slopes(Term other, Term head, const std::vector<Line>& lines) {
    Found found{products(own_in(own_), walked_rows_, a_.features()),
                products(own_in(own_values_), walked_values_, a_.value_features())};
    find_logits(found.weights, other, head);
    each(found.weights, [&](Term x, int strip, int tile, int n) {
      const int next = shape_.next;
      const Line& line =
          lines[static_cast<size_t>(owned_ == Owned::keys ? next * tile + n % next : shape_.lines * strip + n / next)];
      const Term slope = found.slopes[static_cast<size_t>(strip)][static_cast<size_t>(tile)][static_cast<size_t>(n)];
      const Term weight = exp2(x - line.state);
      const Term by_drop = logits_.drops() ? logits_.kept(place(strip, tile, n, other, head)) : number(1);
      w_.assign(slope, weight * (slope * by_drop - line.dot));
      w_.assign(x, weight * by_drop);
    });
    return found;
  }

  const int only_;
  Sequence slope_;
  ArrayTerm state_;
  int dots_;
  Matrix own_, own_values_, walked_rows_, walked_values_, turned_;  // own_: of queries or keys; values: or slopes
};

}  // namespace

Launch backward(const Attention& attention, const Shape& shape, Owned owned, const Work& work, int32_t dots) {
  BackwardUnits kernel(attention, shape, owned, work, dots);
  return owned == Owned::keys ? kernel.write_keys() : kernel.write_queries();
}

}  // namespace rosin::kernels::units
