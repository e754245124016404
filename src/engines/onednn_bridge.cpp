// Implementation of onednn_bridge.hpp.
#if defined(ROSIN_HAVE_ONEDNN)

#include "engines/onednn_bridge.hpp"

#include "engines/onednn.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <string>
#include <utility>

#include <rosin/error.hpp>

// Weak: librosin does not link libgomp itself; where oneDNN brought no OpenMP along there is nothing to restrain.
extern "C" {
int omp_get_max_threads(void) __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

namespace rosin::engines::onednn {

namespace {

const char* status_name(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "unimplemented";
    case dnnl_runtime_error: return "runtime error";
    default: return "unknown failure";
  }
}

bool has_openmp() { return omp_get_max_threads != nullptr && omp_set_num_threads != nullptr; }

/// Some virtual machines pass on that the processor has tiles (AMX) but not how large they are: oneDNN would then
/// configure none and be ended by an illegal instruction. Such a processor is used as one without tiles. Fails, and
/// need not succeed, where the program has used oneDNN before.
void keep_from_tiles_without_size() {
#if defined(__x86_64__)
  constexpr unsigned features = 7, tiles = 0x1d, amx_tile = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(features, 0, &eax, &ebx, &ecx, &edx) || !(edx & amx_tile)) return;
  const bool has_size = __get_cpuid_count(tiles, 0, &eax, &ebx, &ecx, &edx) && eax > 0;
  if (!has_size) static_cast<void>(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16));
#endif
}

template <class Handle> Owned<Handle> owned(Handle handle) { return Owned<Handle>(handle); }

}  // namespace

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  throw Error(status == dnnl_out_of_memory ? ErrorKind::memory : ErrorKind::backend,
              std::string(what) + ": oneDNN refused the call; it said: " + status_name(status) +
                  "; please report it with the shapes of the operands");
}

SingleThread::SingleThread() : before_(has_openmp() ? omp_get_max_threads() : 1) {
  if (before_ != 1) omp_set_num_threads(1);
}

SingleThread::~SingleThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

dnnl_engine_t cpu_engine() {
  static const dnnl_engine_t engine = [] {
    const SingleThread guard;
    keep_from_tiles_without_size();
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "oneDNN");
    return made;
  }();
  return engine;
}

dnnl_data_type_t data_type_of(DType type, const char* what) {
  if (type == DType::Float32) return dnnl_f32;
  if (type == DType::BFloat16) return dnnl_bf16;
  throw Error(ErrorKind::dtype, std::string(what) + ": oneDNN computes Float32 and BFloat16 on the CPU; got " +
                                    to_string(type) + "; convert the operands");
}

dnnl_memory_desc_t strided(int dims_count, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides,
                           const char* what) {
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_strides(&desc, dims_count, dims, type, strides), what);
  return desc;
}

Owned<dnnl_primitive_desc_t> described(const_dnnl_op_desc_t op_desc, const_dnnl_primitive_attr_t attr,
                                       const_dnnl_primitive_desc_t forward, const char* what) {
  const SingleThread guard;  // oneDNN plans its inner loops for the number of threads it sees here
  dnnl_primitive_desc_t desc = nullptr;
  check(dnnl_primitive_desc_create(&desc, op_desc, attr, cpu_engine(), forward), what);
  return owned(desc);
}

std::string_view engine_of(const_dnnl_primitive_desc_t desc) {
  const char* name = nullptr;
  return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success ? name : "";
}

Primitive::Primitive(Owned<dnnl_primitive_desc_t> desc, const char* what) : desc_(std::move(desc)) {
  const SingleThread guard;
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, desc_.get()), what);
  primitive_.reset(primitive);
}

dnnl_memory_desc_t Primitive::layout(dnnl_query_t query, int index) const {
  return *dnnl_primitive_desc_query_md(desc_.get(), query, index);
}

/// oneDNN 2.6 writes whole vectors behind the end of what it asks for, where a strided convolution by one tap has few
/// channels.
size_t Primitive::scratch_bytes() const {
  constexpr size_t behind = 128;
  const dnnl_memory_desc_t desc = layout(dnnl_query_scratchpad_md);
  const size_t bytes = dnnl_memory_desc_get_size(&desc);
  return bytes == 0 ? 0 : bytes + behind;
}

Owned<dnnl_primitive_attr_t> attributes(bool accumulate, const char* what) {
  dnnl_primitive_attr_t attr = nullptr;
  check(dnnl_primitive_attr_create(&attr), what);
  Owned<dnnl_primitive_attr_t> result(attr);
  check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), what);
  if (!accumulate) return result;
  dnnl_post_ops_t ops = nullptr;
  check(dnnl_post_ops_create(&ops), what);
  const Owned<dnnl_post_ops_t> owned_ops(ops);
  check(dnnl_post_ops_append_sum(ops, 1.0f), what);
  check(dnnl_primitive_attr_set_post_ops(attr, ops), what);
  return result;
}

Execution::Execution(const Primitive& primitive, std::vector<Operand> operands, const char* what)
    : primitive_(primitive.primitive()), what_(what) {
  const SingleThread guard;
  dnnl_stream_t stream = nullptr;
  check(dnnl_stream_create(&stream, cpu_engine(), dnnl_stream_default_flags), what);
  stream_.reset(stream);
  operands.push_back({DNNL_ARG_SCRATCHPAD, primitive.layout(dnnl_query_scratchpad_md)});
  for (const Operand& operand : operands) {
    dnnl_memory_t memory = nullptr;
    check(dnnl_memory_create(&memory, &operand.layout, cpu_engine(), DNNL_MEMORY_NONE), what);
    memories_.push_back(owned(memory));
    pointers_.push_back(nullptr);
    arguments_.push_back({operand.argument, memory});
  }
}

void Execution::point(size_t operand, const void* data) {
  if (pointers_[operand] == data) return;
  check(dnnl_memory_set_data_handle(memories_[operand].get(), const_cast<void*>(data)), what_);
  pointers_[operand] = data;
}

void Execution::run(const void* const* data, void* scratch) {
  const SingleThread guard;
  const size_t last = memories_.size() - 1;
  for (size_t operand = 0; operand < last; ++operand) point(operand, data[operand]);
  point(last, scratch);
  check(dnnl_primitive_execute(primitive_, stream_.get(), static_cast<int>(arguments_.size()), arguments_.data()),
        what_);
}

void ExecutionSets::add(const Primitive& primitive, std::vector<Operand> operands, const char* what) {
  rows_.push_back({&primitive, std::move(operands), what});
}

ExecutionSets::Set* ExecutionSets::take() {
  {
    std::lock_guard guard(lock_);
    if (!idle_.empty()) {
      Set* set = idle_.back();
      idle_.pop_back();
      return set;
    }
  }
  auto made = std::make_unique<Set>();
  made->reserve(rows_.size());
  for (const Row& row : rows_) made->emplace_back(*row.primitive, row.operands, row.what);
  std::lock_guard guard(lock_);
  idle_.reserve(all_.size() + 1);
  all_.push_back(std::move(made));
  return all_.back().get();
}

void ExecutionSets::give_back(Set* set) noexcept {
  std::lock_guard guard(lock_);
  idle_.push_back(set);
}

}  // namespace rosin::engines::onednn

namespace rosin::engines {

BFloatProducts onednn_bfloat_products() noexcept {
  static const unsigned instructions = [] {
    onednn::keep_from_tiles_without_size();
    return static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  }();
  const auto has = [](unsigned wanted) { return (instructions & wanted) == wanted; };
  if (has(dnnl_cpu_isa_avx512_core_amx)) return BFloatProducts::tiles;
  return has(dnnl_cpu_isa_avx512_core_bf16) ? BFloatProducts::pairs : BFloatProducts::none;
}

}  // namespace rosin::engines

#endif
