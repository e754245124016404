// Weights in oneDNN's order, brought there by one thread and by several, beside the plain definition: sums are exact,
// so all have the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/workers.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// Bytes on a line of the cache.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes + 64) {}
  void* data() {
    const auto at = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - at % 64) % 64;
  }

 private:
  std::vector<char> bytes_;
};

std::vector<uint16_t> run(const ConvSpec& spec, Engine engine, int threads) {
  set_worker_threads(threads);
  const auto call = prepare_conv(spec, engine);
  int64_t in = spec.batch * spec.in_channels, out = spec.batch * spec.out_channels;
  int64_t weights = spec.in_channels / spec.groups * spec.out_channels;
  for (int d = 0; d < spec.spatial; ++d) in *= spec.in[d], out *= spec.out[d], weights *= spec.kernel[d];
  const bool forward = spec.kind == ConvKind::forward, of_weights = spec.kind == ConvKind::backward_weights;
  const int64_t sizes[] = {forward || of_weights ? in : out, of_weights ? out : weights,
                           forward      ? out
                           : of_weights ? weights
                                        : in};
  const size_t bytes = size_of(spec.type);
  std::vector<Block> arrays;
  std::mt19937 generator(3);
  std::uniform_int_distribution<int> eighths(-16, 16);
  for (const int64_t size : sizes) {
    Block& block = arrays.emplace_back(static_cast<size_t>(size) * bytes);
    for (int64_t i = 0; i < size; ++i) {
      const float value = static_cast<float>(eighths(generator)) / 8;
      const char* from = reinterpret_cast<const char*>(&value) + (bytes == 2 ? 2 : 0);  // BFloat16: the upper half
      std::memcpy(static_cast<char*>(block.data()) + static_cast<size_t>(i) * bytes, from, bytes);
    }
  }
  Block workspace(call->workspace_bytes()), scratch(call->scratch_bytes_per_chunk());
  VendorBuffers buffers;
  buffers.first = arrays[0].data();
  buffers.second = arrays[1].data();
  buffers.result = arrays[2].data();
  buffers.workspace = workspace.data();
  if (call->has_begin()) call->begin(buffers);
  for (int64_t chunk = 0; chunk < call->chunks(); ++chunk) call->run_chunk(chunk, buffers, scratch.data());
  if (call->has_finish()) call->finish(buffers);
  set_worker_threads(0);
  std::vector<uint16_t> result(static_cast<size_t>(sizes[2]) * bytes / 2);
  std::memcpy(result.data(), buffers.result, result.size() * 2);
  return result;
}

ConvSpec convolution(int spatial, int64_t in_channels, int64_t out_channels, int64_t groups) {
  ConvSpec spec;
  spec.spatial = spatial;
  spec.batch = 5;
  spec.in_channels = in_channels;
  spec.out_channels = out_channels;
  spec.groups = groups;
  for (int d = 0; d < spatial; ++d) {
    spec.in[d] = 6 + d;
    spec.kernel[d] = 3 - d % 2;
    spec.stride[d] = spec.dilation[d] = 1;
    spec.out[d] = spec.in[d] - spec.kernel[d] + 1;
  }
  return spec;
}

TEST(OnednnWeights, AnyNumberOfThreadsGivesTheBitsOfTheDefinition) {
  if (!have_onednn) GTEST_SKIP() << "this build has no oneDNN";
  struct Case {
    int spatial;
    int64_t in, out, groups;
  };
  const Case cases[] = {{2, 64, 64, 1}, {2, 128, 96, 1}, {1, 64, 32, 1},
                        {3, 32, 48, 1}, {2, 64, 64, 2},  {2, 20, 33, 1}};
  for (const auto& [spatial, in, out, groups] : cases) {
    ConvSpec spec = convolution(spatial, in, out, groups);
    for (const DType type : {DType::Float32, DType::BFloat16}) {
      for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
        for (const bool flipped : {false, true}) {
          spec.type = type;
          spec.kind = kind;
          spec.flipped = flipped;
          const std::vector<uint16_t> defined = run(spec, Engine::plain, 1);
          for (const int threads : {1, 2}) {
            EXPECT_EQ(run(spec, Engine::onednn, threads), defined)
                << spatial << " dims, " << in << " to " << out << ", kind " << static_cast<int>(kind)
                << (flipped ? ", flipped, " : ", ") << threads << " threads";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rosin::engines
