// The narrow bridge to oneDNN's C functions: owned handles, errors as rosin::Error, one thread per call.
// Read after vendor.hpp; next onednn_matmul.cpp, onednn_conv.cpp. Included only where ROSIN_HAVE_ONEDNN is defined.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dnnl.h>

#include <rosin/dtype.hpp>

namespace rosin::engines::onednn {

/// Throws Error(backend) unless `status` is success; `what` begins the text, e.g. "matmul".
void check(dnnl_status_t status, const char* what);

/// While it lives, OpenMP (which Debian's oneDNN is built on) sees one thread on this thread; then the old number
/// again.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

struct Destroy {
  void operator()(dnnl_primitive_desc_t desc) const { dnnl_primitive_desc_destroy(desc); }
  void operator()(dnnl_primitive_t primitive) const { dnnl_primitive_destroy(primitive); }
  void operator()(dnnl_primitive_attr_t attr) const { dnnl_primitive_attr_destroy(attr); }
  void operator()(dnnl_post_ops_t ops) const { dnnl_post_ops_destroy(ops); }
  void operator()(dnnl_memory_t memory) const { dnnl_memory_destroy(memory); }
  void operator()(dnnl_stream_t stream) const { dnnl_stream_destroy(stream); }
};
template <class Handle> using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

/// The CPU engine; made on first use, never freed.
dnnl_engine_t cpu_engine();

/// Float32 or BFloat16; throws Error(dtype) for others.
dnnl_data_type_t data_type_of(DType type, const char* what);

/// A descriptor with explicit strides, in elements.
dnnl_memory_desc_t strided(int dims_count, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides,
                           const char* what);

/// Of a primitive with its machine code, about: measured over many shapes.
inline constexpr size_t primitive_bytes = size_t{16} << 10;

/// What oneDNN would compute and how, without code. `op_desc` is an initialised descriptor of an operation; `forward`
/// is the hint that backward convolutions need.
Owned<dnnl_primitive_desc_t> described(const_dnnl_op_desc_t op_desc, const_dnnl_primitive_attr_t attr,
                                       const_dnnl_primitive_desc_t forward, const char* what);

/// Which of oneDNN's engines computes it, by oneDNN's name, e.g. "brg:avx512_core".
std::string_view engine_of(const_dnnl_primitive_desc_t desc);

/// A prepared oneDNN primitive that takes its scratch memory from the caller, and how its operands lie.
class Primitive {
 public:
  Primitive() = default;
  Primitive(Owned<dnnl_primitive_desc_t> desc, const char* what);

  const_dnnl_primitive_t primitive() const { return primitive_.get(); }
  /// How the operand that oneDNN calls `query` (dnnl_query_weights_md, ...) lies.
  dnnl_memory_desc_t layout(dnnl_query_t query, int index = 0) const;
  size_t scratch_bytes() const;
  explicit operator bool() const { return primitive_ != nullptr; }

 private:
  Owned<dnnl_primitive_desc_t> desc_;
  Owned<dnnl_primitive_t> primitive_;
};

/// Attributes with the caller's scratchpad; `accumulate`: the result is added to.
Owned<dnnl_primitive_attr_t> attributes(bool accumulate, const char* what);

/// One operand of an execution: oneDNN's argument number and its layout.
struct Operand {
  int argument;
  dnnl_memory_desc_t layout;
};

/// Everything one execution of a primitive needs, made beforehand; used by one thread at a time.
class Execution {
 public:
  /// Adds the scratchpad operand itself, as the last one.
  Execution(const Primitive& primitive, std::vector<Operand> operands, const char* what);

  /// Runs with `data[i]` as operand i, and `scratch` where the primitive needs it.
  void run(const void* const* data, void* scratch);

  /// Tells oneDNN beforehand where an operand lies; needed for operands in oneDNN's own layouts that several executions
  /// share, whose padding it clears when told.
  void point(size_t operand, const void* data);

 private:
  const_dnnl_primitive_t primitive_;
  const char* what_;
  Owned<dnnl_stream_t> stream_;
  std::vector<Owned<dnnl_memory_t>> memories_;
  std::vector<const void*> pointers_;       // where each memory object points now: plans reuse addresses, so most calls
  std::vector<dnnl_exec_arg_t> arguments_;  // need not tell oneDNN again
};

/// The Executions of a call: one set for each execution of it that goes on, since a set can be used by one at a time.
/// The workspace of an execution names its set. (One that threw in between keeps its set until the call ends.)
class ExecutionSets {
 public:
  using Set = std::vector<Execution>;
  static constexpr size_t bytes = 64;  // of the place in the workspace

  /// From now on sets have this Execution too, as their last. The primitive stays where it is.
  void add(const Primitive& primitive, std::vector<Operand> operands, const char* what);
  /// Makes the first set.
  void prepare() { give_back(take()); }

  Set& begin(void* place) { return *(*static_cast<Set**>(place) = take()); }
  static Set& of(const void* place) { return **static_cast<Set* const*>(place); }
  void finish(void* place) noexcept { give_back(*static_cast<Set**>(place)); }

 private:
  struct Row {
    const Primitive* primitive;
    std::vector<Operand> operands;
    const char* what;
  };

  Set* take();
  void give_back(Set* set) noexcept;

  std::vector<Row> rows_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Set>> all_;
  std::vector<Set*> idle_;  // has room for all
};

}  // namespace rosin::engines::onednn
