// FusedKernel: runs one kernel of a structure strip by strip: by loops of machine code where the processor has them
// (fused_passes.cpp), else and for what these do not hold by loops compiled in advance (fused_instrs.cpp).
// A strip is a range of the domain's elements in memory order; which range depends on sizes only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/strided_copy.hpp"
#include "cpu/draw.hpp"
#include "cpu/machine_loop.hpp"
#include "cpu/plane_sums.hpp"
#include "cpu/sum_order.hpp"
#include "graph/leaf.hpp"
#include "plan/layout.hpp"
#include "scalar/combine.hpp"

namespace rosin::cpu {

/// Memory of one run, by value of the structure.
struct RunData {
  void* const* memory = nullptr;  // of values with memory of their own
  const ScalarValue* scalars = nullptr;
  unsigned char* scratch = nullptr;  // of the step that runs, aligned to 64; a kernel keeps its partial results here
};

/// Ready to run by any number of threads; what a run keeps stands in its own memory.
class FusedKernel {
 public:
  FusedKernel(const plan::Structure& structure, const plan::Layout& layout, int32_t kernel);

  int64_t chunks() const { return view_ ? view_->chunks() : cut_.parts * stretches_ * lane_groups_; }
  void run(int64_t chunk, const RunData& data) const;
  /// Combines the partial results of roots in their order and writes them out.
  void finish(const RunData& data) const;
  bool has_roots() const { return !kernel_->roots.empty(); }
  /// What the roots of one run keep until the end.
  size_t partial_bytes() const { return partial_bytes_; }
  size_t bytes() const {
    return sizeof(*this) + loads_.capacity() * sizeof(Load) + stores_.capacity() * sizeof(Store) +
           numbers_.capacity() * sizeof(size_t) + roots_.capacity() * sizeof(Root) +
           instrs_.capacity() * sizeof(Ready) + loop_bytes();
  }

 private:
  static constexpr int64_t columns_together = 4;

  enum class Access : uint8_t { direct, splat, repeated, strided };

  /// One load: dims merged where memory allows, so that runs are long.
  struct Load {
    int32_t root = -1;
    DType storage = DType::Float32;
    ScalarType type = ScalarType::float32;
    bool row = false;
    Access access = Access::direct;
    bool converts = false;
    int64_t period = 0;   // repeated: elements after which the pattern starts again
    int64_t repeats = 0;  // strided: so many of the kernel's runs read one element; 0: some run reads several
    bool lines = false;   // strided: each of the kernel's runs is contiguous
    int64_t offset = 0;
    int dims = 0;
    int64_t sizes[Shape::max_rank] = {};
    int64_t strides[Shape::max_rank] = {};
    Pairing pairing = Pairing::none;  // strided: of the pairs that the offset lies in the first of
    int64_t panel_columns = 0;        // strided: so many columns are turned together; 0: none, see fused_panels.cpp
    size_t panel_at = 0;              // bytes from the start of a chunk's panels
  };

  /// A store port's array. (Runs of many small kernels wait for memory: what each asks of the structure stands here.)
  struct Store {
    int32_t value = -1;
    uint32_t element = 0;  // bytes
  };

  struct Root {
    int32_t value = -1;
    DType storage = DType::Float32;
    ScalarType type = ScalarType::float32;
    CombineLoops loops;
    std::shared_ptr<const MachineLoop> extreme;  // reduces rows, where it is the least or greatest of each
    std::shared_ptr<const MachineLoop> columns;  // joins columns_together to the result, where columns are long
    bool row = false;           // of values at row level: they are kept, and added up when all rows are there
    int64_t total = 0;          // elements of the domain: that of the kernel, or its rows
    int64_t count = 0;          // elements of the result
    bool planes = false;        // of images in CWHN: the sums of runs are kept, and combined at the end
    int64_t image_stride = 0;   // planes: of the result
    size_t lanes_at = 0;        // planes: bytes from the start of a chunk's lanes
    bool into = false;          // passes add strips to the results, which are columns, or to the lanes of planes
    bool of_stretches = false;  // chunks are stretches of its columns, each of which begins its results itself
    bool folds = false;         // short columns, of which blocks are whole ones: those of one result are added pairwise
    SumOrder order;             // of the domain
    size_t first_part = 0;      // bytes from the start of the partials
    size_t part_bytes = 0;      // of the partial result of one part
    size_t kept_values = 0;     // row, planes: bytes from the start of the partials
    int dims = 0;
    int64_t sizes[Shape::max_rank] = {};
    int64_t strides[Shape::max_rank] = {};

    /// Elements that belong to one result, one behind the other, and are added up at once: whole blocks of its run, or
    /// its run where a block holds several. They start anew at the multiples of a stretch.
    struct Units {
      int64_t unit = 0, stretch = 1;  // unit 0: others' elements lie between
      bool operator==(const Units&) const = default;
    };
    Units units() const;
  };

  /// An instruction ready to run.
  struct Ready {
    plan::Instr::Do what;
    bool row;
    bool once;  // the same for all strips
    ScalarType type, from;
    DType storage;
    uint16_t count, dst, in[Node::max_positions], port;
    int32_t forward;    // apply, convert, draw, load: store port that is written directly, or -1
    int32_t pass = -1;  // it is this pass, and nothing else is set
    bool one_will_do;   // load, scalar: only passes read it, which take one element for all
    bool packed;        // load: only passes read it, which convert its elements themselves
    bool paired;        // load: only passes read it, which take the elements of pairs
    bool lines;         // load: only passes read it, run by run as it stands
    bool per_run;       // load: only passes read it, which take one element for each run
    bool units;         // root: a pass has reduced its units
    bool alike;         // store: all elements are one
    StripLoop loop;
    CombineLoops loops;
    DrawLoop draw;
  };

  /// Instructions that run together as machine code.
  struct Pass {
    struct Output {
      int32_t reg = -1;    // where its place is noted, -1: nobody asks
      int32_t store = -1;  // store port that it writes, -1: the register's slot
      bool row = false;
      bool unit = false;  // an element for each unit of a root
      int32_t root = -1;  // number of the root whose results it adds to, from the register's place on
    };
    /// Bytes from the place of an element, or of a run, to that of the next.
    struct Move {
      uint8_t element = 0, run = 0;
    };
    /// An input whose runs are read where they stand: its number, its load.
    struct Lines {
      size_t input = 0;
      uint16_t port = 0;
    };
    std::shared_ptr<const MachineLoop> loop;
    std::shared_ptr<const MachineLoop> streaming;  // the same, which writes large arrays past the caches; may be null
    bool row = false;                              // over row values
    bool by_rows = false;                          // over elements, row by row; without row programs the runs are rows
    bool by_units = false;                         // over elements, unit by unit of the roots
    std::vector<Output> outputs;
    std::vector<uint16_t> inputs;  // registers
    std::vector<Move> moves;       // of outputs, then of inputs
    std::vector<Lines> lines;
    std::vector<size_t> streams;  // numbers of outputs that `streaming` writes so
  };
  struct PassWriter;

  struct Strip {
    int64_t begin, count;  // elements
    int64_t row_begin, rows;
  };

  struct State;
  struct LinePlace;

  void merge_dims(Load& load, const int64_t* sizes, int dims);
  void find_access(Load& load, int64_t elements) const;
  void find_panel(Load& load);
  void cut_by_columns(int64_t rows, int64_t together);
  void find_runs();
  void find_pairs(Load& load, int64_t elements) const;
  void prepare_roots();
  void find_tile();
  static std::shared_ptr<const MachineLoop> extreme_loop(const CombineBody& body, ScalarType type);
  static std::shared_ptr<const MachineLoop> columns_loop(const CombineBody& body, ScalarType type);
  int64_t held_strips() const;
  int64_t standing_arrays() const;
  std::span<const int64_t> domain_of(const plan::Port& root) const;
  void prepare_instrs();
  Ready ready(const plan::Instr& instr) const;
  bool is_once(const plan::Instr& instr) const;
  bool prepare_passes();
  void find_alike();
  void forward_stores();
  bool is_read_in_place(const Ready& load) const;
  void lengthen_strips();
  void lengthen_rows();
  void lengthen_sums();
  size_t loop_bytes() const;
  static bool gathers_strips(const Load& load);
  bool may_forward(size_t store, size_t producer) const;
  void choose_strips();
  void find_view();

  void run_view(int64_t chunk, const RunData& data) const;
  bool only_adds_columns() const;
  void run_columns(int64_t chunk, const RunData& data) const;
  void write_results(const Root& root, const RunData& data) const;
  /// What a chunk computes: elements of a part, of each column those from one place to another.
  struct Piece {
    int64_t first, end, first_place, end_place;
  };
  Piece piece_of(int64_t chunk) const;
  template <class F> void each_strip(const Piece& piece, F&& f) const;
  template <class F> void each_strip_of_runs(const Piece& piece, int64_t group, State& state, F&& f) const;
  void cut_columns();
  void run_pass(const Pass& pass, const Strip& strip, State& state) const;
  static void run_loop(const Pass& pass, int64_t rows, int64_t count, State& state);
  void run_by_runs(const Pass& pass, const Strip& strip, State& state) const;
  int64_t place_lines(const Pass& pass, int64_t at, State& state) const;
  void run_by_units(const Pass& pass, const Strip& strip, State& state) const;
  static void move_arguments(const Pass& pass, int64_t rows, int64_t count, int64_t runs, State& state);
  void run_instr(const Ready& instr, const Strip& strip, State& state) const;
  void apply(const Ready& instr, const Strip& strip, State& state) const;
  void load(const Ready& instr, const Strip& strip, State& state) const;
  static bool stands_together(const Load& port, int64_t begin, int64_t count);
  static int64_t offset_of(const Load& port, int64_t element);
  static void gather(const Load& port, const unsigned char* memory, int64_t begin, int64_t count, unsigned char* out);
  void load_runs(const Ready& instr, const Strip& strip, State& state) const;
  const unsigned char* from_panel(const Load& load, const unsigned char* memory, const Strip& strip,
                                  unsigned char* room, State& state) const;
  void scalar(const Ready& instr, const Strip& strip, State& state) const;
  void draw(const Ready& instr, const Strip& strip, State& state) const;
  void convert(const Ready& instr, int64_t count, State& state) const;
  void expand(const Ready& instr, const Strip& strip, State& state) const;
  void reduce(const Ready& instr, const Strip& strip, State& state) const;
  void store(const Ready& instr, const Strip& strip, State& state) const;
  void root(const Ready& instr, const Strip& strip, State& state) const;
  void find_planes();
  void share_lanes(int64_t chunk);
  unsigned char* sums_of(const Root& root, const Strip& strip, State& state) const;
  void end_runs(State& state) const;
  static unsigned char* results_of(const Root& port, const Strip& strip, unsigned char* partials);
  void add_results(const Root& port, const Strip& strip, const unsigned char* results, unsigned char* partials) const;
  static void add(const Root& port, int64_t begin, int64_t count, const unsigned char* x, unsigned char* spare,
                  unsigned char* partials);
  static unsigned char* part_of(const Root& port, int64_t part, unsigned char* partials) {
    return partials + port.first_part + static_cast<size_t>(part) * port.part_bytes;
  }
  static void fold(const Root& port, unsigned char* sum, const unsigned char* x, unsigned char* spare, int64_t count);
  static void fold_blocks(const Root& port, int64_t begin, int64_t count, const unsigned char* in, unsigned char* spare,
                          unsigned char* sum);
  static void reduce_blocks(const Root& port, unsigned char* results, const unsigned char* x, int64_t count,
                            int64_t blocks);
  static void add_columns(const Root& port, int64_t begin, int64_t count, unsigned char* sum, const unsigned char* x);
  static void add_to_column(const Root& port, int64_t place, int64_t count, unsigned char* sum, const unsigned char* x);
  static void add_run(const Root& port, unsigned char* sum, const unsigned char* x, int64_t length);
  static void add_lines(const Root& port, int64_t begin, int64_t count, unsigned char* sum, const unsigned char* x,
                        unsigned char* spare);
  void* output(uint16_t port, const Strip& strip, bool row, const RunData& data) const;
  /// Of a register. Those of a small domain stand close together: far ones would compete for the same cache lines.
  size_t slot_bytes() const { return (static_cast<size_t>(slot_elements_) * 8 + 63) / 64 * 64; }
  size_t pointer_bytes() const { return ((registers_ + most_arguments_) * sizeof(void*) + 63) / 64 * 64; }
  size_t scratch_bytes() const {
    return pointer_bytes() + (registers_ + size_t{1}) * slot_bytes() + lanes_bytes_ + panel_bytes_;
  }

  const plan::Structure& structure_;
  const plan::Kernel* kernel_;
  const plan::KernelLayout* layout_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<size_t> numbers_;  // where the numbers of scalar ports stand in a run
  std::vector<Root> roots_;
  std::vector<Ready> instrs_;
  std::vector<Pass> passes_;  // none: the kernel runs instruction by instruction
  uint16_t registers_ = 0;
  size_t most_arguments_ = 0;           // of a pass
  size_t once_ = 0;                     // so many instructions, the first ones, run once a chunk
  int64_t total_ = 0;                   // elements of the domain
  int64_t strip_ = 1;                   // elements of a strip
  int64_t slot_elements_ = 1;           // of a register
  int64_t run_ = 0;                     // elements; 0: no load stays at one for a while
  Root::Units units_;                   // of the roots that passes reduce
  int64_t column_ = 0;                  // elements; strips go through columns side by side; 0: through all in a row
  SumOrder cut_;                        // into chunks, which are its parts, or stretches of their columns
  int64_t stretches_ = 1;               // of a column that are chunks of their own
  std::optional<BlockCopy> view_;       // the kernel copies this, and does nothing else
  std::vector<int64_t> logical_sizes_;  // where the domain is in CWHN and there are roots, else empty
  PlaneRuns planes_;                    // where the domain is in CWHN and there are roots
  int64_t lane_groups_ = 1;             // of a run's lanes that are chunks of their own
  size_t kept_lanes_ = 0;               // of each run, where there are groups: bytes from the start of the partials
  size_t lanes_bytes_ = 0, panel_bytes_ = 0;
  size_t partial_bytes_ = 0;
  size_t spare_block_ = 0;  // memory of one block: bytes from the start of the partials
};

}  // namespace rosin::cpu
