// See plain.hpp.
#include "plain.hpp"

#include <algorithm>
#include <cmath>

namespace command::plain {

std::vector<float> numbers(size_t count, uint32_t series) {
  std::vector<float> values(count);
  uint32_t state = series * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1;
  }
  return values;
}

Values wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

Values matmul(const Values& a, const Values& b, size_t m, size_t k, size_t n) {
  Values result(m * n);
  for (size_t j = 0; j < n; ++j) {
    for (size_t inner = 0; inner < k; ++inner) {
      for (size_t i = 0; i < m; ++i) result[i + m * j] += a[i + m * inner] * b[inner + k * j];
    }
  }
  return result;
}

Values softmax(const Values& x, size_t n, size_t m) {
  Values result(n * m);
  for (size_t j = 0; j < m; ++j) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += std::exp(x[i + n * j]);
    for (size_t i = 0; i < n; ++i) result[i + n * j] = std::exp(x[i + n * j]) / total;
  }
  return result;
}

Values sums(const Values& x, size_t n, size_t m) {
  Values result(m + n);
  for (size_t j = 0; j < m; ++j) {
    for (size_t i = 0; i < n; ++i) {
      result[j] += x[i + n * j];
      result[m + i] += x[i + n * j];
    }
  }
  return result;
}

Values crosscor(const Values& x, const Values& w, size_t size, size_t in, size_t out) {
  Values result(size * size * out);
  const auto at = [&](size_t i, size_t j, size_t channel) {  // counted from the zero around x
    const bool inside = i > 0 && j > 0 && i <= size && j <= size;
    return inside ? x[i - 1 + size * (j - 1 + size * channel)] : 0;
  };
  for (size_t to = 0; to < out; ++to) {
    for (size_t place = 0; place < size * size; ++place) {
      double& sum = result[place + size * size * to];
      for (size_t tap = 0; tap < 9 * in; ++tap) {
        sum += w[tap + 9 * in * to] * at(place % size + tap % 3, place / size + tap / 3 % 3, tap / 9);
      }
    }
  }
  return result;
}

Values maxpool(const Values& x, size_t size) {
  Values result;
  for (size_t j = 0; j < size; j += 2) {
    for (size_t i = 0; i < size; i += 2) {
      const size_t first = i + size * j;
      result.push_back(std::max({x[first], x[first + 1], x[first + size], x[first + size + 1]}));
    }
  }
  return result;
}

Values permuted(const Values& x, size_t a, size_t b, size_t c) {
  Values result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i / (a * b) + c * (i % (a * b))] = x[i];
  return result;
}

Values philox_uniform(uint64_t key, size_t count) {
  Values result;
  for (uint32_t block = 0; result.size() < count; ++block) {
    std::array<uint32_t, 4> x = {block, 0, 0, 0};
    auto low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
      const uint64_t first = uint64_t{0xD2511F53u} * x[0], second = uint64_t{0xCD9E8D57u} * x[2];
      x = {static_cast<uint32_t>(second >> 32) ^ x[1] ^ low, static_cast<uint32_t>(second),
           static_cast<uint32_t>(first >> 32) ^ x[3] ^ high, static_cast<uint32_t>(first)};
    }
    for (const uint32_t word : x) result.push_back(static_cast<double>(word >> 8) * 0x1p-24);
  }
  result.resize(count);
  return result;
}

}  // namespace command::plain
