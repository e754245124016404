// Calls that draw integers. Element i depends on key, counter and i alone, so chunks do not matter.
// Read first: base/philox.hpp; numbers in [0, 1) are drawn inside fused kernels: draw.hpp.
#include "base/philox.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/draw.hpp"

namespace rosin::cpu {
namespace {

uint64_t key_of(const CallData& data) { return static_cast<uint64_t>(data.integers[0]); }
uint64_t counter_of(const CallData& data) { return static_cast<uint64_t>(data.integers[1]); }

constexpr int64_t chunk_elements = 16384;  // a multiple of every block's elements

// Calls f(element, 64 bits): words 2 (i % 2) and the next one of block counter + i / 2.
template <class F> void each_pair(const Pieces& elements, int64_t chunk, const CallData& data, F&& f) {
  constexpr int64_t together = words_together / 2;
  uint32_t words[words_together];
  for (int64_t i = elements.first(chunk); i < elements.last(chunk); i += together) {
    draw_words(words, key_of(data), counter_of(data) + static_cast<uint64_t>(i / 2));
    const int64_t count = std::min(together, elements.last(chunk) - i);
    for (int64_t k = 0; k < count; ++k) f(i + k, words[2 * k], words[2 * k + 1]);
  }
}

// The upper 64 bits of a product; from 32-bit parts where the compiler has no wider type.
uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  __extension__ typedef unsigned __int128 Product;
  return static_cast<uint64_t>(static_cast<Product>(a) * b >> 64);
#else
  const uint64_t a_low = a & 0xffffffffu, a_high = a >> 32, b_low = b & 0xffffffffu, b_high = b >> 32;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const uint64_t other = a_low * b_high + (middle & 0xffffffffu);
  return a_high * b_high + (middle >> 32) + (other >> 32);
#endif
}

// low + the upper 64 bits of bits * (high - low).
template <class T> class IntegersCall final : public Call {
 public:
  explicit IntegersCall(const CallSpec& spec) : elements_{spec.result.shape.count(), chunk_elements} {}
  int64_t chunks() const override { return elements_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    T* out = static_cast<T*>(data.result);
    const auto low = static_cast<uint64_t>(data.integers[2]);
    const uint64_t range = static_cast<uint64_t>(data.integers[3]) - low;
    each_pair(elements_, chunk, data, [=](int64_t i, uint32_t first, uint32_t second) {
      const uint64_t bits = first | uint64_t{second} << 32;
      out[i] = static_cast<T>(static_cast<int64_t>(low + high_product(bits, range)));
    });
  }

 private:
  Pieces elements_;
};

// Source: Durstenfeld's form of the Fisher-Yates shuffle.
class PermutationCall final : public Call {
 public:
  explicit PermutationCall(const CallSpec& spec) : count_(spec.result.shape.count()) {}

  void run(int64_t, const CallData& data) override {
    int32_t* out = static_cast<int32_t*>(data.result);
    for (int64_t i = 0; i < count_; ++i) out[i] = static_cast<int32_t>(i);
    philox::Stream stream(key_of(data), counter_of(data));
    for (int64_t i = count_ - 1; i > 0; --i) std::swap(out[i], out[stream.below(static_cast<uint32_t>(i + 1))]);
  }

 private:
  int64_t count_;
};

}  // namespace

std::unique_ptr<Call> prepare_random(const CallSpec& spec) {
  const bool wide = size_of(spec.result.type) == 8;
  switch (spec.op->draw) {
    case Draw::bits:
      if (wide) return std::make_unique<IntegersCall<int64_t>>(spec);
      return std::make_unique<IntegersCall<int32_t>>(spec);
    case Draw::permutation: return std::make_unique<PermutationCall>(spec);
    case Draw::none: break;
  }
  throw_unknown(*spec.op, "the CPU");
}

}  // namespace rosin::cpu
