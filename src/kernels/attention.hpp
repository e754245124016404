// What kernels of attention have in common: the op as the graph has it, and its logits.
// Read first: launches.hpp, ops/attention.hpp. Read next: attention.cpp (for all devices), attention_units.hpp.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/elements.hpp"

namespace rosin::kernels {

/// What groups own: queries, whose results or slopes they compute, or keys, with their slopes and those of values.
enum class Owned : uint8_t { queries, keys };

/// The op as the graph has it.
struct Attention {
  const CallStep& step;
  const Step& call;
  AttentionAttributes how;
  bool backward;

  Attention(const CallStep& of, const Step& by)
      : step(of), call(by), how(of.attributes<AttentionAttributes>()), backward(of.value.op->results == 3) {}

  // Operands: queries, keys, values; of the gradient the result, its state and its slope; what is optional.
  int32_t query() const { return step.in(0); }
  int32_t key() const { return step.in(1); }
  int32_t value() const { return step.in(2); }
  int32_t y() const { return step.in(3); }
  int32_t state() const { return backward ? step.in(4) : result(1); }
  int32_t slope() const { return step.in(5); }
  int32_t bias() const { return step.in(optional()); }
  int32_t mask() const { return step.in(optional() + how.has_bias); }
  int32_t seed(int i) const { return step.in(optional() + how.has_bias + how.has_mask + i); }
  int32_t result(size_t i) const { return call.results[i]; }  // -1: nobody reads it

  int64_t queries() const { return step.view(query()).sizes[1]; }
  int64_t keys() const { return step.view(key()).sizes[1]; }
  int64_t batch() const { return step.view(query()).rank == 3 ? step.view(query()).sizes[2] : 1; }
  int64_t features() const { return step.view(query()).sizes[0] / how.heads; }
  int64_t value_features() const { return step.view(value()).sizes[0] / how.kv_heads; }
  int64_t lines() const { return queries() * how.heads * batch(); }
  DType type() const { return step.dtype(query()); }
  ScalarType compute() const { return scalar_type(type()); }

  ScalarType index() const {
    std::vector<int32_t> all = {query(), key(), value()};
    if (backward) all.insert(all.end(), {y(), slope(), state()});
    if (how.has_bias != 0) all.push_back(bias());
    if (how.has_mask != 0) all.push_back(mask());
    for (const int32_t made : call.results) {
      if (made >= 0) all.push_back(made);
    }
    return index_type(step.layout, all);
  }

 private:
  int optional() const { return backward ? 6 : 3; }
};

/// Where a logit stands.
struct LogitPlace {
  Term query, key, head, item;
};

/// Logits and what becomes of them, times `unit`.
class Logits {
 public:
  Logits(KernelWriter& writer, const Attention& attention, double unit = 1);

  /// From the product of a query and a key; minus infinity where the query does not see the key.
  Term of(Term product, const LogitPlace& at) const;
  /// The same where queries see all keys: without a bias, a mask and places beyond the ends.
  Term unmasked(Term product) const { return product * number(a_.how.scale * unit_); }
  /// Whether there is a bias or a mask.
  bool has_more() const { return bias_ || mask_; }
  /// 0 for a weight that is dropped, else what it is multiplied by.
  Term kept(const LogitPlace& at) const;
  bool drops() const { return a_.how.is_dropped != 0; }

  /// Keys before this one may be seen by the queries from `first` to `first + count`.
  Term end_of_keys(Term first, int count) const;
  /// Queries from this one on may see the keys from `first` on.
  Term begin_of_queries(Term first) const;
  /// Whether all of `queries` from the first on see all of `keys`, but for a mask.
  Term all_seen(Term first_query, int queries, Term first_key, int keys) const;

  Term queries() const { return queries_; }
  Term keys() const { return keys_; }
  /// The number of a line of logits: its place in the state.
  Term line(Term query, Term head, Term item) const { return query + queries_ * (head + item * a_.how.heads); }

 private:
  Term number(double value) const { return w_.literal(a_.compute(), value); }

  KernelWriter& w_;
  const Attention& a_;
  double unit_;
  Term queries_, keys_, ahead_{};
  std::optional<ArrayTerm> bias_, mask_;
  std::array<Term, 2> seed_{};
};

/// An op's body on a number, in the mode of the attention.
Term function(const Attention& attention, const Op& op, Term x);

/// The same by the matrix units of the device, or nothing where it has none for these arrays and this mode. `dots`: as
/// write_dots fills it.
std::vector<Launch> forward_by_units(const Attention& attention, const Abilities& device);
std::vector<Launch> backward_by_units(const Attention& attention, Owned owned, int32_t dots, const Abilities& device);

}  // namespace rosin::kernels
