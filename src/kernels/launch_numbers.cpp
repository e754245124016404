// Numbers that change from run to run (steps of an optimiser, places in a random sequence) as elements of memory that
// one launch writes before all others: that launch alone differs between two runs.
#include <algorithm>
#include <span>

#include "kernels/launches.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {
namespace {

constexpr size_t cell_bytes = 8;           // one number
constexpr std::ptrdiff_t few_readers = 2;  // to update these costs less than a launch more, before which nobody begins
constexpr size_t most_cells = 480;         // of one launch: 4096 bytes of arguments

bool is_given(const LaunchNumber& number) { return number.scalar >= 0; }
bool reads_numbers(const Launch& launch) { return std::any_of(launch.numbers.begin(), launch.numbers.end(), is_given); }

/// Unsigned elements of 64 bits are loaded as signed ones.
ScalarType loaded(ScalarType type) { return type == ScalarType::uint64 ? ScalarType::int64 : type; }

class SharedNumbers {
 public:
  explicit SharedNumbers(LaunchList& list) : list_(list), scratch_(list.scratch(0)) {}

  /// The launch reads its numbers from memory; which cell a number has is a parameter, so that codes stay shared.
  void move(Launch& launch) {
    std::vector<KernelInstruction> moved;
    std::vector<uint32_t> place;  // of each instruction among those
    std::vector<int> buffers;     // by type, the buffer as which the launch has the cells
    for (KernelInstruction instruction : launch.code.instructions) {
      for (uint32_t& operand : instruction.operands) operand = operand < place.size() ? place[operand] : 0;
      moved.push_back(instruction);
      if (instruction.is(KernelOperation::parameter)) {
        const auto number = static_cast<size_t>(instruction.immediate);
        if (is_given(launch.numbers[number])) load(moved, buffer(launch, buffers, launch.numbers[number].type));
      }
      place.push_back(static_cast<uint32_t>(moved.size() - 1));
    }
    for (size_t i = 0; i < launch.numbers.size(); ++i) {
      if (!is_given(launch.numbers[i])) continue;
      const auto units = static_cast<int64_t>(cell_bytes / static_cast<size_t>(bytes_of(launch.numbers[i].type)));
      launch.numbers[i] = {ScalarType::int32, cell(launch.numbers[i]) * units, -1};
      launch.code.parameters[i] = ScalarType::int32;
    }
    launch.code.instructions = std::move(moved);
    launch.code.name.resize(launch.code.name.rfind('_'));
    name_by_hash(launch.code);
  }

  /// The launches that write the cells, to run before all others.
  std::vector<Launch> writers() {
    list_.scratch_bytes[static_cast<size_t>(scratch_)] = static_cast<int64_t>(rounded(cells_.size()) * cell_bytes);
    std::vector<Launch> all;
    for (size_t first = 0; first < cells_.size(); first += most_cells) {
      const size_t count = std::min(cells_.size() - first, most_cells);
      all.push_back(writer(std::span(cells_).subspan(first, count), static_cast<int64_t>(first)));
    }
    return all;
  }

 private:
  /// Few sizes, so that few kernels are compiled.
  static size_t rounded(size_t count) {
    size_t size = 4;
    while (size < count) size *= 2;
    return size;
  }

  int64_t cell(const LaunchNumber& number) {
    const auto same = [&](const LaunchNumber& other) {
      return other.scalar == number.scalar && other.type == number.type;
    };
    const auto found = std::find_if(cells_.begin(), cells_.end(), same);
    if (found != cells_.end()) return found - cells_.begin();
    cells_.push_back(number);
    return static_cast<int64_t>(cells_.size() - 1);
  }

  int buffer(Launch& launch, std::vector<int>& buffers, ScalarType type) const {
    buffers.resize(std::max(buffers.size(), static_cast<size_t>(type) + 1), -1);
    int& known = buffers[static_cast<size_t>(type)];
    if (known >= 0) return known;
    launch.code.buffers.push_back(storage_of(loaded(type)));
    launch.buffers.push_back({-1, scratch_});
    return known = static_cast<int>(launch.buffers.size() - 1);
  }

  /// The last of the instructions, a parameter, becomes what stands there in the memory.
  static void load(std::vector<KernelInstruction>& list, int buffer) {
    const ScalarType type = std::exchange(list.back().type, ScalarType::int32);
    const auto last = [&] { return static_cast<uint32_t>(list.size() - 1); };
    list.push_back(make_instruction(KernelOperation::load, loaded(type), {last()}, buffer));
    if (loaded(type) != type) list.push_back(make_instruction(Primitive::convert, type, {last()}));
  }

  /// Cells of 64 bits, whatever type the numbers have: their bits are the lower ones.
  Launch writer(std::span<const LaunchNumber> cells, int64_t first) const {
    KernelWriter writer("numbers", 1, ScalarType::int64);
    const int to = writer.buffer(DType::Int64, {-1, scratch_});
    const Term begin = writer.number(first);
    for (size_t i = 0; i < std::min(rounded(cells.size()), most_cells); ++i) {
      writer.store(to, begin + static_cast<int64_t>(i), writer.number(0));
    }
    Launch launch = writer.finish(1);
    std::copy(cells.begin(), cells.end(), launch.numbers.begin() + 1);
    launch.what = "numbers";
    return launch;
  }

  LaunchList& list_;
  int32_t scratch_;
  std::vector<LaunchNumber> cells_;  // the number that each holds
};

}  // namespace

void share_numbers(LaunchList& list) {
  if (std::count_if(list.launches.begin(), list.launches.end(), reads_numbers) <= few_readers) return;
  SharedNumbers numbers(list);
  for (Launch& launch : list.launches) {
    if (reads_numbers(launch)) numbers.move(launch);
  }
  std::vector<Launch> writers = numbers.writers();
  list.launches.insert(list.launches.begin(), std::make_move_iterator(writers.begin()),
                       std::make_move_iterator(writers.end()));
}

}  // namespace rosin::kernels
