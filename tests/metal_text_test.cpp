// The text of kernels for Metal, run by the stand-in's machine (fake_metal/msl.hpp) beside the interpreter of the same
// codes: bit by bit, but for which NaN it is. Read first: kernels/kernel_testing.hpp, kernel_samples.hpp.
#if __has_include(<msl.hpp>)
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>

#include <rosin/attention.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/half.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>

#include <msl.hpp>

#include "kernel_samples.hpp"
#include "kernels/kernel_testing.hpp"
#include "kernels/text.hpp"

namespace rosin::kernels {
namespace {

using Bytes = std::vector<unsigned char>;

/// Memory of the host that buffers of a launch stand in; where they overlap, as one.
struct Range {
  unsigned char *begin, *end;
  bool written = false;
  Bytes bytes() const { return {begin, end}; }
};

std::vector<Range> ranges_of(const KernelCode& code, const reference::Block* buffers) {
  const std::vector<char> stored = stored_buffers(code);
  std::vector<Range> all, merged;
  for (size_t i = 0; i < stored.size(); ++i) {
    auto* begin = static_cast<unsigned char*>(buffers[i].base);
    if (buffers[i].bytes > 0) all.push_back({begin, begin + buffers[i].bytes, stored[i] != 0});
  }
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (const Range& range : all) {
    if (merged.empty() || range.begin >= merged.back().end) {
      merged.push_back(range);
      continue;
    }
    merged.back().end = std::max(merged.back().end, range.end);
    merged.back().written = merged.back().written || range.written;
  }
  return merged;
}

/// Memory that the machine knows while this lives.
class Known {
 public:
  explicit Known(std::span<const Range> ranges) {
    for (const Range& range : ranges) {
      const auto bytes = static_cast<uint64_t>(range.end - range.begin);
      machine_.adopt(context_, range.begin, bytes);
      resources.push_back({reinterpret_cast<uint64_t>(range.begin), bytes, range.written});
    }
  }
  ~Known() {
    for (const fake_metal::Resource& resource : resources) machine_.free(context_, resource.address);
  }
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;

  std::vector<fake_metal::Resource> resources;

 private:
  fake::Machine& machine_ = fake::Machine::instance();
  fake::Context& context_ = machine_.context_of(0);
};

bool is_nan(const void* place, DType type) {
  uint32_t bits = 0;
  std::memcpy(&bits, place, size_of(type) == 2 ? 2 : 4);
  if (type == Float16) return (bits & 0x7fff) > 0x7c00;
  if (type == BFloat16) return (bits & 0x7fff) > 0x7f80;
  return type == Float32 && (bits & 0x7fffffff) > 0x7f800000;
}

float float_of(const void* place, DType type) {
  uint32_t bits = 0;
  std::memcpy(&bits, place, size_of(type));
  if (type == Float16) return static_cast<float>(std::bit_cast<Half>(static_cast<uint16_t>(bits)));
  return std::bit_cast<float>(type == BFloat16 ? bits << 16 : bits);
}

/// `close`: how far floats may be apart, as a part of the larger one.
bool is_same(const void* a, const void* b, DType type, float close) {
  if (std::memcmp(a, b, size_of(type)) == 0 || (is_nan(a, type) && is_nan(b, type))) return true;
  if (close == 0 || (type != Float16 && type != BFloat16 && type != Float32)) return false;
  const float x = float_of(a, type), y = float_of(b, type);
  return std::abs(x - y) <= close * std::max(std::abs(x), std::abs(y));
}

/// The first element that differs, or -1.
int64_t difference(const void* one, const void* other, size_t bytes, DType type, float close) {
  const auto *a = static_cast<const unsigned char*>(one), *b = static_cast<const unsigned char*>(other);
  const size_t size = size_of(type);
  for (size_t at = 0; at + size <= bytes; at += size) {
    if (!is_same(a + at, b + at, type, close)) return static_cast<int64_t>(at / size);
  }
  return -1;
}

class Beside {
 public:
  /// `close`: as for is_same.
  explicit Beside(float close = 0) : close_(close) {}

  /// Codes that are compiled together, when the first of them runs.
  void add(const KernelCode& code) {
    if (!kernels_.contains(code.name) && added_.emplace(code.name, code).second) codes_.push_back(code);
  }

  void run(const KernelCode& code, const uint32_t (&groups)[3], const reference::Block* buffers,
           const rosin_number* numbers) {
    add(code);
    const std::vector<Range> ranges = ranges_of(code, buffers);
    std::vector<Bytes> before, wanted;
    for (const Range& range : ranges) before.push_back(range.bytes());
    interpret(code, groups, buffers, numbers);
    for (size_t i = 0; i < ranges.size(); ++i) {
      wanted.push_back(ranges[i].bytes());
      std::copy(before[i].begin(), before[i].end(), ranges[i].begin);
    }
    launch(code, groups, buffers, numbers, ranges);
    for (size_t i = 0; i < code.buffers.size(); ++i) compare(code, i, buffers[i], ranges, wanted);
    ++launches;
  }

  int launches = 0;

 private:
  void compare(const KernelCode& code, size_t i, const reference::Block& buffer, std::span<const Range> ranges,
               std::span<const Bytes> wanted) const {
    for (size_t r = 0; r < ranges.size(); ++r) {
      auto* begin = static_cast<unsigned char*>(buffer.base);
      if (begin < ranges[r].begin || begin >= ranges[r].end) continue;
      const int64_t at =
          difference(begin, wanted[r].data() + (begin - ranges[r].begin), buffer.bytes, code.buffers[i], close_);
      EXPECT_EQ(at, -1) << code.name << ": element " << at << " of buffer " << i << " of " << code.buffers.size();
    }
  }

  void launch(const KernelCode& code, const uint32_t (&groups)[3], const reference::Block* buffers,
              const rosin_number* numbers, std::span<const Range> ranges) {
    const auto kernel = kernel_of(code);
    ASSERT_NE(kernel, nullptr);
    ASSERT_EQ(kernel->pipeline_error(), "");
    std::vector<uint64_t> arguments;
    for (size_t i = 0; i < code.buffers.size(); ++i)
      arguments.push_back(reinterpret_cast<uint64_t>(buffers[i].base) + fake_metal::device_offset);
    for (size_t i = 0; i < code.parameters.size(); ++i) arguments.push_back(static_cast<uint64_t>(numbers[i].int64));
    ASSERT_EQ(kernel->argument_bytes, 8 * arguments.size());
    const Known known(ranges);
    try {
      kernel->run({arguments.data(), 8 * arguments.size()}, known.resources, {groups[0], groups[1], groups[2]},
                  {static_cast<uint32_t>(code.group), 1, 1});
    } catch (const fake::Trouble& trouble) {
      FAIL() << trouble.text;
    }
  }

  std::shared_ptr<const fake_metal::Kernel> kernel_of(const KernelCode& code) {
    if (!kernels_.contains(code.name)) {
      std::string error;
      const auto library = fake_metal::Library::build(kernel_text(Language::metal, codes_), false, error);
      EXPECT_EQ(error, "");
      for (const KernelCode& one : codes_) kernels_[one.name] = library ? library->find(one.name) : nullptr;
      codes_.clear();
    }
    return kernels_[code.name];
  }

  std::map<std::string, std::shared_ptr<const fake_metal::Kernel>> kernels_;
  std::map<std::string, KernelCode> added_;
  std::vector<KernelCode> codes_;
  float close_;
};

// ---- Samples: every primitive with every type.

/// Numbers of every kind: any bits, small whole ones, and those at the ends of types.
void fill(Bytes& bytes, DType type, std::mt19937_64& random) {
  constexpr uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1,          0x3f800000,
                                  0xbf800000, 0x4f000000, 0xcf000000, 0x5f000000, 0x00800000, 0x4b000001, 0x3f000000,
                                  0x7fffffff, 0xffffffff, 0x477ff000, 0x3effffff, 0x5f800000, 0x4f800000};
  for (size_t at = 0; at < bytes.size(); at += 4) {
    const uint64_t drawn = random();
    const uint32_t number = drawn % 4 == 0   ? special[drawn / 4 % std::size(special)]
                            : drawn % 4 == 1 ? std::bit_cast<uint32_t>(static_cast<float>(drawn / 4 % 64) / 4 - 8)
                                             : static_cast<uint32_t>(drawn >> 32);
    std::memcpy(bytes.data() + at, &number, 4);
  }
  for (size_t at = 0; at < bytes.size() && type == Bool; ++at) bytes[at] &= 1;
}

rosin_number count_or_scale(ScalarType type) {
  rosin_number number{};
  if (type == ScalarType::float32) number.float32 = 0.75f;
  else if (type == ScalarType::int64 || type == ScalarType::uint64) number.int64 = 200;
  else number.int32 = 200;
  return number;
}

void run_sample(Beside& beside, const KernelCode& code) {
  std::mt19937_64 random(code.hash());
  std::vector<Bytes> memory;
  std::vector<reference::Block> buffers;
  for (const DType type : code.buffers) {
    memory.emplace_back(4096);
    fill(memory.back(), type, random);
  }
  for (Bytes& bytes : memory) buffers.push_back({bytes.data(), bytes.size()});
  std::vector<rosin_number> numbers;
  for (const ScalarType type : code.parameters) numbers.push_back(count_or_scale(type));
  beside.run(code, {1, 1, 1}, buffers.data(), numbers.data());
}

TEST(MetalText, EveryPrimitiveOfEveryType) {
  std::vector<KernelCode> codes = samples::control_samples();
  for (const samples::PrimitiveSample& sample : samples::primitive_samples()) codes.push_back(sample.kernel);
  std::erase_if(codes, samples::uses_float64);
  Beside beside;
  for (const KernelCode& code : codes) beside.add(code);
  for (const KernelCode& code : codes) run_sample(beside, code);
  EXPECT_GT(beside.launches, 150);
}

// ---- Programs, by the launches that a device of Metal gets.

Array numbers(const Shape& shape, DType type = Float32) {
  Rng rng(7);
  Array made = cast(uniform(rng, shape, -3, 3), type);
  eval(made);
  return made;
}

/// What f computes, each launch beside the interpreter; how many there were.
template <class F> int run_beside(F&& f, MathMode mode = MathMode::exact, float close = 0) {
  auto beside = std::make_shared<Beside>(close);
  InterpretedExecutor executor;
  executor.mode = mode;
  executor.device.matrix_types = 0;
  executor.device.arrivals = false;
  executor.device.shared_bytes = fake_metal::most_shared;
  executor.run = [&](const auto&... launch) {
    for (const auto& [name, code] : executor.codes) beside->add(code);
    beside->run(launch...);
  };
  by_kernels(
      [&] {
        for (const Array& array : f()) eval(array);
        return 0;
      },
      executor);
  return beside->launches;
}

TEST(MetalText, ElementsRowsAndColumns) {
  const Array x = numbers({300, 40}), y = numbers({300, 40}, BFloat16), z = numbers({40}, Float16);
  EXPECT_GE(run_beside([&] {
              return std::vector<Array>{softmax(x),
                                        logsoftmax(x, 1),
                                        normalise(x),
                                        sum(y),
                                        sum(x * x, {1}),
                                        maximum(x, {0}),
                                        tanh(y) * 2,
                                        exp(z),
                                        cast(x * 100, Int64) / 7,
                                        cast(x, Int8),
                                        erf(x),
                                        all(x < 2.9f, {0}),
                                        slice(x, 0, 3, 259) + 1};
            }),
            8);
}

TEST(MetalText, LongRowsInSharedMemory) {
  const Array x = numbers({3000, 3});
  EXPECT_GT(run_beside([&] { return std::vector<Array>{softmax(x)}; }), 0);
}

TEST(MetalText, ProductsAndWindows) {
  const Array a = numbers({33, 70}), b = numbers({70, 21}), image = numbers({9, 9, 3, 2}), w = numbers({3, 3, 3, 4});
  EXPECT_GT(run_beside([&] {
              const auto loss = [&](const Array& kernels) { return sum(conv(image, kernels) * 2); };
              const auto pooled = [&](const Array& x) { return sum(maxpool(x, {2, 2}) * meanpool(x, {2, 2})); };
              return std::vector<Array>{matmul(a, b),
                                        matmul(cast(a, Float16), cast(b, Float16)),
                                        matmul(cast(a, BFloat16), cast(b, BFloat16)),
                                        conv(image, w),
                                        gradient(loss, w),
                                        gradient(pooled, image)};
            }),
            8);
}

TEST(MetalText, Attention) {
  const Array q = numbers({16, 20, 2});
  EXPECT_GT(run_beside([&] {
              const auto loss = [&](const Array& x) {
                return sum(dot_product_attention(x, q, q, {.heads = 2}).out * q);
              };
              return std::vector<Array>{gradient(loss, q)};
            }),
            1);
}

TEST(MetalText, PlacesAndDraws) {
  const Array x = numbers({50, 8}), at = cast(abs(numbers({30})) * 2, Int32);
  Rng rng(3);
  EXPECT_GE(run_beside([&] {
              return std::vector<Array>{argsort(x),
                                        sort(x, 1),
                                        cumsum(x),
                                        gather(x, at),
                                        scatter_add(x, at, numbers({50, 30})),
                                        uniform(rng, {100}, 0, 1),
                                        randint(rng, 0, 10, {100}),
                                        permutation(rng, 60),
                                        bernoulli(rng, 0.3, {77})};
            }),
            4);  // those whose items work alone share one
}

TEST(MetalText, MoreBuffersThanMetalBinds) {
  std::vector<Array> many;
  for (int i = 0; i < 50; ++i) many.push_back(numbers({64}) * (i + 1));
  eval(concat(many, 0));
  EXPECT_GT(run_beside([&] {
              Array total = many[0];
              for (size_t i = 1; i < many.size(); ++i) total = total * 0.5f + many[i];
              return std::vector<Array>{total};
            }),
            0);
}

TEST(MetalText, StepsThatShareALaunch) {
  EXPECT_GT(run_beside([&] {
              std::vector<Array> model;
              for (const int64_t size : {8, 256, 1000, 24, 7, 1003, 4096}) model.push_back(numbers({size}));
              auto state = setup(Adam{.eta = 0.1}, model);
              const auto loss = [](const std::vector<Array>& all) {
                Array total(0.0f);
                for (const Array& one : all) total = total + sum(one * one * one);
                return total;
              };
              for (int i = 0; i < 2; ++i) update(state, model, gradient(loss, model));
              return model;
            }),
            2);
}

TEST(MetalText, QuickFunctionsAreCloseEnough) {
  const Array x = numbers({64, 32}), y = numbers({64, 32}, BFloat16);
  EXPECT_GT(run_beside([&] { return std::vector<Array>{exp(x), 1 / x, tanh(x), exp2(y), softmax(y), tanh(y)}; },
                       MathMode::fast, 0x1p-7f),
            1);
}

// ---- What the stand-in refuses, as Metal does.

constexpr const char* good = R"(#include <metal_stdlib>
using namespace metal;
struct turn_arguments {
  device const int* p0;
  device int* p1;
  alignas(8) int a0;
};
[[max_total_threads_per_threadgroup(64)]] kernel void turn(constant turn_arguments& list [[buffer(0)]], )"
                             R"(uint3 group_place [[threadgroup_position_in_grid]], )"
                             R"(uint item_place [[thread_index_in_threadgroup]]) {
  device const int* const p0 = list.p0;
  device int* const p1 = list.p1;
  const int a0 = list.a0;
  threadgroup int s0[64];
  s0[item_place] = p0[item_place];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  p1[item_place] = s0[63 - item_place] + a0;
}
)";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

class MetalMachine : public testing::Test {
 protected:
  std::vector<int> in_ = std::vector<int>(64, 5), out_ = std::vector<int>(64);
  struct {
    uint64_t in, out;
    int64_t number;
  } arguments_{address(in_), address(out_), 2};
  uint64_t bytes_ = sizeof arguments_;
  uint32_t threads_ = 64;
  bool uses_in_ = true, writes_in_ = false;

  static uint64_t address(const std::vector<int>& ints) {
    return reinterpret_cast<uint64_t>(ints.data()) + fake_metal::device_offset;
  }

  /// What the compiler says, or the pipeline, or the machine; empty: it has run.
  std::string run(const std::string& text) {
    std::string error;
    const auto library = fake_metal::Library::build(text, false, error);
    if (!library) return error;
    const auto kernel = library->find("turn");
    if (const std::string why = kernel->pipeline_error(); !why.empty()) return why;
    const auto range = [](std::vector<int>& ints, bool written) {
      auto* begin = reinterpret_cast<unsigned char*>(ints.data());
      return Range{begin, begin + ints.size() * sizeof(int), written};
    };
    std::vector<Range> ranges{range(out_, true)};
    if (uses_in_) ranges.push_back(range(in_, writes_in_));
    const Known known(ranges);
    try {
      kernel->run({&arguments_, bytes_}, known.resources, {1, 1, 1}, {threads_, 1, 1});
    } catch (const fake::Trouble& trouble) {
      return trouble.text;
    }
    return {};
  }

  void expect(const std::string& text, std::string_view part) {
    const std::string said = run(text);
    EXPECT_NE(said.find(part), said.npos) << said << "\nlacks " << part << ", of\n" << text;
  }
};

TEST_F(MetalMachine, RunsWhatIsRight) {
  EXPECT_EQ(run(good), "");
  EXPECT_EQ(out_, std::vector<int>(64, 7));
}

TEST_F(MetalMachine, RefusesWhatIsNoMetal) {
  if (!*FAKE_METAL_CLANG) GTEST_SKIP() << "no clang is installed";
  expect(changed(good, "const int a0", "const double a0"), "program_source:11:9: error: 'double' is not supported");
  expect(changed(good, "63 - item_place", "63 - place"), "program_source:15:28: error: use of undeclared identifier");
  expect(changed(good, "#include <metal_stdlib>", ""), "program_source:2:17: error:");
  expect(changed(good, "constant turn_arguments& list [[buffer(0)]]", "constant turn_arguments& list [[buffer(1)]]"),
         "error: no head of a kernel");
  expect(changed(good, "const int a0 = list.a0;", "threadgroup int* a = (threadgroup int*)p1; const int a0 = 1;"),
         "error:");  // from one address space to another
  expect(changed(good, "device int* const p1", "int* const p1"), "error:");
}

TEST_F(MetalMachine, RefusesPipelinesBeyondTheDevice) {
  expect(changed(good, "s0[64]", "s0[8193]"), "Threadgroup memory size (32784) exceeds the maximum");
  expect(changed(good, "threadgroup(64)", "threadgroup(2048)"), "max_total_threads_per_threadgroup");
}

TEST_F(MetalMachine, RefusesDispatchesThatValidationRefuses) {
  threads_ = 65;
  expect(good, "65 threads per threadgroup must be <= 64");
  threads_ = 64;
  bytes_ = 16;
  expect(good, "buffer 0 has 16 bytes, but the argument has 24");
}

TEST_F(MetalMachine, FindsWhatKernelsMayNotDo) {
  expect(changed(good, "threadgroup_barrier(mem_flags::mem_threadgroup);", ""), "the same phase");
  expect(changed(good, "s0[63 - item_place]", "s0[64 - item_place]"), "an access beyond a shared array");
  expect(changed(good, "p1[item_place]", "p1[item_place + 1]"), "an access beyond a block of memory");
  expect(changed(good, "p1[item_place]", "p1[item_place / 2]"), "two items of a launch wrote one place");
  arguments_.out = arguments_.in;
  expect(good, "a write of memory that the launch has for reading alone");
  arguments_.out = address(out_) - fake_metal::device_offset;
  expect(good, "an address of the host");
  arguments_.out = address(out_);
  uses_in_ = false;  // no useResource
  expect(good, "an access beyond a block of memory");
}

}  // namespace
}  // namespace rosin::kernels
#endif
