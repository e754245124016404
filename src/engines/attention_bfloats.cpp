// See attention_bfloats.hpp.
#include "engines/attention_bfloats.hpp"

#include <algorithm>
#include <cmath>

#include <rosin/error.hpp>

#include "engines/amx_kernel.hpp"
#include "engines/attention_head.hpp"
#include "engines/cuts.hpp"
#include "engines/onednn.hpp"

namespace rosin::engines {

#if defined(__x86_64__)

namespace {

using namespace attention;

constexpr int64_t side = 2 * amx_lines;  // of what is summed at a time

const uint16_t* bits(const BFloat* x) { return reinterpret_cast<const uint16_t*>(x); }

/// What a chunk works with. Panels: of the queries of a block, by features; of the values of all keys, and of the
/// weights and the keys of a part, by keys and features.
struct Memory {
  uint16_t *queries, *values, *weights, *keys;
  float *logits, *y, *highest, *sums, *factors, *lines;

  Memory(const AttentionSpec& spec, Scratch& scratch)
      : queries(scratch.numbers<uint16_t>(block_queries * round_up(spec.features, amx_steps))),
        values(scratch.numbers<uint16_t>(round_up(spec.value_features, amx_lines) * round_up(spec.keys, amx_steps))),
        weights(scratch.numbers<uint16_t>(block_queries * block_keys)),
        keys(scratch.numbers<uint16_t>(block_keys * round_up(spec.features, amx_steps))),
        logits(scratch.matrix<float>(block_keys)), y(scratch.matrix<float>(round_up(spec.value_features, amx_lines))),
        highest(scratch.matrix<float>(1)), sums(scratch.matrix<float>(1)), factors(scratch.matrix<float>(1)),
        lines(scratch.numbers<float>(block_queries * spec.value_features)) {}
};

/// The blocks of queries of one head.
class HeadOfBFloats {
 public:
  HeadOfBFloats(const AttentionSpec& spec, const AttentionBuffers<BFloat>& in, const Place& place, const Memory& memory)
      : spec_(spec), head_(spec, in, place), m_(memory),
        feature_blocks_(round_up(spec.features, amx_steps) / amx_steps),
        key_blocks_(round_up(spec.keys, amx_steps) / amx_steps) {
    pack_for_amx({bits(head_.value(0)), false, spec.v.place, spec.value_features, spec.keys, false, m_.values,
                  key_blocks_ * amx_block});
  }

  /// `y`: (value features, queries), queries `step` apart.
  void run_block(int64_t first, int64_t queries, BFloat* y, int64_t step) const {
    std::fill_n(m_.y, round_up(spec_.value_features, amx_lines) * block_queries, 0.0f);
    std::fill_n(m_.sums, block_queries, 0.0f);
    std::fill_n(m_.highest, block_queries, -infinity<float>);
    pack_for_amx({bits(head_.query(first)), true, spec_.q.place, queries, spec_.features, true, m_.queries,
                  feature_blocks_ * amx_block});
    head_.each_part(first, queries, [&](const Part& part) { add_part(part); });
    for (int64_t row = 0; row < queries; ++row) m_.factors[row] = 1.0f / m_.sums[row];
    gather_rows(m_.y, block_queries, m_.lines, spec_.value_features, spec_.value_features, queries);
    for (int64_t row = 0; row < queries; ++row) {
      const float* const line = m_.lines + row * spec_.value_features;
      for (int64_t f = 0; f < spec_.value_features; ++f) y[row * step + f] = BFloat(line[f] * m_.factors[row]);
    }
  }

 private:
  void add_part(const Part& part) const {
    find_logits(part);
    float* const logits = m_.logits + part.row;
    head_.finish_logits(part, logits);
    if (tile_kernels().attention.fold({logits, block_queries, part.rows(), part.keys, m_.highest + part.row,
                                       m_.sums + part.row, m_.factors + part.row})) {
      scale_rows(m_.factors + part.row, part.rows(), spec_.value_features, m_.y + part.row);
    }
    add_values(part);
  }

  void find_logits(const Part& part) const {
    const AmxBlocks keys = keys_of(part);
    for (int64_t row = 0; row < part.rows(); row += side) {
      for (int64_t key = 0; key < part.keys; key += side) {
        AmxBlocks some = keys;
        some.from += key / amx_lines * keys.panel;
        sum_on_amx({.a = m_.queries + (part.row + row) / amx_lines * feature_blocks_ * amx_block,
                    .panel = feature_blocks_ * amx_block,
                    .b = some,
                    .blocks = feature_blocks_,
                    .two_rows = part.rows() - row > amx_lines,
                    .two_columns = part.keys - key > amx_lines,
                    .c = m_.logits + part.row + row + key * block_queries,
                    .c_column = block_queries,
                    .accumulate = false});
      }
    }
    scale_numbers(m_.logits, part.keys * block_queries, static_cast<float>(spec_.scale));
  }

  /// Where they stand, if these fill registers.
  AmxBlocks keys_of(const Part& part) const {
    const uint16_t* const first = bits(head_.key(part.first_key));
    if (part.keys % amx_lines == 0 && spec_.features % amx_steps == 0)
      return {first, spec_.k.place, amx_steps, amx_lines * spec_.k.place};
    const int64_t panel = feature_blocks_ * amx_block;
    pack_for_amx({first, true, spec_.k.place, part.keys, spec_.features, false, m_.keys, panel});
    return {m_.keys, amx_steps, amx_block, panel};
  }

  void add_values(const Part& part) const {
    const int64_t blocks = round_up(part.keys, amx_steps) / amx_steps, panel = blocks * amx_block;
    for (int64_t row = 0; row < part.rows(); row += amx_lines)
      pack_floats_for_amx(m_.logits + part.row + row, block_queries, part.keys, m_.weights + row / amx_lines * panel);
    const uint16_t* const values = m_.values + part.first_key / amx_steps * amx_block;
    for (int64_t feature = 0; feature < spec_.value_features; feature += side) {
      for (int64_t row = 0; row < part.rows(); row += side) {
        sum_on_amx({.a = m_.weights + row / amx_lines * panel,
                    .panel = panel,
                    .b = {values + feature / amx_lines * key_blocks_ * amx_block, amx_steps, amx_block,
                          key_blocks_ * amx_block},
                    .blocks = blocks,
                    .two_rows = part.rows() - row > amx_lines,
                    .two_columns = spec_.value_features - feature > amx_lines,
                    .c = m_.y + part.row + row + feature * block_queries,
                    .c_column = block_queries,
                    .accumulate = true});
      }
    }
  }

  const AttentionSpec& spec_;
  Head<BFloat> head_;
  const Memory& m_;
  int64_t feature_blocks_, key_blocks_;
};

/// What few queries of one head need: nothing is packed, lanes are features.
struct FewMemory {
  float *queries, *dots, *logits, *sums_of_part, *y, *highest, *sums, *factors;
  BFloat* weights;

  FewMemory(const AttentionSpec& spec, Scratch& scratch)
      : queries(scratch.numbers<float>(few_queries * spec.features)),
        dots(scratch.numbers<float>(few_queries * block_keys)), logits(scratch.matrix<float>(block_keys)),
        sums_of_part(scratch.numbers<float>(few_queries * spec.value_features)),
        y(scratch.numbers<float>(few_queries * spec.value_features)), highest(scratch.matrix<float>(1)),
        sums(scratch.matrix<float>(1)), factors(scratch.matrix<float>(1)),
        weights(scratch.numbers<BFloat>(few_queries * block_keys)) {}
};

class FewOfBFloats {
 public:
  FewOfBFloats(const AttentionSpec& spec, const AttentionBuffers<BFloat>& in, const Place& place,
               const FewMemory& memory)
      : spec_(spec), head_(spec, in, place), m_(memory), kernels_(tile_kernels().of<BFloat>()) {}

  void run(int64_t queries, BFloat* y, int64_t step) const {
    std::fill_n(m_.y, queries * spec_.value_features, 0.0f);
    std::fill_n(m_.sums, block_queries, 0.0f);
    std::fill_n(m_.highest, block_queries, -infinity<float>);
    for (int64_t row = 0; row < queries; ++row) {
      const BFloat* const from = head_.query(row);
      for (int64_t f = 0; f < spec_.features; ++f)
        m_.queries[row * spec_.features + f] = from[f] * static_cast<float>(spec_.scale);
    }
    head_.each_part(0, queries, [&](const Part& part) { add_part(part); });
    for (int64_t row = 0; row < queries; ++row) {
      const float* const line = m_.y + row * spec_.value_features;
      for (int64_t f = 0; f < spec_.value_features; ++f) y[row * step + f] = BFloat(line[f] / m_.sums[row]);
    }
  }

 private:
  void add_part(const Part& part) const {
    find_logits(part);
    if (tile_kernels().attention.fold(
            {m_.logits, block_queries, part.rows(), part.keys, m_.highest, m_.sums, m_.factors})) {
      for (int64_t row = 0; row < part.queries; ++row) {
        float* const line = m_.y + row * spec_.value_features;
        for (int64_t f = 0; f < spec_.value_features; ++f) line[f] *= m_.factors[row];
      }
    }
    add_values(part);
  }

  void find_logits(const Part& part) const {
    DotProduct<BFloat, float> dots;
    dots.a = head_.key(part.first_key);
    dots.a_row = spec_.k.place;
    dots.b = m_.queries;
    dots.b_column = spec_.features;
    dots.c = m_.dots;
    dots.c_column = block_keys;
    dots.rows = part.keys;
    dots.columns = part.queries;
    dots.steps = spec_.features;
    kernels_.dots(dots);
    for (int64_t key = 0; key < part.keys; ++key) {
      float* const logits = m_.logits + key * block_queries;
      std::fill_n(logits, edge_queries, 0.0f);
      for (int64_t row = 0; row < part.queries; ++row) logits[row] = m_.dots[row * block_keys + key];
    }
    head_.finish_logits(part, m_.logits);
  }

  void add_values(const Part& part) const {
    for (int64_t key = 0; key < part.keys; ++key) {
      for (int64_t row = 0; row < part.queries; ++row)
        m_.weights[row * block_keys + key] = BFloat(m_.logits[key * block_queries + row]);
    }
    Sweep<BFloat> sweep;
    sweep.a = head_.value(part.first_key);
    sweep.a_step = spec_.v.place;
    sweep.b = m_.weights;
    sweep.b_step = 1;
    sweep.b_column = block_keys;
    sweep.sums = m_.sums_of_part;
    sweep.sums_column = spec_.value_features;
    sweep.rows = spec_.value_features;
    sweep.columns = part.queries;
    sweep.steps = part.keys;
    kernels_.sweep(sweep);
    for (int64_t i = 0; i < part.queries * spec_.value_features; ++i) m_.y[i] += m_.sums_of_part[i];
  }

  const AttentionSpec& spec_;
  Head<BFloat> head_;
  const FewMemory& m_;
  const HalfKernels<BFloat>& kernels_;
};

/// Logarithms of the sums of e^logit.
void write_state(const float* highest, const float* sums, int64_t queries, float* state) {
  for (int64_t row = 0; row < queries; ++row) state[row] = highest[row] + std::log(sums[row]);
}

}  // namespace

bool attends_bfloats() noexcept { return onednn_bfloat_products() == BFloatProducts::tiles; }

AttentionOfBFloats::AttentionOfBFloats(const AttentionSpec& spec)
    : spec_(spec), blocks_((spec.queries + block_queries - 1) / block_queries) {
  constexpr int64_t wanted = 16;  // chunks
  parts_ = std::clamp<int64_t>(wanted / std::max<int64_t>(spec.heads * spec.batch, 1), 1, blocks_);
}

size_t AttentionOfBFloats::scratch_bytes() const {
  Scratch count(nullptr);
  if (spec_.queries <= few_queries) FewMemory(spec_, count);
  else Memory(spec_, count);
  return count.used();
}

void AttentionOfBFloats::run(int64_t chunk, const AttentionBuffers<BFloat>& in, const AttentionResults<BFloat>& out,
                             void* scratch) const {
  const int64_t part = chunk % parts_, head = chunk / parts_ % spec_.heads, item = chunk / parts_ / spec_.heads;
  const int64_t step = spec_.heads * spec_.value_features;
  BFloat* const y = out.y + head * spec_.value_features + spec_.queries * item * step;
  float* const state = out.state ? out.state + spec_.queries * (head + spec_.heads * item) : nullptr;
  Scratch pieces(scratch);
  if (spec_.queries <= few_queries) {
    const FewMemory memory(spec_, pieces);
    FewOfBFloats(spec_, in, {head, item}, memory).run(spec_.queries, y, step);
    if (state) write_state(memory.highest, memory.sums, spec_.queries, state);
    return;
  }
  const AmxRegisters registers;
  const Memory memory(spec_, pieces);
  const HeadOfBFloats of_head(spec_, in, {head, item}, memory);
  for (int64_t block = part_begin(blocks_, parts_, part); block < part_begin(blocks_, parts_, part + 1); ++block) {
    const int64_t first = block * block_queries, queries = std::min(block_queries, spec_.queries - first);
    of_head.run_block(first, queries, y + first * step, step);
    if (state) write_state(memory.highest, memory.sums, queries, state + first);
  }
}

#else

bool attends_bfloats() noexcept { return false; }

AttentionOfBFloats::AttentionOfBFloats(const AttentionSpec&) {
  throw Error(ErrorKind::backend, "attention: this build knows no matrix registers; cast to Float32");
}
size_t AttentionOfBFloats::scratch_bytes() const { return 0; }
void AttentionOfBFloats::run(int64_t, const AttentionBuffers<BFloat>&, const AttentionResults<BFloat>&, void*) const {}

#endif

}  // namespace rosin::engines
