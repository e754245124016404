// FusedKernel: runs one kernel of a structure tile by tile with precompiled loops: the portable executor of the CPU.
// A tile is a range of the domain's elements in memory order; which range depends on sizes only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/reduce_loops.hpp"
#include "graph/leaf.hpp"
#include "lower/layout.hpp"

namespace rosin::cpu {

/// Memory of one run, by value of the structure.
struct RunData {
  void* const* memory = nullptr;  // of values with memory of their own
  const ScalarValue* scalars = nullptr;
};

class FusedKernel {
 public:
  FusedKernel(const lower::Structure& structure, const lower::Layout& layout, int32_t kernel);

  int64_t chunks() const { return chunks_; }
  void run(int64_t chunk, const RunData& data) const;
  /// Adds the partial results of roots in the order of chunks and writes them out.
  void finish(const RunData& data) const;
  bool has_roots() const { return !kernel_->roots.empty(); }
  size_t bytes() const {
    return sizeof(*this) + partial_bytes_ * static_cast<size_t>(chunks_) + loads_.capacity() * sizeof(Load) +
           roots_.capacity() * sizeof(Root) + instrs_.capacity() * sizeof(Ready);
  }

 private:
  enum class Access : uint8_t { direct, splat, repeated, strided };

  /// One load: dims merged where memory allows, so that runs are long.
  struct Load {
    int32_t root = -1;
    DType storage = DType::Float32;
    ScalarType type = ScalarType::float32;
    bool row = false;
    Access access = Access::direct;
    bool converts = false;
    int64_t period = 0;  // repeated: elements after which the pattern starts again
    int64_t offset = 0;
    int dims = 0;
    int64_t sizes[Shape::max_rank] = {};
    int64_t strides[Shape::max_rank] = {};
  };

  struct Root {
    int32_t value = -1;
    DType storage = DType::Float32;
    ScalarType type = ScalarType::float32;
    ReduceLoops loops;
    int64_t count = 0;   // elements of the result
    bool folds = false;  // tiles are whole columns of one result: they are added pairwise
    size_t partial = 0;  // bytes from the start of a chunk's partial results
    int dims = 0;
    int64_t sizes[Shape::max_rank] = {};
    int64_t strides[Shape::max_rank] = {};
  };

  /// An instruction ready to run.
  struct Ready {
    lower::Instr::Do what;
    bool row;
    bool once;  // the same for all tiles
    ScalarType type, from;
    DType storage;
    uint16_t count, dst, in[Node::max_positions], port;
    int32_t forward;  // apply, convert: store port that is written directly, or -1
    TileLoop loop;
    ReduceLoops loops;
  };

  struct Tile {
    int64_t begin, count;  // elements
    int64_t row_begin, rows;
  };

  struct State;

  void prepare_loads();
  void merge_dims(Load& load, const int64_t* sizes, int dims);
  void find_access(Load& load, int64_t elements) const;
  void prepare_roots();
  void prepare_instrs();
  bool may_forward(size_t store, size_t producer) const;
  void choose_tiles();

  void run_instr(const Ready& instr, const Tile& tile, State& state) const;
  void apply(const Ready& instr, const Tile& tile, State& state) const;
  void load(const Ready& instr, const Tile& tile, State& state) const;
  void scalar(const Ready& instr, const Tile& tile, State& state) const;
  void convert(const Ready& instr, int64_t count, State& state) const;
  void expand(const Ready& instr, const Tile& tile, State& state) const;
  void reduce(const Ready& instr, const Tile& tile, State& state) const;
  void store(const Ready& instr, const Tile& tile, State& state) const;
  void root(const Ready& instr, const Tile& tile, State& state) const;
  static void fold(const Root& port, unsigned char* sum, const unsigned char* x, unsigned char* spare, int64_t count);
  void* output(uint16_t port, const Tile& tile, bool row, const RunData& data) const;
  /// Of a register. Those of a small domain stand close together: far ones would compete for the same cache lines.
  size_t slot_bytes() const { return (static_cast<size_t>(std::min(tile_, total_)) * 8 + 63) / 64 * 64; }
  size_t scratch_bytes() const { return kernel_->registers * (slot_bytes() + sizeof(void*)) + slot_bytes() + 64; }

  const lower::Structure& structure_;
  const lower::Kernel* kernel_;
  const lower::KernelLayout* layout_;
  std::vector<Load> loads_;
  std::vector<Root> roots_;
  std::vector<Ready> instrs_;
  size_t once_ = 0;    // so many instructions, the first ones, run once a chunk
  int64_t total_ = 0;  // elements of the domain
  int64_t tile_ = 1;   // elements of a tile
  int64_t chunk_ = 1;  // elements of a chunk, a multiple of tiles
  int64_t chunks_ = 0;
  size_t partial_bytes_ = 0;  // of one chunk
  std::unique_ptr<unsigned char[]> partials_;
};

}  // namespace rosin::cpu
