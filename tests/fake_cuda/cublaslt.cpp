// The functions of the stand-in of cuBLASLt, and with FAKE_HIP of hipBLASLt, which has nearly the same. What the real
// library takes quietly and punishes late is an error at once. See README.md. Read first: cublaslt.hpp.
#include "cublaslt.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>

#include "stand_in.hpp"

#ifdef FAKE_HIP
#define FAKE_BLAS(name) hipblasLt##name
constexpr const char* prefix = "hipblasLt";
#else
#define FAKE_BLAS(name) cublasLt##name
constexpr const char* prefix = "cublasLt";
#endif
#define FAKE_BLAS_API(name) extern "C" __attribute__((visibility("default"))) int FAKE_BLAS(name)

using namespace fake_blas;
using fake::cuda;
using fake::note;
using fake::Trouble;

namespace {

std::set<Handle*> handles;
std::set<Layout*> layouts;
std::set<Operation*> operations;
std::set<Preference*> preferences;

int status_of(int code) {
  switch (code) {
    case fake::success: return blas::success;
    case fake::out_of_memory: return blas::alloc_failed;
    case fake::not_supported: return blas::not_supported;
    case fake::invalid_value:
    case fake::invalid_handle:
    case fake::invalid_context: return blas::invalid_value;
    default: return blas::execution_failed;
  }
}

int call(const char* function, const std::function<void()>& f) {
  const std::string name = std::string(prefix) + function;
  std::string said;
  const int code = cuda().call(name.c_str(), f, &said);
  if (code != fake::success) note("error in " + name + ": " + said);
  return status_of(code);
}

template <class T> T& known(std::set<T*>& all, const void* one) {
  const auto found = all.find(const_cast<T*>(static_cast<const T*>(one)));
  if (found == all.end()) throw Trouble{fake::invalid_value, "an object that is not there, or no more"};
  return **found;
}

template <class T> T* made(std::set<T*>& all, T value) {
  auto* one = new T(value);
  all.insert(one);
  return one;
}

template <class T> void destroy(std::set<T*>& all, void* one) {
  T& found = known(all, one);
  all.erase(&found);
  delete &found;
}

template <class T> void take(T& to, const void* value, size_t bytes) {
  if (!value || bytes != sizeof to) throw Trouble{fake::invalid_value, "an attribute of another size"};
  std::memcpy(&to, value, bytes);
}

Handle& handle_now(void* handle) {
  Handle& one = known(handles, handle);
  if (one.context != cuda().thread_context()) throw Trouble{fake::invalid_context, "a handle of another device"};
  return one;
}

/// In bytes of all objects; an algorithm is for one product alone.
uint64_t mark_of(const Product& p) {
  std::ostringstream text;
  text << static_cast<int>(p.operation.compute) << ' ' << static_cast<int>(p.operation.scale) << ' '
       << p.operation.transpose_a << p.operation.transpose_b << ' ' << p.operation.epilogue;
  for (const Layout* each : {&p.a, &p.b, &p.c, &p.d}) {
    text << ' ' << static_cast<int>(each->type) << ' ' << each->rows << ' ' << each->columns << ' ' << each->leading
         << ' ' << each->stride << ' ' << each->batch;
  }
  return std::hash<std::string>()(text.str());
}

[[noreturn]] void wrong(const char* text) { throw Trouble{fake::invalid_value, text}; }
[[noreturn]] void refuse(const char* text) { throw Trouble{fake::not_supported, text}; }

#ifdef FAKE_HIP
constexpr bool has_relu_bits = false;  // in ROCm 7 relu keeps values, before it keeps nothing
constexpr uint32_t fastest = 4;
#else
constexpr bool has_relu_bits = true;
constexpr uint32_t fastest = 3;
#endif

void check_types(const Product& p) {
  const bool wide = p.operation.compute == blas::Compute::float64;
  const bool narrow = p.d.type == blas::Type::float16 || p.d.type == blas::Type::bfloat16;
  for (const Layout* each : {&p.a, &p.b, &p.c}) {
    if (each->type != p.d.type) refuse("matrices of several types");
  }
  if (wide != (p.d.type == blas::Type::float64) || wide != (p.operation.scale == blas::Type::float64)) {
    refuse("types that do not go together");
  }
  if (narrow && p.operation.compute != blas::Compute::float32) refuse("halves are summed in Float32");
  using namespace blas;
  constexpr uint32_t forms[] = {plain,
                                bias,
                                relu,
                                relu | bias,
                                relu | auxiliary,
                                relu | auxiliary | bias,
                                relu_gradient | auxiliary,
                                relu_gradient | auxiliary | sums_of_result,
                                gelu,
                                gelu | bias,
                                gelu | auxiliary,
                                gelu | auxiliary | bias,
                                gelu_gradient | auxiliary,
                                gelu_gradient | auxiliary | sums_of_result,
                                sums_of_left};
  if (std::find(std::begin(forms), std::end(forms), p.operation.epilogue) == std::end(forms)) {
    refuse("no such epilogue");
  }
  constexpr uint32_t bits = auxiliary | relu, gradient_bits = auxiliary | relu_gradient;
  const uint32_t epilogue = p.operation.epilogue;
  if (!has_relu_bits && ((epilogue & bits) == bits || (epilogue & gradient_bits) == gradient_bits)) {
    refuse("relu with an auxiliary");
  }
  if (p.operation.bias_type && p.operation.bias_type != p.d.type) refuse("a bias of another type");
  if (wide && epilogue != plain) refuse("Float64 has no epilogues");
}

void check_shapes(const Product& p) {
  const auto [m, k] = p.operation.transpose_a ? std::pair(p.a.columns, p.a.rows) : std::pair(p.a.rows, p.a.columns);
  const auto [l, n] = p.operation.transpose_b ? std::pair(p.b.columns, p.b.rows) : std::pair(p.b.rows, p.b.columns);
  if (m != p.d.rows || n != p.d.columns || k != l || p.c.rows != m || p.c.columns != n) wrong("sizes that do not fit");
  for (const Layout* each : {&p.a, &p.b, &p.c, &p.d}) {
    if (each->rows == 0 || each->columns == 0) wrong("a matrix without elements");
    if (each->leading < static_cast<int64_t>(each->rows)) wrong("columns that overlap");
    if (each->batch != p.d.batch) wrong("batches of several sizes");
  }
  if (p.d.batch > 1 && p.d.stride == 0) wrong("a batch whose results overlap");
}

Product product_of(void* operation, void* a, void* b, void* c, void* d) {
  Product p;
  p.operation = known(operations, operation);
  p.a = known(layouts, a);
  p.b = known(layouts, b);
  p.c = known(layouts, c);
  p.d = known(layouts, d);
  check_shapes(p);
  check_types(p);
  return p;
}

bool has_vector(const Operation& operation) {
  return (operation.epilogue & (blas::bias | blas::sums_of_result | blas::sums_of_left)) != 0;
}
bool has_auxiliary(const Operation& operation) { return (operation.epilogue & blas::auxiliary) != 0; }
bool has_bits(const Operation& operation) { return (operation.epilogue & (blas::relu | blas::relu_gradient)) != 0; }

/// Where the epilogue reads and writes; `places`: the arrays are there, else their alignment alone is said.
void check_epilogue(const Product& p, bool places) {
  const Operation& operation = p.operation;
  if (has_vector(operation)) {
    if (operation.bias == 0 || operation.bias % 16 != 0) wrong("a bias that is not aligned, or not said to be");
    if (places) cuda().check_memory(operation.bias, p.d.rows * p.d.element_bytes());
  }
  if (!has_auxiliary(operation)) return;
  const int64_t unit = has_bits(operation) ? 128 : 8;
  if (operation.auxiliary == 0 || operation.auxiliary % 16 != 0) wrong("an auxiliary that is not aligned");
  if (operation.auxiliary_leading < static_cast<int64_t>(p.d.rows)) wrong("an auxiliary whose columns overlap");
  if (operation.auxiliary_leading % unit != 0 || operation.auxiliary_stride % unit != 0) {
    wrong("an auxiliary whose columns are not aligned");
  }
  if (p.d.batch > 1 && operation.auxiliary_stride == 0) wrong("an auxiliary whose batches overlap");
  const auto last = static_cast<uint64_t>((static_cast<int64_t>(p.d.columns) - 1) * operation.auxiliary_leading +
                                          (p.d.batch - 1) * operation.auxiliary_stride) +
                    p.d.rows;
  const uint64_t bytes = has_bits(operation) ? (last + 7) / 8 : last * p.d.element_bytes();
  if (places) cuda().check_memory(operation.auxiliary, bytes);
}

/// What an algorithm's words hold.
struct Algorithm {
  static constexpr uint32_t right_mark = 0x616c676f;
  uint32_t mark = right_mark, id = 0;
  uint64_t product = 0, alignment = 0;

  explicit Algorithm(const void* words) { std::memcpy(this, words, sizeof *this); }
  Algorithm(int number, const Product& p, uint64_t of)
      : id(static_cast<uint32_t>(number)), product(mark_of(p)), alignment(of) {}
  bool is_for(const Product& p) const { return mark == right_mark && product == mark_of(p); }
  /// Odd ones want room.
  uint64_t room(const Product& p) const { return id % 2 ? p.d.rows * p.d.columns * 8 : 0; }
};
using Candidate = blas::Found<blas::algorithm_words>;
static_assert(sizeof(Algorithm) <= sizeof(Candidate::words));

/// The last adds in place.
Candidate candidate(int id, const Product& p, uint32_t alignment) {
  Candidate one{};
  const Algorithm algorithm(id, p, alignment);
  std::memcpy(one.words, &algorithm, sizeof algorithm);
  one.facts.workspace = algorithm.room(p);
  one.facts.status = id == 2 ? static_cast<int>(blas::not_supported) : blas::success;
  one.facts.waves = 1;
  return one;
}

constexpr int algorithms = 6, adds_in_place = 5;

void check_overlap(const Product& p) {
  const auto overlap = [](uint64_t x, uint64_t x_bytes, uint64_t y, uint64_t y_bytes) {
    return x < y + y_bytes && y < x + x_bytes;
  };
  if (overlap(p.d_at, p.d.reach(), p.a_at, p.a.reach()) || overlap(p.d_at, p.d.reach(), p.b_at, p.b.reach())) {
    wrong("a result over an operand");
  }
  if (p.beta == 0) return;
  if (p.c_at == p.d_at && !(p.c == p.d)) wrong("in place, with two layouts");
  if (p.c_at != p.d_at && overlap(p.d_at, p.d.reach(), p.c_at, p.c.reach())) wrong("a result over what is added");
}

/// The addresses of a product, all of which lie in blocks of the device.
std::vector<uint64_t> checked_addresses(const Product& p, const Algorithm& algorithm, uint64_t workspace,
                                        size_t workspace_bytes) {
  std::vector<uint64_t> all{p.a_at, p.b_at, p.d_at};
  if (p.beta != 0) all.push_back(p.c_at);
  for (const uint64_t address : all) {
    if (address % std::max<uint64_t>(algorithm.alignment, p.d.element_bytes()) != 0)
      wrong("an address that is not aligned");
  }
  cuda().check_memory(p.a_at, p.a.reach());
  cuda().check_memory(p.b_at, p.b.reach());
  cuda().check_memory(p.d_at, p.d.reach());
  if (p.beta != 0) cuda().check_memory(p.c_at, p.c.reach());
  check_epilogue(p, true);
  if (has_vector(p.operation)) all.push_back(p.operation.bias);
  if (has_auxiliary(p.operation)) all.push_back(p.operation.auxiliary);
  const uint64_t room = algorithm.room(p);
  if (room > workspace_bytes) wrong("less room than the algorithm needs");
  if (room > 0) {
    if (workspace % 256 != 0) wrong("room that is not aligned");
    cuda().check_memory(workspace, room);
    all.push_back(workspace);
  }
  return all;
}

/// Whether operands are turned.
void take_turn(bool& to, const void* value, size_t bytes) {
  int32_t number = 0;
  take(number, value, bytes);
  if (number != blas::transposed) wrong("neither as it is nor transposed");
  to = true;
}

double scalar(blas::Type type, const void* from) {
  double wide = 0;
  float single = 0;
  if (!from) wrong("no factor");
  if (type == blas::Type::float64) std::memcpy(&wide, from, sizeof wide);
  else std::memcpy(&single, from, sizeof single);
  return type == blas::Type::float64 ? wide : static_cast<double>(single);
}

std::string text_of(const Product& p, const Algorithm& algorithm) {
  std::ostringstream text;
  text << "matmul " << p.d.rows << "x" << p.d.columns << "x" << (p.operation.transpose_a ? p.a.rows : p.a.columns)
       << " batch " << p.d.batch << " type " << static_cast<int>(p.d.type) << " compute "
       << static_cast<int>(p.operation.compute) << " epilogue " << p.operation.epilogue << " beta " << p.beta
       << " algorithm " << algorithm.id;
  return text.str();
}

}  // namespace

#ifdef FAKE_HIP
FAKE_BLAS_API(GetVersion)(void* handle, int* value) {
  return call("GetVersion", [&] {
    known(handles, handle);
    *value = cuda().options().hipblaslt;
  });
}

FAKE_BLAS_API(MatrixTransform)() { return blas::not_supported; }  // which ROCm 5.7 lacks
#else
FAKE_BLAS_API(GetProperty)(int which, int* value) {
  constexpr int version[] = {13, 1, 0};
  if (which < 0 || which > 2) return blas::invalid_value;
  *value = version[which];
  return blas::success;
}
#endif

FAKE_BLAS_API(Create)(void** handle) {
  return call("Create", [&] { *handle = made(handles, Handle{cuda().thread_context()}); });
}

FAKE_BLAS_API(Destroy)(void* handle) {
  return call("Destroy", [&] {
    handle_now(handle);
    destroy(handles, handle);
  });
}

FAKE_BLAS_API(MatmulDescCreate)(void** operation, int compute, int scale) {
  return call("MatmulDescCreate", [&] {
    Operation one;
    one.compute = static_cast<blas::Compute>(compute);
    one.scale = static_cast<blas::Type>(scale);
    *operation = made(operations, one);
  });
}

FAKE_BLAS_API(MatmulDescDestroy)(void* operation) {
  return call("MatmulDescDestroy", [&] { destroy(operations, operation); });
}

FAKE_BLAS_API(MatmulDescSetAttribute)(void* operation, int which, const void* value, size_t bytes) {
  return call("MatmulDescSetAttribute", [&] {
    Operation& one = known(operations, operation);
    switch (static_cast<blas::OperationAttribute>(which)) {
      case blas::OperationAttribute::transpose_a: return take_turn(one.transpose_a, value, bytes);
      case blas::OperationAttribute::transpose_b: return take_turn(one.transpose_b, value, bytes);
      case blas::OperationAttribute::epilogue: return take(one.epilogue, value, bytes);
      case blas::OperationAttribute::bias_pointer: return take(one.bias, value, bytes);
#ifdef FAKE_HIP
      case blas::OperationAttribute::bias_type: {
        int32_t type = 0;
        take(type, value, bytes);
        one.bias_type = static_cast<blas::Type>(type);
        return;
      }
#endif
      case blas::OperationAttribute::auxiliary_pointer: return take(one.auxiliary, value, bytes);
      case blas::OperationAttribute::auxiliary_leading: return take(one.auxiliary_leading, value, bytes);
      case blas::OperationAttribute::auxiliary_batch_stride: return take(one.auxiliary_stride, value, bytes);
      default: wrong("no such attribute of an operation");
    }
  });
}

FAKE_BLAS_API(MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  return call("MatrixLayoutCreate", [&] {
    *layout = made(layouts, Layout{static_cast<blas::Type>(type), rows, columns, leading});
  });
}

FAKE_BLAS_API(MatrixLayoutDestroy)(void* layout) {
  return call("MatrixLayoutDestroy", [&] { destroy(layouts, layout); });
}

FAKE_BLAS_API(MatrixLayoutSetAttribute)(void* layout, int which, const void* value, size_t bytes) {
  return call("MatrixLayoutSetAttribute", [&] {
    Layout& one = known(layouts, layout);
    switch (static_cast<blas::LayoutAttribute>(which)) {
      case blas::LayoutAttribute::batch_count: return take(one.batch, value, bytes);
      case blas::LayoutAttribute::batch_stride: return take(one.stride, value, bytes);
      default: wrong("no such attribute of a matrix");
    }
  });
}

FAKE_BLAS_API(MatmulPreferenceCreate)(void** preference) {
  return call("MatmulPreferenceCreate", [&] { *preference = made(preferences, Preference{}); });
}

FAKE_BLAS_API(MatmulPreferenceDestroy)(void* preference) {
  return call("MatmulPreferenceDestroy", [&] { destroy(preferences, preference); });
}

FAKE_BLAS_API(MatmulPreferenceSetAttribute)(void* preference, int which, const void* value, size_t bytes) {
  return call("MatmulPreferenceSetAttribute", [&] {
    Preference& one = known(preferences, preference);
    switch (static_cast<blas::PreferenceAttribute>(which)) {
      case blas::PreferenceAttribute::workspace: return take(one.workspace, value, bytes);
#ifndef FAKE_HIP
      case blas::PreferenceAttribute::reductions: {
        uint32_t bits = 0;
        take(bits, value, bytes);
        one.adds_in_place = (bits & 1) != 0;
        return;
      }
      case blas::PreferenceAttribute::alignment_a: return take(one.alignment[0], value, bytes);
      case blas::PreferenceAttribute::alignment_b: return take(one.alignment[1], value, bytes);
      case blas::PreferenceAttribute::alignment_c: return take(one.alignment[2], value, bytes);
      case blas::PreferenceAttribute::alignment_d: return take(one.alignment[3], value, bytes);
#endif
      default: wrong("no such preference");
    }
  });
}

FAKE_BLAS_API(MatmulAlgoGetHeuristic)
(void* handle, void* operation, void* a, void* b, void* c, void* d, void* preference, int wanted, Candidate* found,
 int* count) {
  return call("MatmulAlgoGetHeuristic", [&] {
    handle_now(handle);
    if (cuda().thread_captures()) wrong("a search for algorithms while a stream is captured");
    const Product p = product_of(operation, a, b, c, d);
    check_epilogue(p, false);
    const Preference& wishes = known(preferences, preference);
    const uint32_t alignment = *std::min_element(std::begin(wishes.alignment), std::end(wishes.alignment));
    *count = 0;
    for (int id = 0; id < algorithms && *count < wanted; ++id) {
      const Candidate one = candidate(id, p, alignment);
      if (one.facts.workspace > wishes.workspace || (id == adds_in_place && !wishes.adds_in_place)) continue;
      found[(*count)++] = one;
    }
  });
}

#ifndef FAKE_HIP
FAKE_BLAS_API(MatmulAlgoCheck)
(void* handle, void* operation, void* a, void* b, void* c, void* d, const void* algorithm, Candidate* checked) {
  return call("MatmulAlgoCheck", [&] {
    handle_now(handle);
    const Product p = product_of(operation, a, b, c, d);
    const Algorithm given(algorithm);
    if (!given.is_for(p)) refuse("an algorithm of another product");
    *checked = {{}, {given.room(p), blas::success, 1, {}}};
  });
}
#endif

FAKE_BLAS_API(Matmul)
(void* handle, void* operation, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
 const void* beta, const void* c, void* c_layout, void* d, void* d_layout, const void* algorithm, void* workspace,
 size_t workspace_bytes, void* stream) {
  return call("Matmul", [&] {
    handle_now(handle);
    Product p = product_of(operation, a_layout, b_layout, c_layout, d_layout);
    const Algorithm chosen(algorithm);
    if (!chosen.is_for(p)) wrong("an algorithm of another product");
    p.alpha = scalar(p.operation.scale, alpha);
    p.beta = scalar(p.operation.scale, beta);
    p.relu_keeps_nan = cuda().options().nan;
    const auto number = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
    p.a_at = number(a);
    p.b_at = number(b);
    p.c_at = number(c);
    p.d_at = number(d);
    check_overlap(p);
    fake::Work work;
    work.addresses = checked_addresses(p, chosen, number(workspace), workspace_bytes);
    work.what = "matmul " + std::to_string(chosen.id) + (p.beta != 0 ? " adds" : "");
    work.time = chosen.id == fastest ? 0.5 : 1.0;
    work.run = [p, workspace, room = chosen.room(p)] {
      if (room > 0) std::memset(workspace, 0xA5, room);
      compute(p);
    };
    note(text_of(p, chosen));
    cuda().give(stream, std::move(work));
  });
}
