// What the tests of vendor calls share: numbers, aligned memory and an executor of one call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engines/onednn.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"
#include "engines/vendor.hpp"
#include "engines/winograd.hpp"

namespace rosin::engines {

/// The engines that products and convolutions of a type may be asked of.
inline std::vector<Engine> engines_for(DType type) {
  std::vector<Engine> engines{Engine::best, Engine::plain};
  if (type == DType::Float32 || type == DType::Float64) engines.push_back(Engine::tile);
  if (have_onednn && type == DType::Float32) engines.push_back(Engine::onednn);
  return engines;
}

inline std::vector<Engine> engines_for(const MatmulSpec& spec) {
  std::vector<Engine> engines = engines_for(spec.type);
  const bool tiles = spec.type == DType::Float32 || spec.type == DType::Float64;
  if (tiles && tile_kernels().packed.vectors > 0 && spec.batch == 1 && spec.m * spec.n * spec.k > 0)
    engines.push_back(Engine::packed);
  if (amx_can(spec)) engines.push_back(Engine::amx);
  return engines;
}

inline std::vector<Engine> engines_for(const ConvSpec& spec) {
  std::vector<Engine> engines = engines_for(spec.type);
  if (winograd_can(spec)) engines.push_back(Engine::winograd);
  return engines;
}

inline std::vector<double> random_values(int64_t count) {
  static std::mt19937 generator(7);
  std::uniform_int_distribution<int> eighths(-16, 16);  // exact in every type, sums of products exact in Float32
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = eighths(generator) / 8.0;
  return values;
}

template <class T> std::vector<T> converted(const std::vector<double>& values) {
  std::vector<T> result;
  for (double value : values) result.push_back(static_cast<T>(static_cast<float>(value)));
  return result;
}

template <class T>
void expect_close(const std::vector<T>& values, const std::vector<double>& expected, double tolerance,
                  const std::string& name) {
  ASSERT_EQ(values.size(), expected.size());
  double scale = 1.0;
  for (double value : expected) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    ASSERT_TRUE(std::abs(value - expected[i]) <= tolerance * scale)
        << name << ", element " << i << ": got " << value << ", expected " << expected[i];
  }
}

/// Values whose sums are rounded.
template <class T = float> std::vector<T> rough_values(int64_t count, double shift) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(std::sin(static_cast<double>(i) * 1.7 + shift));
  return values;
}

/// An activation of Float32 that engines have no code for.
inline void add_one(void* out, const void* const* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(out)[i] = static_cast<const float*>(in[0])[i] + 1;
}

/// One dim of a convolution.
struct ConvDim {
  int64_t in, kernel, stride = 1, dilation = 1, low = 0, high = 0;
};

inline ConvSpec conv_of(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t groups,
                        const std::vector<ConvDim>& dims) {
  ConvSpec spec;
  spec.spatial = static_cast<int>(dims.size());
  spec.batch = batch;
  spec.in_channels = in_channels, spec.out_channels = out_channels, spec.groups = groups;
  for (size_t d = 0; d < dims.size(); ++d) {
    const ConvDim& s = dims[d];
    spec.in[d] = s.in, spec.kernel[d] = s.kernel, spec.stride[d] = s.stride, spec.dilation[d] = s.dilation;
    spec.pad_low[d] = s.low, spec.pad_high[d] = s.high;
    spec.out[d] = (s.in + s.low + s.high - (s.kernel - 1) * s.dilation - 1) / s.stride + 1;
  }
  return spec;
}

inline MatmulSpec matmul(DType type, int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed,
                         int64_t gap = 0) {
  MatmulSpec spec;
  spec.type = type;
  spec.m = m;
  spec.n = n;
  spec.k = k;
  spec.a_transposed = a_transposed;
  spec.b_transposed = b_transposed;
  spec.lda = (a_transposed ? k : m) + gap;
  spec.ldb = (b_transposed ? n : k) + gap;
  spec.ldc = m + gap;
  return spec;
}

/// Memory aligned as vendor calls ask for, filled with a value that would spoil results if it were read. What is
/// written behind its end fails the test: sanitizers do not see code that a library makes at run time.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes), storage_(bytes + 64 + guard, filling) {}
  ~Block() {
    const char* const end = static_cast<const char*>(data()) + bytes_;
    EXPECT_TRUE(std::all_of(end, end + guard, [](char c) { return c == filling; })) << "behind " << bytes_ << " bytes";
  }
  void* data() {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64;
  }

 private:
  static constexpr size_t guard = 256;
  static constexpr char filling = 0x7f;
  size_t bytes_;
  std::vector<char> storage_;
};

/// Runs all chunks in the given order, on `threads` threads.
inline void execute(const VendorCall& call, VendorBuffers buffers, int threads = 1, bool backwards = false) {
  Block workspace(call.workspace_bytes());
  buffers.workspace = workspace.data();
  if (call.has_begin()) call.begin(buffers);
  const auto work = [&](int64_t first) {
    Block scratch(call.scratch_bytes_per_chunk());
    for (int64_t i = first; i < call.chunks(); i += threads) {
      call.run_chunk(backwards ? call.chunks() - 1 - i : i, buffers, scratch.data());
    }
  };
  std::vector<std::thread> workers;
  for (int t = 1; t < threads; ++t) workers.emplace_back(work, t);
  work(0);
  for (std::thread& worker : workers) worker.join();
  if (call.has_finish()) call.finish(buffers);
}

inline int64_t count_of(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

/// Elements of x, w and y.
inline std::vector<int64_t> conv_counts(const ConvSpec& s) {
  return {count_of(s.in) * s.in_channels * s.batch, count_of(s.kernel) * s.in_channels / s.groups * s.out_channels,
          count_of(s.out) * s.out_channels * s.batch};
}

/// Images (points, channels, batch) with channels first.
template <class T> std::vector<T> turned(const std::vector<T>& x, int64_t points, int64_t channels) {
  std::vector<T> result(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t point = i % points, channel = i / points % channels, n = i / points / channels;
    result[static_cast<size_t>((n * points + point) * channels + channel)] = x[static_cast<size_t>(i)];
  }
  return result;
}

/// The place in the image (w fastest) that tap `tap` of the window at `out` reads, or -1 outside.
template <class Spec> int64_t place_of(const Spec& s, int64_t out, int64_t tap) {
  int64_t place = 0, pitch = 1;
  for (int d = 0; d < 3; ++d) {
    const int64_t at = out % s.out[d] * s.stride[d] - s.pad_low[d] + tap % s.kernel[d] * s.dilation[d];
    if (at < 0 || at >= s.in[d]) return -1;
    place += at * pitch;
    pitch *= s.in[d];
    out /= s.out[d];
    tap /= s.kernel[d];
  }
  return place;
}

/// First operand, second operand, result of a kind of convolution: 0 is x, 1 is w, 2 is y.
constexpr size_t conv_roles[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};

/// All kinds against `defined(spec, first, second)`; `counts(spec)` are the elements of x, w and y.
template <class T, class Counts, class Defined>
void check_conv_kinds(ConvSpec spec, double tolerance, Counts counts, Defined defined) {
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    spec.kind = kind;
    const size_t* role = conv_roles[static_cast<int>(kind)];
    const auto first = random_values(counts(spec)[role[0]]), second = random_values(counts(spec)[role[1]]);
    const std::vector<T> a = converted<T>(first), b = converted<T>(second);
    std::vector<T> result(static_cast<size_t>(counts(spec)[role[2]]), T(77));
    execute(*prepare_conv(spec), {a.data(), b.data(), nullptr, result.data(), nullptr}, 2);
    expect_close(result, defined(spec, first, second), tolerance,
                 "kind " + std::to_string(static_cast<int>(kind)) + ", width " + std::to_string(spec.in[0]) +
                     ", channels " + std::to_string(spec.in_channels));
  }
}

}  // namespace rosin::engines
