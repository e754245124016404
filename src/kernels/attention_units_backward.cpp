// The gradient of attention by matrix units. Read first: attention_units.hpp.
#include "kernels/attention_units.hpp"

namespace rosin::kernels::units {
namespace {

constexpr int places_of_block = 32;

class BackwardUnits : UnitsKernel {
 public:
  BackwardUnits(const Attention& attention, Owned owned, int strips, int32_t dots)
      : UnitsKernel(attention, owned, strips, places_of_block,
                    owned == Owned::keys ? "attention_keys_units" : "attention_queries_units"),
        slope_(w_, a_, a_.slope(), a_.value_features()), state_(w_, a_.step.layout, a_.state()),
        dots_(w_.buffer(DType::Float32, {-1, dots})), own_(rows_of(own_rows(), a_.features())),
        own_values_(rows_of(own_rows(), a_.value_features())), walked_rows_(rows_of(walked_, a_.features())),
        walked_values_(rows_of(walked_, a_.value_features())), turned_(turned_of(walked_, a_.features())) {}

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
    const Matrix turned_slopes = turned_of(walked_, a_.value_features());
    Strips of_keys = zeros(tiles_of(a_.features())), of_values = zeros(tiles_of(a_.value_features()));
    fill(own_, k_, own_rows(), owned_head_, first_, logits_.keys());
    fill(own_values_, v_, own_rows(), owned_head_, first_, logits_.keys());
    const int each_head = a_.how.heads / a_.how.kv_heads;
    w_.loop(w_.index(each_head), [&](Term i) {
      const Term head = owned_head_ * each_head + i;
      w_.loop(logits_.begin_of_queries(first_), logits_.queries(), w_.index(walked_), [&](Term query) {
        fill(walked_rows_, q_, walked_, head, query, logits_.queries());
        fill(walked_values_, slope_, walked_, head, query, logits_.queries());
        fill_turned(turned_, q_, walked_, head, query, logits_.queries());
        fill_turned(turned_slopes, slope_, walked_, head, query, logits_.queries());
        const std::vector<Line> lines = walked_lines(query, head);
        w_.barrier();
        const Found found = find_slopes(query, head, lines);
        if (a_.result(2) >= 0) accumulate(of_values, found.weights, turned_slopes);
        if (a_.result(1) >= 0) accumulate(of_keys, found.slopes, turned_);
        w_.barrier();
      });
    });
    if (a_.result(1) >= 0) {
      store(of_keys, Sequence(w_, a_, a_.result(1), a_.features()), logits_.keys(),
            [&](int, int) { return number(a_.how.scale); });
    }
    if (a_.result(2) >= 0) {
      store(of_values, Sequence(w_, a_, a_.result(2), a_.value_features()), logits_.keys(),
            [&](int, int) { return number(1); });
    }
    return w_.finish(groups);
  }

 private:
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
  /// Of the queries that an item owns, two a strip; of those that it meets in a block, two a tile.
  std::vector<Line> own_lines() {
    std::vector<Line> lines;
    for (int i = 0; i < 2 * strips_; ++i) lines.push_back(line_of(row(i / 2, 2 * (i % 2)), owned_head_));
    return lines;
  }
  std::vector<Line> walked_lines(Term first, Term head) {
    std::vector<Line> lines;
    for (int i = 0; i < walked_ / 4; ++i) lines.push_back(line_of(place(0, i / 2, i % 2, first, head).query, head));
    return lines;
  }

  /// Of a block: the weights as values are summed by them, and the slopes of logits.
  Found find_slopes(Term other, Term head, const std::vector<Line>& lines) {
    Found found{products(own_in(own_), walked_rows_, a_.features()),
                products(own_in(own_values_), walked_values_, a_.value_features())};
    find_logits(found.weights, other, head);
    each(found.weights, [&](Term x, int strip, int tile, int n) {
      const Line& line = lines[static_cast<size_t>(owned_ == Owned::keys ? 2 * tile + n % 2 : 2 * strip + n / 2)];
      const Term slope = found.slopes[static_cast<size_t>(strip)][static_cast<size_t>(tile)][static_cast<size_t>(n)];
      const Term weight = exp2(x - line.state);
      const Term by_drop = logits_.drops() ? logits_.kept(place(strip, tile, n, other, head)) : number(1);
      w_.assign(slope, weight * (slope * by_drop - line.dot));
      w_.assign(x, weight * by_drop);
    });
    return found;
  }

  Sequence slope_;
  ArrayTerm state_;
  int dots_;
  Matrix own_, own_values_, walked_rows_, walked_values_, turned_;  // own_: of queries or keys; values: or slopes
};

}  // namespace

Launch backward(const Attention& attention, Owned owned, int strips, int32_t dots) {
  BackwardUnits kernel(attention, owned, strips, dots);
  return owned == Owned::keys ? kernel.write_keys() : kernel.write_queries();
}

}  // namespace rosin::kernels::units
