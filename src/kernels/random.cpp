// Random draws: the words of Philox4x32-10, as base/philox.hpp computes them, so that every device draws what the CPU
// draws. Numbers in [0, 1) are values of fused kernels; of integers one item takes a block of four words. Read first:
// base/philox.hpp, elements.hpp.
#include <array>

#include <rosin/error.hpp>

#include "base/philox.hpp"
#include "kernels/bit_terms.hpp"
#include "kernels/draws.hpp"
#include "kernels/elements.hpp"

namespace rosin::kernels {
namespace {

constexpr ScalarType word = ScalarType::uint32, wide = ScalarType::int64;
using WordTerms = std::array<Term, 4>;

Term low_word(Term x) { return x.writer->convert(x, word); }
Term high_word(Term x) { return low_word(shifted_right(x, 32)); }
Term low_half(Term x) { return bits_and(x, 0xffffffff); }
// Two words as one Int64.
Term joined(Term low, Term high) {
  KernelWriter& writer = *low.writer;
  return bits_or(writer.convert(low, wide), shifted_left(writer.convert(high, wide), 32));
}

// The words of block number `block` (Int64) under the key (Int64). Bits of the 64-bit products do not depend on signs.
WordTerms block_words(Term key, Term block) {
  KernelWriter& writer = *key.writer;
  WordTerms c = {low_word(block), high_word(block), writer.bits(word, 0),
                 writer.bits(word, static_cast<int64_t>(philox::Purpose::draw))};
  Term low = low_word(key), high = high_word(key);
  for (int round = 0; round < philox::rounds; ++round) {
    const Term first = writer.convert(c[0], wide) * writer.bits(wide, philox::first_factor);
    const Term second = writer.convert(c[2], wide) * writer.bits(wide, philox::second_factor);
    c = {bits_xor(bits_xor(high_word(second), c[1]), low), low_word(second),
         bits_xor(bits_xor(high_word(first), c[3]), high), low_word(first)};
    low = low + writer.bits(word, philox::low_step);
    high = high + writer.bits(word, philox::high_step);
  }
  return c;
}

// [0, 1) from the upper 24 of 32 bits, from the upper 53 of 64.
Term unit_float(Term bits) {
  KernelWriter& writer = *bits.writer;
  const Term whole = writer.convert(writer.convert(shifted_right(bits, 8), ScalarType::int32), ScalarType::float32);
  return whole * writer.literal(ScalarType::float32, 0x1p-24);
}
Term unit_double(Term low, Term high) {
  KernelWriter& writer = *low.writer;
  const Term whole = writer.convert(shifted_right(joined(low, high), 11), ScalarType::float64);
  return whole * writer.literal(ScalarType::float64, 0x1p-53);
}

// The upper 64 bits of an unsigned product, from 32-bit parts.
Term high_product(Term a, Term b) {
  const Term a_low = low_half(a), a_high = shifted_right(a, 32), b_low = low_half(b), b_high = shifted_right(b, 32);
  const Term middle = a_high * b_low + shifted_right(a_low * b_low, 32);
  const Term other = a_low * b_high + low_half(middle);
  return a_high * b_high + shifted_right(middle, 32) + shifted_right(other, 32);
}

// Integer operand i of the step, a C++ number.
Term argument(KernelWriter& writer, const CallStep& step, int i) {
  return writer.scalar(wide, scalar_index(step.view(step.in(i)).root, -1));
}

// Element i of the result stands in block counter + i / 2; body(words) gives the elements of a block.
template <class F> void write_blocks(const CallStep& step, LaunchList& list, KernelWriter& writer, F&& body) {
  const int64_t count = step.view(step.node).count();
  const Term key = argument(writer, step, 0), counter = argument(writer, step, 1), end = writer.number(count);
  const int out = writer.buffer(step.value.dtype, {step.node, -1});
  launch_each(list, writer, (count + 1) / 2, [&](Term block) {
    const std::vector<Term> elements = body(block_words(key, counter + writer.convert(block, wide)));
    for (size_t i = 0; i < elements.size(); ++i) {
      const Term at = block * 2 + static_cast<int64_t>(i);
      if (i == 0) writer.store(out, at, elements[i]);
      else writer.when(at < end, [&] { writer.store(out, at, elements[i]); });
    }
  });
}

// low + the upper 64 bits of bits * (high - low).
void write_integers(const CallStep& step, LaunchList& list) {
  KernelWriter writer = step.writer();
  const Term low = argument(writer, step, 2), range = argument(writer, step, 3) - low;
  const ScalarType type = scalar_type(step.value.dtype);
  write_blocks(step, list, writer, [&](const WordTerms& words) -> std::vector<Term> {
    return {writer.convert(low + high_product(joined(words[0], words[1]), range), type),
            writer.convert(low + high_product(joined(words[2], words[3]), range), type)};
  });
}

// Every element its own number.
void write_identity(const CallStep& step, LaunchList& list) {
  KernelWriter writer = step.writer();
  const int out = writer.buffer(DType::Int32, {step.node, -1});
  launch_each(list, writer, step.view(step.node).count(),
              [&](Term i) { writer.store(out, i, writer.convert(i, ScalarType::int32)); });
}

// Words that a permutation of n elements takes at most. It takes one for each element but the first; of those for bound
// b, the share (2^32 mod b) / 2^32 < b / 2^32 is drawn again. That more than this many are is as good as impossible.
int64_t most_words(int64_t n) {
  const double again = static_cast<double>(n) * static_cast<double>(n) * 0x1p-33;
  return n + 64 + static_cast<int64_t>(4 * again);
}

// Durstenfeld's shuffle as the CPU does it, in order, so by one item: its numbers depend on those drawn before.
void write_permutation(const CallStep& step, LaunchList& list) {
  const int64_t count = step.view(step.node).count();
  write_identity(step, list);
  if (count < 2) return;
  KernelWriter writer("permutation_shuffle", 1, step.index());
  const Term key = argument(writer, step, 0), counter = argument(writer, step, 1);
  const int out = writer.buffer(DType::Int32, {step.node, -1});
  const Term left = writer.variable(writer.number(count - 1));  // elements after this one are final
  writer.loop(writer.number((most_words(count) + 3) / 4), [&](Term block) {
    for (const Term drawn : block_words(key, counter + writer.convert(block, wide))) {
      const Term bound = writer.convert(left + 1, word);
      const Term product = writer.convert(drawn, wide) * writer.convert(bound, wide);
      const Term unfair = (writer.bits(word, 0) - bound) % bound;
      writer.when(left != 0 && unfair <= low_word(product), [&] {
        const Term place = writer.convert(high_word(product), writer.index_type());
        const Term last = writer.load(out, left), other = writer.load(out, place);
        writer.store(out, left, other);
        writer.store(out, place, last);
        writer.assign(left, left - 1);
      });
    }
  });
  list.launches.push_back(writer.finish(1));
}

}  // namespace

// Element i of 32 bits stands in block counter + i / 4, of 64 bits in block counter + i / 2.
Term drawn_element(ScalarType type, Term key, Term counter, Term element) {
  KernelWriter& writer = *key.writer;
  const bool doubles = type == ScalarType::float64;
  const Term at = writer.convert(element, wide);
  const WordTerms words = block_words(key, counter + shifted_right(at, doubles ? 1 : 2));
  const Term place = low_word(at);
  const Term odd = bits_and(place, 1) != 0;
  if (doubles) return unit_double(writer.select(odd, words[2], words[0]), writer.select(odd, words[3], words[1]));
  const Term upper = bits_and(place, 2) != 0;
  return unit_float(
      writer.select(upper, writer.select(odd, words[3], words[2]), writer.select(odd, words[1], words[0])));
}

void write_random(const Layout& layout, int32_t node, LaunchList& list) {
  const CallStep step(layout, node);
  switch (step.value.op->draw) {
    case Draw::bits: return write_integers(step, list);
    case Draw::permutation: return write_permutation(step, list);
    case Draw::none: break;
  }
  throw_unknown(*step.value.op, "the writer of kernels");
}

}  // namespace rosin::kernels
