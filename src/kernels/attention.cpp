// Attention in blocks, and its gradient: a group takes some queries of a head (or some keys) and walks over the keys
// (the queries) in blocks of as many. The logits of a block stand in shared memory, those of all queries with all keys
// nowhere; a softmax goes on from block to block. The gradient computes logits again: once for the slopes of queries,
// once for those of keys and values, so that nothing is added up atomically. Read first: matmul.cpp, ops/attention.hpp.
// Source: Milakov, Gimelshein: Online normalizer calculation for softmax (2018); Dao: FlashAttention-2 (2023).
#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "kernels/attention.hpp"
#include "kernels/body.hpp"
#include "kernels/draws.hpp"
#include "kernels/lanes.hpp"
#include "kernels/sum.hpp"

namespace rosin::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Logits::Logits(KernelWriter& writer, const Attention& attention, double unit)
    : w_(writer), a_(attention), unit_(unit), queries_(w_.number(a_.queries())), keys_(w_.number(a_.keys())) {
  const Layout& layout = a_.step.layout;
  if (a_.how.has_bias != 0) bias_.emplace(w_, layout, a_.bias());
  if (a_.how.has_mask != 0) mask_.emplace(w_, layout, a_.mask());
  for (int i = 0; drops() && i < 2; ++i) {
    seed_[static_cast<size_t>(i)] = w_.scalar(ScalarType::int64, scalar_index(a_.step.view(a_.seed(i)).root, -1));
  }
  if (a_.how.causal != 0) ahead_ = w_.number(a_.keys() - a_.queries());
}

Term Logits::of(Term product, const LogitPlace& at) const {
  const Term made = w_.variable(number(-infinity));
  Term seen = at.query < queries_ && at.key < keys_;
  if (a_.how.causal != 0) seen = seen && at.key <= at.query + ahead_;
  const std::array coordinates{at.key, at.query, at.head, at.item};
  w_.when(seen, [&] {
    const auto assign = [&] {
      const Term scaled = unmasked(product);
      w_.assign(made, bias_ ? scaled + bias_->load(coordinates) * number(unit_) : scaled);
    };
    if (mask_) w_.when(mask_->load(coordinates), assign);
    else assign();
  });
  return made;
}

Term Logits::kept(const LogitPlace& at) const {
  const auto wide = [&](Term x) { return w_.convert(x, ScalarType::int64); };
  const Term line = wide(at.query) + wide(queries_) * (wide(at.head) + wide(at.item) * a_.how.heads);
  const Term drawn = drawn_element(ScalarType::float32, seed_[0], seed_[1], wide(at.key) + wide(keys_) * line);
  return w_.select(drawn < w_.literal(ScalarType::float32, a_.how.kept), number(1 / a_.how.kept), number(0));
}

Term Logits::end_of_keys(Term first, int count) const {
  return a_.how.causal != 0 ? min(keys_, first + ahead_ + count) : keys_;
}

Term Logits::begin_of_queries(Term first) const {
  return a_.how.causal != 0 ? max(first - ahead_, w_.index(0)) : w_.index(0);
}

Term Logits::all_seen(Term first_query, int queries, Term first_key, int keys) const {
  const Term inside = first_query + queries <= queries_ && first_key + keys <= keys_;
  return a_.how.causal != 0 ? inside && first_key + (keys - 1) <= first_query + ahead_ : inside;
}

Term function(const Attention& attention, const Op& op, Term x) {
  const Allowed how = allowed(attention.step.value.mode, size_of(attention.type()) == 2);
  return apply_op(*x.writer, op, x.type, how, {&x, 1});
}

namespace {

constexpr int side = 16;  // a group is side x side items, and as many features (or places) are in shared memory
static_assert(side * side == items_of_group);

/// Heads of a sequence; those from place `first` on are in a block.
struct Heads {
  const ArrayTerm& array;
  Term features, places;  // of a head; of the sequence
  Term head, item, first;

  Term feature(Term f) const { return head * features + f; }
  Term load(Term f, Term place) const { return array.load(std::array{feature(f), place, item}); }
};

/// What kernels of blocks have in common. An item computes rows x, x + side, ... (what the group owns) and columns
/// y, y + side, ... (what it walks over, or features).
class BlockKernel {
 public:
  BlockKernel(const Attention& attention, Owned owned, int each)
      : a_(attention), owned_(owned), each_(each), rows_(side * each),
        w_(name(attention, owned), items_of_group, attention.index()), q_(array(a_.query())), k_(array(a_.key())),
        v_(array(a_.value())), logits_(w_, a_), features_(w_.number(a_.features())),
        value_features_(w_.number(a_.value_features())), parts_{shared_rows(side), shared_rows(side)} {
    item_ = w_.item();
    y_ = item_ / side;
    x_ = item_ - y_ * side;
  }

 protected:
  static std::string name(const Attention& attention, Owned owned) {
    if (!attention.backward) return "attention";
    return owned == Owned::keys ? "attention_keys" : "attention_queries";
  }
  ArrayTerm array(int32_t value) { return {w_, a_.step.layout, value}; }
  /// A shared array of columns of rows_ elements; a gap between them keeps items from meeting in a memory bank.
  int shared_rows(int columns) { return w_.shared(a_.compute(), columns * (rows_ + 1)); }
  Term place_in(Term row, Term column) const { return column * (rows_ + 1) + row; }
  Term row(int i) const { return x_ + i * side; }
  Term column(int j) const { return y_ + j * side; }

  Term number(double value) { return w_.literal(a_.compute(), value); }
  std::vector<Term> zeros(int count) {
    std::vector<Term> made(static_cast<size_t>(count));
    for (Term& x : made) x = w_.variable(number(0));
    return made;
  }
  Term exp(Term x) {
    static const Op& op = *find_op("exp");
    return function(a_, op, x);
  }

  /// How many blocks of features a group computes, and how many groups share those of one head.
  int feature_blocks() const { return static_cast<int>(std::min<int64_t>(blocks_of_features(), most_blocks())); }
  int64_t feature_groups() const { return groups_for(blocks_of_features(), most_blocks()); }
  int64_t blocks_of_features() const {
    const bool both = owned_ == Owned::keys;
    const int64_t of_result = both || !a_.backward ? a_.value_features() : 0;
    return groups_for(std::max(of_result, a_.backward ? a_.features() : 0), rows_);
  }
  int64_t most_blocks() const { return std::max(1, 32 / (each_ * each_)); }

  /// Reads which block of which head and item the group owns. The number of groups.
  int64_t begin() {
    const bool of_keys = owned_ == Owned::keys;
    const int64_t blocks = groups_for(of_keys ? a_.keys() : a_.queries(), rows_);
    const int64_t heads = of_keys ? a_.how.kv_heads : a_.how.heads, groups = feature_groups();
    const std::vector<Term> at = w_.coordinates(
        w_.group(0), std::array{w_.number(blocks), w_.index(heads), w_.number(a_.batch()), w_.number(groups)});
    first_ = at[0] * rows_;
    owned_head_ = at[1];
    batch_item_ = at[2];
    first_feature_ = at[3] * (feature_blocks() * rows_);
    return blocks * heads * a_.batch() * groups;
  }
  Term kv_head(Term head) const { return head / (a_.how.heads / a_.how.kv_heads); }
  Heads queries_at(Term first, Term head) const { return {q_, features_, logits_.queries(), head, batch_item_, first}; }
  Heads keys_at(Term first, Term head) const {
    return {k_, features_, logits_.keys(), kv_head(head), batch_item_, first};
  }
  Heads values_at(Term first, Term head) const {
    return {v_, value_features_, logits_.keys(), kv_head(head), batch_item_, first};
  }

  /// Fills a part with `side` steps of rows_ elements: element(i, l) in row i. `along`: steps stand side by side in
  /// memory, else rows do.
  template <class F> void fill(int part, bool along, F&& element) {
    for (int r = 0; r < each_; ++r) {
      const Term linear = item_ + r * items_of_group;
      const int fast = along ? side : rows_;
      const Term slow = linear / fast, rest = linear - slow * fast;
      const Term i = along ? slow : rest, l = along ? rest : slow;
      w_.shared_store(part, place_in(i, l), element(i, l));
    }
  }
  Term load_or_zero(const Heads& x, Term f, Term place) {
    const Term value = w_.variable(number(0));
    w_.when(f < x.features && place < x.places, [&] { w_.assign(value, x.load(f, place)); });
    return value;
  }

  /// The products of the vectors of one block with those of another: element (i, j) of an item is that of row i and
  /// column j.
  std::vector<Term> products(const Heads& a, const Heads& b) {
    std::vector<Term> sums = zeros(each_ * each_);
    w_.loop(w_.index(0), a.features, w_.index(side), [&](Term first) {
      fill(parts_[0], true, [&](Term i, Term l) { return load_or_zero(a, first + l, a.first + i); });
      fill(parts_[1], true, [&](Term i, Term l) { return load_or_zero(b, first + l, b.first + i); });
      w_.barrier();
      w_.loop(w_.index(side), [&](Term l) { multiply(sums, 0, parts_[0], l, l); });
      w_.barrier();
    });
    return sums;
  }
  /// sums += the rows of `matrix` (its columns are the block's places) times features of the block's vectors.
  void accumulate(std::vector<Term>& sums, int matrix, const Heads& x) {
    for (int block = 0; block < feature_blocks(); ++block) {
      const Term feature = first_feature_ + block * rows_;
      w_.loop(w_.index(0), w_.index(rows_), w_.index(side), [&](Term first) {
        fill(parts_[1], false, [&](Term i, Term l) { return load_or_zero(x, feature + i, x.first + (first + l)); });
        w_.barrier();
        w_.loop(w_.index(side), [&](Term l) { multiply(sums, block, matrix, first + l, l); });
        w_.barrier();
      });
    }
  }

  /// The part of a logit's row and column in a block whose others begin at `other`.
  LogitPlace place(Term row, Term column, Term other, Term head) const {
    const Term own = first_ + row, walked = other + column;
    const bool of_keys = owned_ == Owned::keys;
    return {of_keys ? walked : own, of_keys ? own : walked, head, batch_item_};
  }

  /// Writes sums, times a factor for each row, to the features that the group computes.
  template <class F> void store(const std::vector<Term>& sums, int32_t result, Term features, Term places, F&& factor) {
    const ArrayTerm out = array(result);
    for (size_t n = 0; n < sums.size(); ++n) {
      const int at = static_cast<int>(n), block = at / (each_ * each_), i = at % each_, j = at / each_ % each_;
      const Term feature = first_feature_ + column(j) + block * rows_, own = first_ + row(i);
      w_.when(feature < features && own < places, [&] {
        out.store(std::array{owned_head_ * features + feature, own, batch_item_}, sums[n] * factor(i));
      });
    }
  }

  const Attention& a_;
  Owned owned_;
  int each_, rows_;  // elements of an item along each side, and of the group
  KernelWriter w_;
  ArrayTerm q_, k_, v_;
  Logits logits_;
  Term features_, value_features_;
  std::array<int, 2> parts_;  // of the vectors of two blocks, in shared memory
  Term item_{}, x_{}, y_{};
  Term first_{}, owned_head_{}, batch_item_{}, first_feature_{};

 private:
  void multiply(std::vector<Term>& sums, int block, int matrix, Term column_of_matrix, Term l) {
    std::vector<Term> from_a, from_b;
    for (int i = 0; i < each_; ++i) from_a.push_back(w_.shared_load(matrix, place_in(row(i), column_of_matrix)));
    for (int j = 0; j < each_; ++j) from_b.push_back(w_.shared_load(parts_[1], place_in(column(j), l)));
    for (int n = 0; n < each_ * each_; ++n) {
      add_product(sums[static_cast<size_t>(block * each_ * each_ + n)], from_a[static_cast<size_t>(n % each_)],
                  from_b[static_cast<size_t>(n / each_)]);
    }
  }
};

class ForwardKernel : BlockKernel {
 public:
  ForwardKernel(const Attention& attention, int each)
      : BlockKernel(attention, Owned::queries, each), lanes_(items_of_group / rows_), weights_(shared_rows(rows_)),
        found_(w_.shared(a_.compute(), items_of_group)), factors_(w_.shared(a_.compute(), rows_)) {}

  Launch write() {
    const int64_t groups = begin();
    lane_ = item_ / rows_;
    line_ = item_ - lane_ * rows_;
    highest_ = w_.variable(number(-infinity));
    total_ = w_.variable(number(0));
    std::vector<Term> sums = zeros(feature_blocks() * each_ * each_);
    w_.loop(w_.index(0), logits_.end_of_keys(first_, rows_), w_.index(rows_), [&](Term key) {
      const std::vector<Term> found = products(queries_at(first_, owned_head_), keys_at(key, owned_head_));
      for (int n = 0; n < each_ * each_; ++n) {
        const Term at_row = row(n % each_), at_column = column(n / each_);
        w_.shared_store(weights_, place_in(at_row, at_column),
                        logits_.of(found[static_cast<size_t>(n)], place(at_row, at_column, key, owned_head_)));
      }
      w_.barrier();
      weigh(key);
      for (size_t n = 0; n < sums.size(); ++n) w_.assign(sums[n], sums[n] * factor(static_cast<int>(n) % each_));
      accumulate(sums, weights_, values_at(key, owned_head_));
    });
    finish();
    if (a_.result(0) >= 0)
      store(sums, a_.result(0), value_features_, logits_.queries(), [&](int i) { return factor(i); });
    return w_.finish(groups);
  }

 private:
  Term factor(int i) { return w_.shared_load(factors_, row(i)); }
  /// What all items of a line have found, combined in their order.
  template <class F> Term combined(Term start, F&& combine) {
    Term all = start;
    for (int lane = 0; lane < lanes_; ++lane) all = combine(all, w_.shared_load(found_, line_ + lane * rows_));
    return all;
  }
  template <class F> void each_key(F&& f) {
    w_.loop(lane_, w_.index(rows_), w_.index(lanes_), [&](Term column) { f(column, place_in(line_, column)); });
  }

  /// Logits become weights by the highest logit so far; factors_: what earlier weights are to be multiplied by.
  void weigh(Term first_key) {
    const Term own = w_.variable(highest_), sum = w_.variable(number(0));
    each_key([&](Term, Term at) { w_.assign(own, max(own, w_.shared_load(weights_, at))); });
    w_.shared_store(found_, item_, own);
    w_.barrier();
    const Term best = combined(highest_, [](Term x, Term y) { return max(x, y); });
    // (Of a query that has seen no key yet all weights are 0.)
    const Term base = w_.select(best == number(-infinity), number(0), best), before = exp(highest_ - base);
    w_.assign(highest_, best);
    w_.barrier();
    each_key([&](Term column, Term at) {
      const Term weight = exp(w_.shared_load(weights_, at) - base);
      w_.assign(sum, sum + weight);
      const LogitPlace logit_place = place(line_, column, first_key, owned_head_);
      w_.shared_store(weights_, at, logits_.drops() ? weight * logits_.kept(logit_place) : weight);
    });
    w_.shared_store(found_, item_, sum);
    w_.when(lane_ == 0, [&] { w_.shared_store(factors_, line_, before); });
    w_.barrier();
    w_.assign(total_, combined(total_ * before, [](Term x, Term y) { return x + y; }));
  }

  /// Factors that divide by the sums of weights; the state.
  void finish() {
    w_.barrier();
    w_.when(lane_ == 0, [&] { w_.shared_store(factors_, line_, number(1) / total_); });
    if (a_.result(1) >= 0) {
      static const Op& log = *find_op("log");
      const ArrayTerm state = array(a_.result(1));
      const Term query = first_ + line_;
      w_.when(lane_ == 0 && query < logits_.queries() && first_feature_ == 0, [&] {
        state.store(std::array{query, owned_head_, batch_item_}, highest_ + function(a_, log, total_));
      });
    }
    w_.barrier();
  }

  int lanes_;  // items that share a line of weights
  int weights_, found_, factors_;
  Term lane_{}, line_{}, highest_{}, total_{};
};

/// dots: of each line (query, head, item) the product of the result and its slope. Neighbouring items share a line.
Launch write_dots(const Attention& a, int32_t dots, const Abilities& device) {
  constexpr int64_t lanes = 16;
  KernelWriter w("attention_dots", items_of_group, a.index());
  const ArrayTerm y(w, a.step.layout, a.y()), slope(w, a.step.layout, a.slope());
  const int out = w.buffer(a.compute() == ScalarType::float64 ? DType::Float64 : DType::Float32, {-1, dots});
  const Term line = w.quotient(w.global(), w.index(lanes)), lane = w.global() % lanes, lines = w.number(a.lines());
  const std::vector<Term> at =
      w.coordinates(min(line, lines - 1), std::array{w.number(a.queries()), w.index(a.how.heads), w.number(a.batch())});
  const Term features = w.number(a.value_features()), sum = w.variable(w.literal(a.compute(), 0));
  w.loop(lane, features, w.index(lanes), [&](Term f) {
    const std::array place{at[1] * features + f, at[0], at[2]};
    add_product(sum, y.load(place), slope.load(place));
  });
  static const Reducer& sums = *find_op("sum")->reducer;
  const Term all = Combiner(w, device).combine(sums, sum, lane, w.index(lanes));
  w.when(line < lines && lane < w.index(1), [&] { w.store(out, line, all); });
  return w.finish(groups_for(a.lines() * lanes));
}

/// With weights W = e^(logits - state) and G = the slopes of weights, v'dy: the slopes of logits are W (G - dots).
class BackwardKernel : BlockKernel {
 public:
  BackwardKernel(const Attention& attention, Owned owned, int each, int32_t dots)
      : BlockKernel(attention, owned, each), slope_(array(a_.slope())), state_(array(a_.state())),
        dots_(w_.buffer(a_.compute() == ScalarType::float64 ? DType::Float64 : DType::Float32, {-1, dots})),
        slopes_(shared_rows(rows_)), weights_(owned == Owned::keys ? shared_rows(rows_) : -1) {}

  Launch write_queries() {
    const int64_t groups = begin();
    std::vector<Term> sums = zeros(feature_blocks() * each_ * each_);
    w_.loop(w_.index(0), logits_.end_of_keys(first_, rows_), w_.index(rows_), [&](Term key) {
      const Heads keys = keys_at(key, owned_head_);
      find_slopes(key, owned_head_, products(queries_at(first_, owned_head_), keys),
                  products(slopes_at(first_, owned_head_), values_at(key, owned_head_)));
      accumulate(sums, slopes_, keys);
    });
    store(sums, a_.result(0), features_, logits_.queries(), [&](int) { return number(a_.how.scale); });
    return w_.finish(groups);
  }

  Launch write_keys() {
    const int64_t groups = begin();
    const int each_head = a_.how.heads / a_.how.kv_heads;
    std::vector<Term> of_keys = zeros(feature_blocks() * each_ * each_), of_values = of_keys;
    for (Term& x : of_values) x = w_.variable(number(0));
    const auto add_head = [&](Term head) {
      w_.loop(logits_.begin_of_queries(first_), logits_.queries(), w_.index(rows_), [&](Term query) {
        const Heads queries = queries_at(query, head), slopes = slopes_at(query, head);
        find_slopes(query, head, products(keys_at(first_, head), queries), products(values_at(first_, head), slopes));
        if (a_.result(2) >= 0) accumulate(of_values, weights_, slopes);
        if (a_.result(1) >= 0) accumulate(of_keys, slopes_, queries);
      });
    };
    if (each_head == 1) add_head(owned_head_);
    else w_.loop(w_.index(each_head), [&](Term i) { add_head(owned_head_ * each_head + i); });
    if (a_.result(1) >= 0)
      store(of_keys, a_.result(1), features_, logits_.keys(), [&](int) { return number(a_.how.scale); });
    if (a_.result(2) >= 0)
      store(of_values, a_.result(2), value_features_, logits_.keys(), [&](int) { return number(1); });
    return w_.finish(groups);
  }

 private:
  Heads slopes_at(Term first, Term head) const {
    return {slope_, value_features_, logits_.queries(), head, batch_item_, first};
  }

  /// Weights and slopes of a block, from the products of queries and keys, and of slopes and values.
  void find_slopes(Term other, Term head, const std::vector<Term>& logits, const std::vector<Term>& slopes) {
    for (int n = 0; n < each_ * each_; ++n) {
      const Term at_row = row(n % each_), at_column = column(n / each_);
      const LogitPlace at = place(at_row, at_column, other, head);
      const Term state = w_.variable(number(0)), dot = w_.variable(number(0));
      w_.when(at.query < logits_.queries(), [&] {
        // (A query that sees no key has no weights.)
        const Term found = state_.load(std::array{at.query, at.head, at.item});
        const Term blind = found == number(-infinity), line = logits_.line(at.query, at.head, at.item);
        w_.assign(state, w_.select(blind, number(0), found));
        w_.assign(dot, w_.select(blind, number(0), w_.load(dots_, line)));
      });
      const Term weight = exp(logits_.of(logits[static_cast<size_t>(n)], at) - state);
      const Term by_drop = logits_.drops() ? logits_.kept(at) : number(1);
      const Term slope = weight * (slopes[static_cast<size_t>(n)] * by_drop - dot);
      w_.shared_store(slopes_, place_in(at_row, at_column), slope);
      if (weights_ >= 0) w_.shared_store(weights_, place_in(at_row, at_column), weight * by_drop);
    }
    w_.barrier();
  }

  ArrayTerm slope_, state_;
  int dots_, slopes_, weights_;
};

/// Elements that an item computes along each side: many as long as they fit shared memory and groups keep a device
/// busy. `matrices`: square ones that stand in shared memory.
int elements_of_item(const Attention& a, Owned owned, int matrices, const Abilities& device) {
  constexpr int64_t groups_of_device = 64;
  const int64_t own = owned == Owned::keys ? a.keys() : a.queries(), walked = a.keys() + a.queries() - own;
  const int64_t heads = (owned == Owned::keys ? a.how.kv_heads : a.how.heads) * a.batch();
  for (const int each : {4, 2}) {
    const int64_t rows = side * each, columns = matrices * rows + 2 * side;
    const int64_t bytes = (columns * (rows + 1) + items_of_group + rows) * bytes_of(a.compute()) + 64;
    const bool fits = bytes <= device.shared_bytes && std::min(own, walked) > rows / 2;
    if (fits && (each == 2 || groups_for(own, rows) * heads >= groups_of_device)) return each;
  }
  return 1;
}

}  // namespace

void write_attention(const Layout& layout, const Step& call, LaunchList& list) {
  const CallStep step(layout, call.node);
  const Attention a(step, call);
  const auto add = [&](std::vector<Launch> by_units, auto&& otherwise) {
    if (by_units.empty()) by_units.push_back(otherwise());
    std::move(by_units.begin(), by_units.end(), std::back_inserter(list.launches));
  };
  const auto elements = [&](Owned owned, int matrices) { return elements_of_item(a, owned, matrices, list.device); };
  if (!a.backward) {
    return add(forward_by_units(a, list.device), [&] { return ForwardKernel(a, elements(Owned::queries, 1)).write(); });
  }
  const int32_t dots = list.scratch(a.lines() * bytes_of(a.compute()));
  list.launches.push_back(write_dots(a, dots, list.device));
  if (a.result(0) >= 0) {
    add(backward_by_units(a, Owned::queries, dots, list.device),
        [&] { return BackwardKernel(a, Owned::queries, elements(Owned::queries, 1), dots).write_queries(); });
  }
  if (a.result(1) >= 0 || a.result(2) >= 0) {
    add(backward_by_units(a, Owned::keys, dots, list.device),
        [&] { return BackwardKernel(a, Owned::keys, elements(Owned::keys, 2), dots).write_keys(); });
  }
}

}  // namespace rosin::kernels
