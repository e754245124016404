// What a device launches to run a layout. Every step becomes one or more launches; sizes are parameters of a code,
// so layouts of one structure share most of their codes; matrix products choose theirs by size.
// Read first: code.hpp, layout.hpp. Read next: fused.cpp, then the kernels of the other kinds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/code.hpp"
#include "kernels/matrix_layout.hpp"
#include "kernels/plan.hpp"

namespace rosin::kernels {

/// What the kernels of a device may do beyond backend.h's first page, and what they have to do it with.
struct Abilities {
  int vector_bytes = 0;          // of vectors that are loaded and stored; 0: there are none
  int warp = 0;                  // items that exchange values; 0: none do
  bool read_only = false;        // buffers may be marked so
  int64_t shared_bytes = 16384;  // that a group may have
  int argument_bytes = 1024;     // of a launch
  bool choices = false;          // buffers may be chosen
  uint32_t matrix_types = 0;     // bit n: warps multiply matrices of DType n, and load vectors of shared memory
  MatrixLayout matrix_layout = MatrixLayout::none;  // of square ones; none: they have 8 columns
  bool arrivals = false;                            // the last of some groups goes on with what all have stored

  bool multiplies(DType element) const { return (matrix_types >> static_cast<int>(element) & 1) != 0; }
};

/// Launches in order, and what they need beside the values of the structure.
struct LaunchList {
  Abilities device;
  std::vector<Launch> launches;
  std::vector<int64_t> scratch_bytes;   // of each scratch block, which lives for the whole run
  std::vector<int32_t> checks;          // nodes that check indices, see throw_index_error
  std::vector<int64_t> counter_counts;  // of each block of counters: Int32, 0 before and after each run

  int32_t scratch(int64_t bytes) {
    scratch_bytes.push_back(bytes);
    return static_cast<int32_t>(scratch_bytes.size() - 1);
  }
  /// The same for counters.
  int32_t counters(int64_t count) {
    counter_counts.push_back(count);
    return LaunchBuffer::first_counters - static_cast<int32_t>(counter_counts.size() - 1);
  }
};

/// What of a step somebody else computes: nothing, a call without its epilogue, all of it.
enum class ByLibrary : uint8_t { nothing, product, all };

/// All launches of a run of this layout. `by_library[i]`: of step i; the launch of what somebody else computes says so
/// and has no code. Error (dtype) where no kernel exists for the types of a step.
LaunchList write_launches(const Layout& layout, const Abilities& device = {},
                          std::span<const ByLibrary> by_library = {});

/// Whether kernels are to compute a step that libraries would take: Float32 convolutions of few channels. Libraries
/// compute tens of channels together, and have few groups and long sums for gradients by weights, as these may not add
/// up what comes first.
bool beats_libraries(const Layout& layout, const Step& step, const Abilities& device);

/// Joins neighbouring launches that may share one; part of write_launches.
void merge_launches(const Layout& layout, LaunchList& list);

/// Makes stores to the memory of leaves depend on LaunchBuffer::guard; part of write_launches.
void guard_leaves(const Layout& layout, LaunchList& list);

/// Marks the buffers whose memory no other buffer of their launch writes, on devices that ask for it; part of
/// write_launches.
void mark_read_only(const Layout& layout, LaunchList& list);

/// Where more than a few launches read numbers that come anew with each run, these read them from memory that one
/// launch more writes first: so few launches of a graph are updated. That is no part of write_launches.
void share_numbers(LaunchList& list);

/// The error that the CPU throws for the index of a node of `checks` whose flag is not 0 after a run.
[[noreturn]] void throw_index_error(const Layout& layout, int32_t node, int64_t flag);

// What follows is for the files that write kernels.

/// The result or leaf that a buffer argument is, or nothing where it is in the arena.
std::optional<int64_t> memory_of(const Layout& layout, const LaunchBuffer& buffer);

/// Bytes of one block of memory: a result's or a leaf's, a scratch block's, the arena's.
struct Extent {
  enum class Of : uint8_t { value, scratch, arena } of = Of::arena;
  int64_t number = 0, begin = 0, end = 0;

  bool meets(const Extent& other) const {
    if (of != other.of || number != other.number) return false;
    return of != Of::arena || (begin < other.end && other.begin < end);
  }
};

Extent extent_of(const Layout& layout, const LaunchBuffer& buffer);

/// Whether two buffer arguments have memory in common.
bool share_memory(const Layout& layout, const LaunchBuffer& a, const LaunchBuffer& b);

/// Int32 where every element number of these values fits, else Int64.
ScalarType index_type(const Layout& layout, std::span<const int32_t> values);

/// An array as a kernel sees it: its buffer, and strides that are literals where sizes do not matter (0 for dims of one
/// element) and parameters elsewhere.
class ArrayTerm {
 public:
  ArrayTerm(KernelWriter& writer, const Layout& layout, int32_t value);
  /// An array like the value, of another element type, in other memory.
  ArrayTerm(KernelWriter& writer, const Layout& layout, int32_t value, DType type, LaunchBuffer where);
  /// The number of the element at these coordinates (as many as the value has dims).
  Term at(std::span<const Term> coordinates) const;
  Term load(std::span<const Term> coordinates) const { return writer_->load(buffer_, at(coordinates)); }
  void store(std::span<const Term> coordinates, Term value) const { writer_->store(buffer_, at(coordinates), value); }
  int buffer() const { return buffer_; }
  int rank() const { return static_cast<int>(strides_.size()); }

 private:
  KernelWriter* writer_;
  int buffer_;
  bool has_offset_;
  Term offset_{};
  std::vector<bool> moves_;
  std::vector<Term> strides_;
};

/// The sizes of a value as parameters (dims of one element as literals).
std::vector<Term> size_terms(KernelWriter& writer, const Layout& layout, int32_t value);

inline constexpr int items_of_group = 256;
constexpr int64_t groups_for(int64_t items, int64_t each = items_of_group) { return (items + each - 1) / each; }

// One file each: the launches of one step.
/// `ends`: kernels on results of its roots, see Step::ends.
void write_fused(const Layout& layout, int32_t kernel, std::span<const int32_t> ends, LaunchList& list);
void write_movement(const Layout& layout, int32_t node, LaunchList& list);
void write_gather(const Layout& layout, int32_t node, LaunchList& list);
void write_scatter(const Layout& layout, int32_t node, LaunchList& list);
void write_matmul(const Layout& layout, int32_t node, LaunchList& list);
/// Whether the epilogue of the step is computed too.
bool write_convolution(const Layout& layout, const Step& step, LaunchList& list);
void write_window(const Layout& layout, int32_t node, LaunchList& list);
void write_sort(const Layout& layout, const Step& call, LaunchList& list);
void write_scan(const Layout& layout, int32_t node, LaunchList& list);
void write_random(const Layout& layout, int32_t node, LaunchList& list);
void write_attention(const Layout& layout, const Step& call, LaunchList& list);
/// The auxiliary of a product that ends in relu, from its result.
void write_bits(const Layout& layout, const Step& call, LaunchList& list);

}  // namespace rosin::kernels
