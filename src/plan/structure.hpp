// Structure: what is compiled for one pattern of recorded ops, without sizes. A Graph goes in (nodes of one evaluation
// in recording order), kernels and their order come out. Read next: fuse.cpp (which nodes form one kernel),
// program.cpp (what a kernel does), layout.hpp (sizes and memory).
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/math_mode.hpp>

#include "graph/op.hpp"
#include "plan/call.hpp"

namespace rosin::plan {

/// How a value that is no node looks at another one.
enum class Look : uint8_t {
  none,
  transposed,  // first two dims exchanged (operands of matmul)
  parts,       // complex elements as a first dim of their two parts
  whole,       // the way back
  bits         // no look: memory for a bit an element, columns in groups of 128 (the auxiliary of relu)
};

/// Values that a value is computed from, by position; -1 where it keeps a C++ number, or has no operand.
class OperandValues {
 public:
  int32_t& operator[](int i) { return begin()[i]; }
  int32_t operator[](int i) const { return begin()[i]; }
  int32_t* begin() { return more_.empty() ? few_ : more_.data(); }
  const int32_t* begin() const { return more_.empty() ? few_ : more_.data(); }
  /// Room for so many; before any is set.
  void resize(int count) {
    if (count > Node::max_positions) more_.resize(static_cast<size_t>(count), -1);
  }
  size_t bytes() const { return more_.capacity() * sizeof(int32_t); }

 private:
  int32_t few_[Node::max_positions] = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::vector<int32_t> more_;
};

/// One value of the graph: a node, or a leaf. Values [0, nodes) are nodes in recording order, the rest leaves.
struct Value {
  const Op* op = nullptr;
  DType dtype = DType::Float32;
  ScalarType compute = ScalarType::float32;
  uint8_t rank = 0;
  uint8_t wide = 0;  // bit d: dim d has a size other than 1
  int32_t operands = 0;
  bool held = false;            // a user handle holds it: its value must come out
  bool donatable = false;       // leaf: nobody else reads its buffer, it may be overwritten
  bool guarded = false;         // leaf: a reference to it may be given back when a step fails
  int32_t heir = -1;            // leaf: the node that alone may take its memory, see Context::heirs; -1: any
  bool channels_first = false;  // images: memory order is channels, spatial dims, batch (CWHN)
  bool small = false;           // reduction: a row as Target::longest_row() or longest_line() says; convolution of
                                // groups or of points: planes as Target::least_plane() says,
                                // or filters as most_plane_taps() does
  Look look = Look::none;       // without an op: a look, or a contiguous copy
  MathMode mode = MathMode::exact;
  OperandValues in;
  Attributes attributes;

  bool is_scalar() const { return op && op->kind == Kind::scalar; }  // a copy made contiguous has no op
  bool is_leaf() const { return op && op->kind == Kind::leaf; }
};

struct Graph {
  int32_t nodes = 0;
  int32_t backward = 0;  // nodes from here on were recorded by the walk of a gradient call; `nodes`: there was none
  std::vector<Value> values;
};

/// One instruction of a kernel; it works on one strip. Registers hold strips (full) or one element a row (row).
struct Instr {
  enum class Do : uint8_t {
    load,     // dst = port (converted from its storage type to `type`)
    scalar,   // dst = scalar port, in all elements
    apply,    // dst = loop(in...)
    draw,     // dst = random numbers at the elements' places; key and counter are scalar ports `port` and `port` + 1
    convert,  // dst = in[0] of type `from` as `type`, rounded to `storage`
    expand,   // dst (full) = in[0] (row), repeated along the row
    reduce,   // dst (row) = in[0] (full) combined along the row
    store,    // port = in[0], converted to `storage`
    root      // port (a reduction over other dims than the row) combines in[0]
  };
  Do what = Do::load;
  bool row = false;  // level of dst (load, scalar, apply, convert, reduce) or of in[0] (store, root)
  ScalarType type = ScalarType::float32;
  ScalarType from = ScalarType::float32;
  DType storage = DType::Float32;
  const Reducer* reducer = nullptr;
  uint16_t count = 0;  // operands of apply
  uint16_t dst = 0;
  uint16_t in[Node::max_positions] = {};
  uint16_t port = 0;
  const Op* op = nullptr;
  MathMode mode = MathMode::exact;  // apply, reduce, root
  bool narrow = false;              // the result is Float16 or BFloat16
};

/// What a kernel reads or writes.
struct Port {
  int32_t value = -1;    // scalar ports: the scalar leaf, or the node that keeps the number
  int32_t operand = -1;  // scalar ports: which operand of that node, -1 for a leaf
  bool row = false;      // store: one element a row
  bool aliased = false;  // store: takes over the memory of load port `alias`
  uint16_t alias = 0;
  int32_t check = -1;  // load: the node that asks whether the label that stands there is a class
};

/// A fused kernel: for every strip of the domain, run the instructions.
struct Kernel {
  int32_t domain = -1;          // the value whose sizes are the domain
  uint8_t wide = 0;             // its wide dims; dims of size 1 do not count
  bool channels_first = false;  // strips run through the domain in CWHN order
  int row_dims = 1;             // leading wide dims that form a row
  bool whole_rows = false;      // strips hold whole rows (there are row reductions)
  std::vector<Instr> instrs;
  uint16_t registers = 0;  // after allocation
  std::vector<Port> loads, scalars, stores, roots;
};

/// One launch: a fused kernel, or a call of an opaque kind (contraction, window, gather, ...).
struct Step {
  int32_t kernel = -1;               // index into kernels, or -1
  int32_t node = -1;                 // the opaque node
  int32_t result = -1;               // calls: the value that is written, the node's or that of its epilogue's end
  Epilogue epilogue;                 // calls
  int32_t bias = -1, residual = -1;  // values that the epilogue reads
  int32_t center = -1, factor = -1, shift = -1;
  int32_t auxiliary = -1;              // that it reads or writes
  int32_t bias_gradient = -1;          // that it writes
  int64_t scale = -1;                  // where the epilogue's number stands, see scalar_index
  std::vector<int32_t> results;        // of a node of several: values by number, -1: nobody reads it; `result` has none
  bool taken = false;                  // calls: the target said that it takes calls like this one
  std::vector<int32_t> behind;         // kernels that compute the epilogue, in place, where the call is refused
  std::vector<int32_t> ends;           // kernels on results of the kernel's roots: they run when these are there
  std::vector<int32_t> reads, writes;  // values with storage of their own
};

/// Where the elements of a value are.
enum class Home : uint8_t {
  none,  // never in memory: a register of one kernel
  leaf,
  scalar,
  own,    // written by a step
  alias,  // the memory of another value, contiguous (reshape, argument)
  view,   // the memory of another value, strided (permute, slice, broadcast)
  result  // what a call with an epilogue makes before that: it stands where the call's result will
};

struct Structure {
  Graph graph;  // nodes, leaves; appended, without op: copies made contiguous, and looks at other values
  std::vector<Home> homes;
  std::vector<int32_t> base;        // alias, view: the operand it looks at; copy: its source
  std::vector<int32_t> contiguous;  // a contiguous copy of the value where one is made, else -1
  std::vector<Kernel> kernels;
  std::vector<Step> steps;     // in order of execution
  std::vector<int32_t> donor;  // own: the value (leaf or own) whose memory it takes over, else -1
  bool beside = false;         // a result would take over the memory of a leaf, but stands elsewhere
  size_t bytes() const;
};

Structure compile(Graph&& graph, const Target& target);

}  // namespace rosin::plan
