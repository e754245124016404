// For tests of kernels: by_kernels(f) evaluates what f records by the launches that devices run, interpreted on host
// memory by the code of backends/reference. Read first: launches.hpp, device.hpp. Read next:
// contraction_test.cpp.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rosin/array.hpp>
#include <rosin/error.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "graph/node.hpp"
#include "kernels/launches.hpp"
#include "kernels/target.hpp"
#include "plan/device.hpp"
#include "run/device_table.hpp"

#include "backends/reference/interpret.hpp"

namespace rosin::kernels {

/// The code as plug-ins get it; it refers to `code`.
class PluginCode {
 public:
  explicit PluginCode(const KernelCode& code) {
    for (const DType type : code.buffers) buffers_.push_back(static_cast<int32_t>(type));
    for (const ScalarType type : code.parameters) parameters_.push_back(static_cast<int32_t>(type));
    for (const SharedArray& array : code.shared) shared_.push_back({static_cast<int32_t>(array.type), array.count});
    for (const KernelInstruction& from : code.instructions) {
      rosin_instruction to{from.operation, static_cast<uint16_t>(from.type), {}, from.immediate};
      std::copy(from.operands, from.operands + 3, to.operands);
      instructions_.push_back(to);
    }
    plain_ = {sizeof plain_,       code.name.c_str(),
              code.group,          static_cast<uint32_t>(buffers_.size()),
              buffers_.data(),     static_cast<uint32_t>(parameters_.size()),
              parameters_.data(),  static_cast<uint32_t>(shared_.size()),
              shared_.data(),      static_cast<uint32_t>(instructions_.size()),
              instructions_.data()};
  }
  const rosin_kernel_code& plain() const { return plain_; }

 private:
  std::vector<int32_t> buffers_, parameters_;
  std::vector<rosin_shared_array> shared_;
  std::vector<rosin_instruction> instructions_;
  rosin_kernel_code plain_{};
};

inline rosin_number number_of(const LaunchNumber& number, const ScalarValue* scalars) {
  const bool given = number.scalar >= 0;
  const int64_t integer = given ? scalars[number.scalar].integer : number.integer;
  const double real = given ? scalars[number.scalar].real : static_cast<double>(number.integer);
  rosin_number value{};
  switch (number.type) {
    case ScalarType::float32: value.float32 = static_cast<float>(real); break;
    case ScalarType::float64: value.float64 = real; break;
    case ScalarType::int64:
    case ScalarType::uint64: value.int64 = integer; break;
    default: value.int32 = static_cast<int32_t>(integer);
  }
  return value;
}

/// How the code of a launch is run.
using RunCode = std::function<void(const KernelCode&, const uint32_t (&groups)[3], const reference::Block* buffers,
                                   const rosin_number* numbers)>;

inline void interpret(const KernelCode& code, const uint32_t (&groups)[3], const reference::Block* buffers,
                      const rosin_number* numbers) {
  reference::Kernel(PluginCode(code).plain()).run(groups, buffers, numbers);
}

/// Elements between the place that kernels get for a far leaf and its first element: too many for an Int32.
inline constexpr int64_t far_offset = int64_t{1} << 33;

class InterpretedLaunches final : public plan::Prepared {
 public:
  InterpretedLaunches(std::shared_ptr<const Layout> layout, LaunchList list, bool far, RunCode run)
      : layout_(std::move(layout)), list_(std::move(list)), far_(far), run_(std::move(run)) {}

  void run(const plan::RunMemory& memory) const override {
    std::vector<unsigned char> arena(layout_->arena_bytes + memory_alignment, 0xa5);
    std::vector<void*> values(memory.values, memory.values + layout_->views.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const Place& place = layout_->places[i];
      if (place.where == Place::Where::arena) values[i] = arena.data() + place.at;
    }
    Scratch scratch;
    for (const int64_t bytes : list_.scratch_bytes) scratch.emplace_back(static_cast<size_t>(bytes), 0xa5);
    const size_t flags = scratch.size(), guard = flags + 1;
    scratch.emplace_back(list_.checks.size() * sizeof(int64_t), 0);
    scratch.emplace_back(sizeof(int64_t), 0);
    Scratch counters;
    for (const int64_t count : list_.counter_counts) counters.emplace_back(static_cast<size_t>(count) * 4, 0);
    const Scratch none_arrived = counters;
    for (const Launch& launch : list_.launches) run_launch(launch, values, scratch, counters, memory.scalars);
    EXPECT_EQ(counters, none_arrived);
    check(scratch[flags]);
    EXPECT_EQ(scratch[guard], std::vector<unsigned char>(sizeof(int64_t), 0));
  }
  size_t bytes() const override { return sizeof *this; }

 private:
  using Scratch = std::vector<std::vector<unsigned char>>;

  reference::Block block_of(int32_t value, const std::vector<void*>& values) const {
    const size_t at = static_cast<size_t>(value);
    const DType type = layout_->structure->graph.values[at].dtype;
    const uint64_t before = far_ && layout_->structure->homes[at] == Home::leaf ? far_offset * size_of(type) : 0;
    void* base = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(values[at]) - before);
    return {base, before + static_cast<uint64_t>(layout_->views[at].count()) * size_of(type)};
  }

  void run_launch(const Launch& launch, const std::vector<void*>& values, Scratch& scratch, Scratch& counters,
                  const ScalarValue* scalars) const {
    std::vector<reference::Block> buffers;
    for (const LaunchBuffer& buffer : launch.buffers) {
      if (buffer.value >= 0) {
        buffers.push_back(block_of(buffer.value, values));
      } else if (buffer.scratch <= LaunchBuffer::first_counters) {
        auto& bytes = counters[static_cast<size_t>(LaunchBuffer::first_counters - buffer.scratch)];
        buffers.push_back({bytes.data(), bytes.size()});
      } else {
        // (flag and guard are the last two)
        const bool own = buffer.scratch >= 0;
        auto& bytes = own ? scratch[static_cast<size_t>(buffer.scratch)]
                          : scratch[scratch.size() - static_cast<size_t>(buffer.scratch + 4)];
        buffers.push_back({bytes.data(), bytes.size()});
      }
    }
    std::vector<rosin_number> numbers;
    for (const LaunchNumber& number : launch.numbers) numbers.push_back(number_of(number, scalars));
    uint32_t groups[3];
    std::transform(launch.groups, launch.groups + 3, groups, [](int64_t n) { return static_cast<uint32_t>(n); });
    run_(launch.code, groups, buffers.data(), numbers.data());
  }

  void check(const std::vector<unsigned char>& flags) const {
    for (size_t i = 0; i < list_.checks.size(); ++i) {
      int64_t flag = 0;
      std::memcpy(&flag, flags.data() + i * sizeof flag, sizeof flag);
      if (flag != 0) throw_index_error(*layout_, list_.checks[i], flag);
    }
  }

  std::shared_ptr<const Layout> layout_;
  const LaunchList list_;
  bool far_;
  RunCode run_;
};

/// A device without CWHN images, on which movements and matmul read strided operands; it keeps the codes it has run.
class InterpretedExecutor final : public plan::DeviceExecutor {
 public:
  InterpretedExecutor() = default;
  explicit InterpretedExecutor(const plan::Target& target) : target_(target) {}

  std::map<std::string, KernelCode> codes;
  std::vector<std::shared_ptr<const Structure>> structures;  // of what has run
  std::vector<Layout> layouts;                               // the same, as their launches are written
  Abilities device{reference::vector_bytes, reference::warp,    true, reference::largest_shared, 4096, true,
                   reference::matrix_types, MatrixLayout::none, true};
  RunCode run = interpret;
  bool far = false;                 // calls find their leaves at far_offset, and so count elements in Int64
  MathMode mode = MathMode::exact;  // the CPU, in whose place this stands, knows no other

  const plan::Target& target() const override { return target_; }
  std::unique_ptr<const plan::Prepared> prepare(plan::Compiled&, std::shared_ptr<const Layout> layout) override {
    layouts.push_back(in_mode(far ? moved(*layout) : *layout, mode));
    LaunchList list = write_launches(layouts.back(), device);
    for (const Launch& launch : list.launches) codes.emplace(launch.code.name, launch.code);
    structures.push_back(layout->structure);
    return std::make_unique<InterpretedLaunches>(std::move(layout), std::move(list), far, run);
  }
  Memory* allocate(size_t bytes) override { return host_.allocate(bytes); }

 private:
  static Layout in_mode(Layout layout, MathMode mode) {
    auto structure = std::make_shared<Structure>(*layout.structure);
    for (Value& value : structure->graph.values) value.mode = mode;
    for (plan::Kernel& kernel : structure->kernels) {
      for (plan::Instr& instr : kernel.instrs) instr.mode = mode;
    }
    layout.structure = std::move(structure);
    return layout;
  }
  /// The layout with its leaves at far_offset.
  static Layout moved(Layout layout) {
    const Structure& structure = *layout.structure;
    for (size_t i = 0; i < structure.kernels.size(); ++i) {
      const std::vector<Port>& loads = structure.kernels[i].loads;
      for (size_t port = 0; port < loads.size(); ++port) {
        const View& view = layout.views[static_cast<size_t>(loads[port].value)];
        if (in_leaf(structure, view)) layout.kernels[i].loads[port].offset += far_offset;
      }
    }
    for (View& view : layout.views) {
      if (in_leaf(structure, view)) view.offset += far_offset;
    }
    return layout;
  }
  static bool in_leaf(const Structure& structure, const View& view) {
    return view.root >= 0 && structure.homes[static_cast<size_t>(view.root)] == Home::leaf;
  }

  class OwnTarget final : public KernelTarget {
   public:
    explicit OwnTarget(const Abilities& device) : device_(device) {}
    int64_t longest_row() const override { return longest_row_of(device_); }

   private:
    const Abilities& device_;
  };

  OwnTarget own_{device};
  const plan::Target& target_ = own_;
  plan::DeviceExecutor& host_ = DeviceTable::instance().executor(0);
};

/// What f returns, arrays evaluated, when `executor` evaluates in place of the CPU.
template <class F> auto by_kernels(F&& f, InterpretedExecutor& executor) {
  struct Swap {
    plan::DeviceExecutor& before = DeviceTable::instance().executor(0);
    explicit Swap(plan::DeviceExecutor* now) {
      set_plan_cache(false);  // plans of one executor are not another's
      DeviceTable::instance().set_cpu(*now);
    }
    ~Swap() {
      DeviceTable::instance().set_cpu(before);
      set_plan_cache(true);
    }
  };
  eval();
  const Swap swap(&executor);
  auto result = f();
  eval();
  return result;
}
template <class F> auto by_kernels(F&& f) {
  InterpretedExecutor executor;
  return by_kernels(std::forward<F>(f), executor);
}

/// The same numbers each time, from -3 to 3.
inline Array numbers(const Shape& shape, DType type = Float32) {
  Rng rng(7);
  Array made = cast(uniform(rng, shape, -3, 3), type);
  eval(made);
  return made;
}

inline void expect_same_bits(const Array& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const size_t bytes = static_cast<size_t>(wanted.count()) * size_of(wanted.dtype());
  EXPECT_EQ(std::memcmp(got.node()->data(), wanted.node()->data(), bytes), 0) << what;
}

}  // namespace rosin::kernels
