// What each instruction of a fused kernel does with one strip.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/row_copy.hpp"
#include "base/strided_copy.hpp"
#include "cpu/fused.hpp"
#include "cpu/fused_state.hpp"
#include "plan/device.hpp"
#include "scalar/convert.hpp"

namespace rosin::cpu {
namespace {

struct Scratch {
  unsigned char* memory = nullptr;
  size_t bytes = 0;
};

constinit thread_local Scratch scratch;

/// Gives the thread's memory back when it ends; destructors of globals may take some anew.
struct ScratchEnd {
  ~ScratchEnd() { ::operator delete(std::exchange(scratch, {}).memory, std::align_val_t{64}); }
};

struct Reserve : Scratch {
  std::mutex lock;
};

/// Never destroyed: workers may still run when the process ends.
Reserve& reserve() {
  static Reserve* reserve = new Reserve;
  return *reserve;
}

/// Replaces the memory by more; false, and as it was, when there is none.
bool grow(Scratch& target, size_t bytes) noexcept {
  void* memory = ::operator new(bytes, std::align_val_t{64}, std::nothrow);
  if (!memory) return false;
  ::operator delete(target.memory, std::align_val_t{64});
  target.memory = static_cast<unsigned char*>(memory);
  target.bytes = bytes;
  return true;
}

/// The first `done` of `count` bytes once more and once more, until all are written.
void repeat_bytes(void* memory, size_t done, size_t count) {
  auto* bytes = static_cast<unsigned char*>(memory);
  while (done < count) {
    const size_t more = std::min(done, count - done);
    std::memcpy(bytes + done, bytes, more);
    done += more;
  }
}

/// out[i] = x[i * stride] for elements of any size.
void gather_run(void* out, const unsigned char* x, int64_t stride, int64_t count, size_t size) {
  if (size == 4) copy_run(static_cast<uint32_t*>(out), reinterpret_cast<const uint32_t*>(x), stride, count);
  else if (size == 8) copy_run(static_cast<uint64_t*>(out), reinterpret_cast<const uint64_t*>(x), stride, count);
  else if (size == 2) copy_run(static_cast<uint16_t*>(out), reinterpret_cast<const uint16_t*>(x), stride, count);
  else if (size == 1) copy_run(static_cast<uint8_t*>(out), x, stride, count);
  else
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(static_cast<unsigned char*>(out) + static_cast<size_t>(i) * size,
                  x + i * stride * static_cast<int64_t>(size), size);
    }
}

/// Runs of two elements, as parts of complex numbers are: out[2 i + j] = x[i * stride + j * step].
template <class T> void gather_pairs(T* out, const T* x, int64_t step, int64_t stride, int64_t count) {
  const auto walk = [=](int64_t from_step, int64_t from_stride) __attribute__((always_inline)) {
    for (int64_t i = 0; i < count; ++i) {
      out[2 * i] = x[i * from_stride];
      out[2 * i + 1] = x[i * from_stride + from_step];
    }
  };
  if (step == 0 && stride == 1) walk(0, 1);
  else if (step == 0 && stride == 2) walk(0, 2);
  else if (step == -1 && stride == 2) walk(-1, 2);
  else walk(step, stride);
}

/// Short runs: out[r * line + i] = x[r * stride + i * step] for elements of 1, 2, 4 or 8 bytes.
struct ShortRuns {
  int64_t line, step, stride;
};
constexpr int64_t many_runs = 8;  // for which a call is worth it
template <class T> void gather_short(const ShortRuns& runs, T* out, const T* x, int64_t count) {
  for (int64_t r = 0; r < count; ++r, out += runs.line, x += runs.stride) {
    for (int64_t i = 0; i < runs.line; ++i) out[i] = x[i * runs.step];
  }
}

void gather_short(const ShortRuns& runs, unsigned char* out, const unsigned char* x, int64_t count, int64_t size) {
  const auto bytes = static_cast<size_t>(runs.line * size);
  if (runs.step == 1 && count >= many_runs)
    return copy_rows({count, bytes, runs.line * size, runs.stride * size}, out, x);
  const auto typed = [&]<class T>(T*) {
    gather_short(runs, reinterpret_cast<T*>(out), reinterpret_cast<const T*>(x), count);
  };
  if (size == 4) return typed(static_cast<uint32_t*>(nullptr));
  if (size == 8) return typed(static_cast<uint64_t*>(nullptr));
  if (size == 2) return typed(static_cast<uint16_t*>(nullptr));
  typed(static_cast<uint8_t*>(nullptr));
}

/// Walks elements [begin, begin + count) of dims (sizes, strides) run by run along dim 0.
/// f(done, offset, length): elements done so far, memory offset of the run, its length.
template <class F>
void for_runs(int dims, const int64_t* sizes, const int64_t* strides, int64_t begin, int64_t count, F&& f) {
  int64_t index[Shape::max_rank] = {};
  int64_t offset = 0, rest = begin;
  for (int d = 0; d < dims; ++d) {
    index[d] = d + 1 < dims ? rest % sizes[d] : rest;
    rest /= std::max<int64_t>(sizes[d], 1);
    offset += index[d] * strides[d];
  }
  for (int64_t done = 0; done < count;) {
    const int64_t length = dims > 1 ? std::min(sizes[0] - index[0], count - done) : count - done;
    f(done, offset, length);
    done += length;
    offset += length * strides[0];
    index[0] += length;
    for (int d = 0; d + 1 < dims && index[d] == sizes[d]; ++d) {
      offset += strides[d + 1] - sizes[d] * strides[d];
      index[d] = 0;
      ++index[d + 1];
    }
  }
}

}  // namespace

void reserve_scratch(size_t bytes) {
  std::lock_guard lock(reserve().lock);
  if (reserve().bytes < bytes && !grow(reserve(), bytes)) throw std::bad_alloc();
}

unsigned char* thread_scratch(size_t bytes, std::unique_lock<std::mutex>& locked) noexcept {
  if (scratch.bytes >= bytes) return scratch.memory;
  static thread_local const ScratchEnd end;
  if (grow(scratch, bytes)) return scratch.memory;
  locked = std::unique_lock(reserve().lock);
  return reserve().memory;
}

void FusedKernel::run_instr(const Ready& instr, const Strip& strip, State& state) const {
  if (instr.pass >= 0) return run_pass(passes_[static_cast<size_t>(instr.pass)], strip, state);
  const int64_t count = instr.row ? strip.rows : strip.count;
  switch (instr.what) {
    case plan::Instr::Do::load: return load(instr, strip, state);
    case plan::Instr::Do::scalar: return scalar(instr, strip, state);
    case plan::Instr::Do::apply: return apply(instr, strip, state);
    case plan::Instr::Do::draw: return draw(instr, strip, state);
    case plan::Instr::Do::convert: {
      void* out = instr.forward < 0 ? state.slot(instr.dst)
                                    : output(static_cast<uint16_t>(instr.forward), strip, instr.row, state.data);
      const void* source = state.pointers[instr.in[0]];
      state.pointers[instr.dst] = out;
      if (storage_of(instr.type) == instr.storage) {
        convert_elements(out, instr.storage, source, storage_of(instr.from), count);
      } else {
        convert_elements(state.spare, instr.storage, source, storage_of(instr.from), count);
        convert_elements(out, storage_of(instr.type), state.spare, instr.storage, count);
      }
      return;
    }
    case plan::Instr::Do::expand: return expand(instr, strip, state);
    case plan::Instr::Do::reduce: return reduce(instr, strip, state);
    case plan::Instr::Do::store: return store(instr, strip, state);
    case plan::Instr::Do::root: return root(instr, strip, state);
  }
}

/// The elements of the strip's runs; where they stand behind one another, as they stand.
void FusedKernel::load_runs(const Ready& instr, const Strip& strip, State& state) const {
  const Load& port = loads_[instr.port];
  const auto size = static_cast<int64_t>(size_of(port.storage));
  const auto* memory = static_cast<const unsigned char*>(state.data.memory[port.root]) + port.offset * size;
  const int64_t first = strip.begin / run_, count = (strip.begin + strip.count - 1) / run_ + 1 - first;
  int64_t sizes[Shape::max_rank];
  std::copy(port.sizes, port.sizes + port.dims, sizes);
  sizes[0] = port.repeats;
  const int from = port.repeats == 1 ? 1 : 0;
  if (port.dims - from == 1 && port.strides[from] == 1) {
    state.pointers[instr.dst] = const_cast<unsigned char*>(memory + first * size);
    return;
  }
  auto* slot = static_cast<unsigned char*>(state.slot(instr.dst));
  state.pointers[instr.dst] = slot;
  for_runs(port.dims - from, sizes + from, port.strides + from, first, count,
           [&](int64_t done, int64_t offset, int64_t length) {
             gather_run(slot + done * size, memory + offset * size, port.strides[from], length,
                        static_cast<size_t>(size));
           });
}

/// Elements [begin, begin + count) of a strided load.
void FusedKernel::gather(const Load& port, const unsigned char* memory, int64_t begin, int64_t count,
                         unsigned char* out) {
  const auto size = static_cast<int64_t>(size_of(port.storage));
  const bool pairs = port.dims > 1 && port.sizes[0] == 2 && begin % 2 == 0 && count % 2 == 0;
  if (pairs && (size == 4 || size == 8)) {
    for_runs(port.dims - 1, port.sizes + 1, port.strides + 1, begin / 2, count / 2,
             [&](int64_t done, int64_t offset, int64_t length) {
               const auto typed = [&]<class T>(T*) {
                 gather_pairs(reinterpret_cast<T*>(out) + 2 * done, reinterpret_cast<const T*>(memory) + offset,
                              port.strides[0], port.strides[1], length);
               };
               if (size == 4) typed(static_cast<uint32_t*>(nullptr));
               else typed(static_cast<uint64_t*>(nullptr));
             });
    return;
  }
  const auto by_runs = [&](int64_t first, int64_t some) {
    for_runs(port.dims, port.sizes, port.strides, first, some, [&](int64_t done, int64_t offset, int64_t length) {
      gather_run(out + (first - begin + done) * size, memory + offset * size, port.strides[0], length,
                 static_cast<size_t>(size));
    });
  };
  const int64_t short_line = port.sizes[1] >= many_runs ? 16 : 8;
  const int64_t line = port.sizes[0], whole = (begin + line - 1) / line * line, runs = (begin + count - whole) / line;
  if (port.dims == 1 || line > short_line || size > 8 || runs < 2) return by_runs(begin, count);
  by_runs(begin, whole - begin);
  for_runs(port.dims - 1, port.sizes + 1, port.strides + 1, whole / line, runs,
           [&](int64_t done, int64_t offset, int64_t length) {
             gather_short({line, port.strides[0], port.strides[1]}, out + (whole - begin + done * line) * size,
                          memory + offset * size, length, size);
           });
  by_runs(whole + runs * line, begin + count - whole - runs * line);
}

/// Whether elements of a strided load lie side by side in memory: in one run of it.
bool FusedKernel::stands_together(const Load& port, int64_t begin, int64_t count) {
  return port.strides[0] == 1 && begin % port.sizes[0] + count <= port.sizes[0];
}

/// Where an element of the domain stands, from the load's offset on.
int64_t FusedKernel::offset_of(const Load& port, int64_t element) {
  int64_t offset = 0;
  for (int d = 0; d < port.dims; ++d) {
    offset += (d + 1 < port.dims ? element % port.sizes[d] : element) * port.strides[d];
    element /= port.sizes[d];
  }
  return offset;
}

void FusedKernel::load(const Ready& instr, const Strip& strip, State& state) const {
  if (instr.lines) return;  // passes find it
  if (instr.per_run) return load_runs(instr, strip, state);
  const Load& port = loads_[instr.port];
  const size_t size = size_of(port.storage);
  const bool converts = port.converts && !instr.packed;
  const auto* memory =
      static_cast<const unsigned char*>(state.data.memory[port.root]) + port.offset * static_cast<int64_t>(size);
  const int64_t begin = port.row ? strip.row_begin : strip.begin;
  const int64_t count = instr.one_will_do ? 1 : port.row ? strip.rows : strip.count;
  if (port.access == Access::direct && !converts) {
    state.pointers[instr.dst] = const_cast<unsigned char*>(memory) + static_cast<size_t>(begin) * size;
    return;
  }
  if (instr.paired) {
    const int64_t first = port.pairing == Pairing::first ? 0 : 1;  // the offset's place in its pair
    state.pointers[instr.dst] = const_cast<unsigned char*>(memory) + (begin - first) * static_cast<int64_t>(size);
    return;
  }
  if (instr.one_will_do && !converts) {
    state.pointers[instr.dst] = const_cast<unsigned char*>(memory);
    return;
  }
  if (instr.forward < 0 && gathers_strips(port) && stands_together(port, begin, count)) {
    state.pointers[instr.dst] =
        const_cast<unsigned char*>(memory) + offset_of(port, begin) * static_cast<int64_t>(size);
    return;
  }
  void* slot = instr.forward < 0 ? state.slot(instr.dst)
                                 : output(static_cast<uint16_t>(instr.forward), strip, instr.row, state.data);
  state.pointers[instr.dst] = slot;
  void* raw = converts ? state.spare : slot;
  if (port.access == Access::direct) {
    convert_elements(slot, storage_of(port.type), memory + static_cast<size_t>(begin) * size, port.storage, count);
    return;
  }
  if (port.panel_columns > 0) {
    const unsigned char* turned = from_panel(port, memory, strip, static_cast<unsigned char*>(raw), state);
    if (converts) convert_elements(slot, storage_of(port.type), turned, port.storage, count);
    else state.pointers[instr.dst] = const_cast<unsigned char*>(turned);
    return;
  }
  // A repeated pattern is gathered once and doubled.
  const int64_t gathered = port.access == Access::repeated ? std::min(count, port.period) : count;
  gather(port, memory, begin, gathered, static_cast<unsigned char*>(raw));
  if (gathered > 0) repeat_bytes(raw, static_cast<size_t>(gathered) * size, static_cast<size_t>(count) * size);
  if (converts) convert_elements(slot, storage_of(port.type), raw, port.storage, count);
}

/// out[i] = value for i < count.
template <class T> void fill(void* out, T value, int64_t count) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
  const auto word = std::bit_cast<Word>(value);
  copy_run(static_cast<Word*>(out), &word, 0, count);
}

void FusedKernel::scalar(const Ready& instr, const Strip& strip, State& state) const {
  const ScalarValue& number = state.data.scalars[numbers_[instr.port]];
  const int64_t count = instr.one_will_do ? 1 : instr.row ? strip.rows : strip.count;
  void* out = state.slot(instr.dst);
  state.pointers[instr.dst] = out;
  switch (instr.type) {
    case ScalarType::boolean: return fill<uint8_t>(out, number.real != 0, count);
    case ScalarType::int32: return fill<int32_t>(out, static_cast<int32_t>(number.integer), count);
    case ScalarType::uint32: return fill<uint32_t>(out, static_cast<uint32_t>(number.integer), count);
    case ScalarType::int64: return fill<int64_t>(out, number.integer, count);
    case ScalarType::uint64: return fill<uint64_t>(out, static_cast<uint64_t>(number.integer), count);
    case ScalarType::float32: return fill<float>(out, static_cast<float>(number.real), count);
    case ScalarType::float64: return fill<double>(out, number.real, count);
  }
}

void FusedKernel::draw(const Ready& instr, const Strip& strip, State& state) const {
  const auto argument = [&](size_t i) {
    return static_cast<uint64_t>(state.data.scalars[numbers_[instr.port + i]].integer);
  };
  void* out = instr.forward < 0 ? state.slot(instr.dst)
                                : output(static_cast<uint16_t>(instr.forward), strip, instr.row, state.data);
  instr.draw(out, strip.begin, strip.count, argument(0), argument(1));
  state.pointers[instr.dst] = out;
}

void FusedKernel::expand(const Ready& instr, const Strip& strip, State& state) const {
  const size_t size = static_cast<size_t>(bytes_of(instr.type));
  const auto* in = static_cast<const unsigned char*>(state.pointers[instr.in[0]]);
  auto* out = static_cast<unsigned char*>(state.slot(instr.dst));
  state.pointers[instr.dst] = out;
  for (int64_t r = 0; r < strip.rows; ++r) {
    gather_run(out + static_cast<size_t>(r * layout_->row) * size, in + static_cast<size_t>(r) * size, 0, layout_->row,
               size);
  }
}

void FusedKernel::reduce(const Ready& instr, const Strip& strip, State& state) const {
  void* out = state.slot(instr.dst);
  instr.loops.reduce(out, state.pointers[instr.in[0]], layout_->row, strip.rows);
  state.pointers[instr.dst] = out;
}

void* FusedKernel::output(uint16_t port, const Strip& strip, bool row, const RunData& data) const {
  const Store& to = stores_[port];
  return static_cast<unsigned char*>(data.memory[to.value]) +
         static_cast<size_t>(row ? strip.row_begin : strip.begin) * to.element;
}

void FusedKernel::store(const Ready& instr, const Strip& strip, State& state) const {
  void* out = output(instr.port, strip, instr.row, state.data);
  const void* source = state.pointers[instr.in[0]];
  if (out == source) return;
  const int64_t count = instr.row ? strip.rows : strip.count;
  if (!instr.alike) return convert_elements(out, instr.storage, source, storage_of(instr.type), count);
  alignas(16) unsigned char one[16];
  convert_elements(one, instr.storage, source, storage_of(instr.type), 1);
  gather_run(out, one, 0, count, size_of(instr.storage));
}

/// Adds the columns of a block: the last half of them to the first, until one is left.
void FusedKernel::fold(const Root& port, unsigned char* sum, const unsigned char* x, unsigned char* spare,
                       int64_t count) {
  const int64_t column = port.sizes[0] * bytes_of(port.type);
  int64_t columns = count / port.sizes[0], half = columns / 2;
  columns -= half;
  std::memcpy(spare, x, static_cast<size_t>(columns * column));
  for (const unsigned char* last = x; half > 0; last = spare) {
    port.loops.combine(spare, last + columns * column, half * port.sizes[0]);
    half = columns / 2;
    columns -= half;
  }
  port.loops.combine(sum, spare, port.sizes[0]);
}

/// Folds what blocks hold of each run of columns that belong to one result.
void FusedKernel::fold_blocks(const Root& port, int64_t begin, int64_t count, const unsigned char* in,
                              unsigned char* spare, unsigned char* sum) {
  const int64_t size = bytes_of(port.type), run = port.sizes[0] * port.sizes[1];
  for (int64_t at = 0, length = 0; at < count; at += length) {
    const int64_t place = begin + at, in_block = port.order.block - at % port.order.block;
    length = std::min({in_block, count - at, port.dims > 2 ? run - place % run : count});
    int64_t offset = 0, rest = place / run;
    for (int d = 2; d < port.dims; ++d) {
      offset += (d + 1 < port.dims ? rest % port.sizes[d] : rest) * port.strides[d];
      rest /= port.sizes[d];
    }
    fold(port, sum + offset * size, in + at * size, spare, length);
  }
}

void FusedKernel::reduce_blocks(const Root& port, unsigned char* results, const unsigned char* x, int64_t count,
                                int64_t blocks) {
  if (!port.extreme) return port.loops.reduce(results, x, count, blocks);
  void* memory[] = {results, const_cast<unsigned char*>(x)};
  port.extreme->run(memory, blocks, count);
}

/// Adds columns, the first and last of which may be parts, to results of one column each.
void FusedKernel::add_columns(const Root& port, int64_t begin, int64_t count, unsigned char* sum,
                              const unsigned char* x) {
  const int64_t size = bytes_of(port.type), column = port.sizes[0];
  int64_t sizes[Shape::max_rank], strides[Shape::max_rank];
  std::copy(port.sizes + 1, port.sizes + port.dims, sizes);
  std::copy(port.strides + 1, port.strides + port.dims, strides);
  sizes[0] *= column;
  for_runs(port.dims - 1, sizes, strides, begin, count, [&](int64_t done, int64_t offset, int64_t length) {
    add_to_column(port, (begin + done) % column, length, sum + offset * size, x + done * size);
  });
}

/// Adds columns that belong to one result, the first of them from `place` on.
void FusedKernel::add_to_column(const Root& port, int64_t place, int64_t count, unsigned char* sum,
                                const unsigned char* x) {
  const int64_t size = bytes_of(port.type), column = port.sizes[0];
  while (count > 0) {
    const int64_t length = std::min(column - place, count);
    const int64_t columns = place == 0 && count >= columns_together * column ? columns_together : 1;
    if (columns > 1) {
      void* memory[2 + columns_together] = {sum, sum};
      for (int64_t i = 0; i < columns; ++i) memory[2 + i] = const_cast<unsigned char*>(x + i * column * size);
      port.columns->run(memory, 1, column);
    } else {
      port.loops.combine(sum + place * size, x, length);
    }
    count -= columns * length;
    x += columns * length * size;
    place = 0;
  }
}

/// Adds elements that belong to one result: whole blocks side by side, since those of one wait for each other.
void FusedKernel::add_run(const Root& port, unsigned char* sum, const unsigned char* x, int64_t length) {
  constexpr int64_t most_together = 16;
  const int64_t size = bytes_of(port.type), block = port.order.block;
  alignas(8) unsigned char results[8 * most_together];
  for (int64_t at = 0; at < length;) {
    const int64_t blocks = std::clamp<int64_t>((length - at) / block, 1, most_together);
    const int64_t each = std::min(block, length - at);
    reduce_blocks(port, results, x + at * size, each, blocks);
    port.loops.running(results, results, sum, 1, blocks, 1, 1);
    at += blocks * each;
  }
}

/// Whole short lines along dim 0, each of which belongs to one result: those of as many elements as a block has, for
/// which there is room, are added up first.
void FusedKernel::add_lines(const Root& port, int64_t begin, int64_t count, unsigned char* sum, const unsigned char* x,
                            unsigned char* spare) {
  const int64_t size = bytes_of(port.type), line = port.sizes[0], step = port.strides[1], most = port.order.block;
  const auto add = [&](int64_t done, int64_t offset, int64_t length) {
    const unsigned char* from = spare + done * size;
    if (step == 1) return port.loops.combine(sum + offset * size, from, length);
    for (int64_t i = 0; i < length; ++i) port.loops.combine(sum + (offset + i * step) * size, from + i * size, 1);
  };
  for (int64_t first = begin / line, end = first + count / line; first < end; first += most) {
    const int64_t lines = std::min(most, end - first);
    reduce_blocks(port, spare, x, line, lines);
    for_runs(port.dims - 1, port.sizes + 1, port.strides + 1, first, lines, add);
    x += lines * line * size;
  }
}

void FusedKernel::root(const Ready& instr, const Strip& strip, State& state) const {
  const Root& port = roots_[instr.port];
  const int64_t size = bytes_of(port.type);
  const auto* in = static_cast<const unsigned char*>(state.pointers[instr.in[0]]);
  unsigned char* partials = state.data.scratch;
  if (port.planes) {
    return add_to_runs(planes_, port.loops, size, strip.begin, strip.count, in, state.lanes + port.lanes_at,
                       partials + port.kept_values);
  }
  if (port.row) {
    std::memcpy(partials + port.kept_values + strip.row_begin * size, in, static_cast<size_t>(strip.rows * size));
    return;
  }
  if (instr.units) return add_results(port, strip, in, partials);
  const int64_t strip_end = strip.begin + strip.count;
  for (int64_t at = strip.begin, end = at; at < strip_end; at = end) {
    end = std::min(strip_end, port.order.end(port.order.part_of(at)));
    add(port, at, end - at, in + (at - strip.begin) * size, state.spare, partials);
  }
}

/// The partial results that a strip of a column belongs to. The first strip that does so makes them neutral: those of
/// its place where a part is whole columns of one result each, else all.
unsigned char* FusedKernel::results_of(const Root& port, const Strip& strip, unsigned char* partials) {
  const int64_t size = bytes_of(port.type), part = port.order.part_of(strip.begin), column = port.sizes[0];
  const int64_t begin = port.order.begin(part);
  unsigned char* const all = part_of(port, part, partials);
  int64_t offset = strip.begin % column, rest = strip.begin / column;
  for (int d = 1; d < port.dims; ++d) {
    offset += (d + 1 < port.dims ? rest % port.sizes[d] : rest) * port.strides[d];
    rest /= port.sizes[d];
  }
  const bool by_strip = port.dims == 2 && port.strides[1] == 0 && port.order.part >= column;
  if (by_strip && strip.begin < begin + column) port.loops.neutral(all + offset * size, strip.count);
  else if (!by_strip && strip.begin == begin) port.loops.neutral(all, port.count);
  return all + offset * size;
}

FusedKernel::Root::Units FusedKernel::Root::units() const {
  if (row || planes || strides[0] != 0 || order.total == 0) return {};
  const int64_t run = sizes[0], stretch = std::min(run, order.span), unit = std::min(order.block, stretch);
  const bool anew = run == order.span || run % unit == 0, whole = order.block % run == 0;
  return run > order.span ? Units{run % order.span == 0 ? unit : 0, stretch} : Units{whole || anew ? unit : 0, stretch};
}

/// Adds the results of a strip's units to the partial results that they belong to.
void FusedKernel::add_results(const Root& port, const Strip& strip, const unsigned char* results,
                              unsigned char* partials) const {
  const int64_t size = bytes_of(port.type), end = strip.begin + strip.count;
  for (int64_t at = strip.begin; at < end;) {
    const int64_t part = port.order.part_of(at);
    unsigned char* const all = part_of(port, part, partials);
    if (at == port.order.begin(part)) port.loops.neutral(all, port.count);
    int64_t place = 0, run = at / port.sizes[0];
    for (int d = 1; d < port.dims; ++d) {
      place += run % port.sizes[d] * port.strides[d];
      run /= port.sizes[d];
    }
    port.loops.combine(all + place * size, results, 1);
    results += size;
    at += std::min({units_.unit, units_.stretch - at % units_.stretch, end - at});
  }
}

/// Adds blocks of the domain, the last of which may end early, to the partial result that they belong to.
void FusedKernel::add(const Root& port, int64_t begin, int64_t count, const unsigned char* in, unsigned char* spare,
                      unsigned char* partials) {
  const int64_t size = bytes_of(port.type), part = port.order.part_of(begin);
  unsigned char* sum = part_of(port, part, partials);
  if (port.of_stretches) {
    const int64_t column = port.sizes[0];
    if (begin < port.order.begin(part) + column) port.loops.neutral(sum + begin % column * size, count);
  } else if (begin == port.order.begin(part)) {
    port.loops.neutral(sum, port.count);
  }
  if (port.folds) return fold_blocks(port, begin, count, in, spare, sum);
  if (port.columns) return add_columns(port, begin, count, sum, in);
  if (const int64_t line = port.sizes[0]; port.dims > 1 && port.strides[0] == 0 && line <= port.order.block &&
                                          line <= count && begin % line == 0 && count % line == 0) {
    return add_lines(port, begin, count, sum, in, spare);
  }
  for_runs(port.dims, port.sizes, port.strides, begin, count, [&](int64_t done, int64_t offset, int64_t length) {
    const unsigned char* x = in + done * size;
    if (port.strides[0] == 0) {
      add_run(port, sum + offset * size, x, length);
    } else if (port.strides[0] != 1) {
      for (int64_t i = 0; i < length; ++i)
        port.loops.combine(sum + (offset + i * port.strides[0]) * size, x + i * size, 1);
    } else {
      port.loops.combine(sum + offset * size, x, length);
    }
  });
}

}  // namespace rosin::cpu
