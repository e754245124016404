// Preparation of fused kernels (how ports move, where strips and chunks begin) and the loop over chunks.
// The instructions themselves stand in fused_instrs.cpp.
#include "cpu/fused.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "base/workers.hpp"
#include "cpu/fused_state.hpp"
#include "graph/reducer.hpp"
#include "scalar/convert.hpp"
#include "scalar/scalar_code.hpp"

namespace rosin::cpu {
namespace {

using Do = plan::Instr::Do;

constexpr int64_t chunk_work = 160 * 1024;  // element-instructions of a chunk: about ten microseconds
constexpr int64_t most_chunks = 64;
constexpr int64_t draw_instrs = 8;  // that take as long as a draw

/// What an instruction takes, beside one that adds.
int64_t instrs_of(const plan::Instr& instr) {
  constexpr int64_t together = 8;  // of the text of an op, which are not loaded or stored between
  if (instr.what == Do::draw) return draw_instrs;
  if (instr.what != Do::apply || !instr.op->body.code) return 1;
  ScalarCode code;
  instr.op->body.code(instr.type, code);
  return std::max<int64_t>(1, static_cast<int64_t>(code.list.size()) / together);
}

}  // namespace

FusedKernel::FusedKernel(const plan::Structure& structure, const plan::Layout& layout, int32_t kernel)
    : structure_(structure), kernel_(&structure.kernels[static_cast<size_t>(kernel)]),
      layout_(&layout.kernels[static_cast<size_t>(kernel)]) {
  total_ = layout_->row * layout_->rows;
  choose_strips();
  for (size_t i = 0; i < kernel_->loads.size(); ++i) {
    const plan::Port& port = kernel_->loads[i];
    Load load;
    load.root = layout.views[static_cast<size_t>(port.value)].root;
    load.row = port.row;
    load.storage = structure.graph.values[static_cast<size_t>(port.value)].dtype;
    load.type = scalar_type(load.storage);
    load.converts = storage_of(load.type) != load.storage;
    load.offset = layout_->loads[i].offset;
    const int first = port.row ? kernel_->row_dims : 0;
    std::copy(layout_->loads[i].strides + first, layout_->loads[i].strides + layout_->dims, load.strides);
    merge_dims(load, layout_->sizes + first, std::max(layout_->dims - first, 0));
    find_access(load, port.row ? strip_ / std::max<int64_t>(layout_->row, 1) : strip_);
    find_panel(load);
    loads_.push_back(load);
  }
  for (const plan::Port& port : kernel_->stores) {
    const DType type = structure.graph.values[static_cast<size_t>(port.value)].dtype;
    stores_.push_back({port.value, static_cast<uint32_t>(size_of(type))});
  }
  for (const plan::Port& port : kernel_->scalars) numbers_.push_back(plan::scalar_index(port.value, port.operand));
  find_runs();
  for (Load& load : loads_) {
    const auto root = static_cast<size_t>(load.root);
    const auto parts = static_cast<int64_t>(size_of(structure.graph.values[root].dtype) / size_of(load.storage));
    find_pairs(load, layout.views[root].count() * parts);
  }
  prepare_roots();
  find_tile();
  prepare_instrs();
  if (!std::all_of(roots_.begin(), roots_.end(), [](const Root& root) { return root.into; })) lane_groups_ = 1;
  find_view();
  reserve_scratch(scratch_bytes());
}

void FusedKernel::find_view() {
  if (instrs_.size() != 2 || instrs_[0].what != Do::load || instrs_[1].what != Do::store) return;
  const Load& from = loads_[instrs_[0].port];
  if (from.row || instrs_[1].row || from.storage != instrs_[1].storage) return;
  view_ = view_copy(from.dims, from.sizes, from.strides, size_of(from.storage));
}

void FusedKernel::choose_strips() {
  if (total_ == 0) return;
  const int64_t row = layout_->row;
  if (kernel_->whole_rows && row > cached_elements) strip_ = row;
  else if (row <= cached_elements) strip_ = cached_elements / row * row;
  else strip_ = cached_elements;
  int64_t instrs = 0, longest = 0;
  for (const plan::Instr& instr : kernel_->instrs) {
    const int64_t some = instrs_of(instr);
    instrs += some;
    longest = std::max(longest, some);
  }
  const int64_t work = chunk_work / std::max<int64_t>(instrs, 1);
  const int64_t chunk = std::max(work, (total_ + most_chunks - 1) / most_chunks);
  cut_ = SumOrder::cut(total_, total_, strip_, chunk);
  if (kernel_->channels_first && !kernel_->roots.empty()) {
    find_planes();
    cut_ = planes_.cut(chunk);
    if (planes_.strip > 0) strip_ = planes_.strip;  // else any will do
    if (longest > 1) share_lanes(chunk);
    return;
  }
  bool sums = false;
  for (size_t i = 0; i < kernel_->roots.size(); ++i) {
    const plan::Port& root = kernel_->roots[i];
    if (root.row) continue;
    const SumOrder order = sum_order(domain_of(root), layout_->root_counts[i]);
    if (!sums || order.part > cut_.part) cut_ = order;  // whole parts of each sum
    strip_ = order.block;
    sums = true;
  }
}

/// The domain stands in CWHN: (channels, spatial..., images).
void FusedKernel::find_planes() {
  const plan::Value& image = structure_.graph.values[static_cast<size_t>(kernel_->domain)];
  const bool batched = kernel_->wide >> (image.rank - 1) & 1;
  logical_sizes_.assign(layout_->sizes, layout_->sizes + layout_->dims);
  std::rotate(logical_sizes_.begin(), logical_sizes_.begin() + 1, logical_sizes_.end() - (batched ? 1 : 0));
  planes_ = PlaneRuns(logical_sizes_, layout_->sizes[0], batched ? logical_sizes_.back() : 1);
}

/// The runs of fewer images than there are threads: each chunk takes the same lanes of every run, which changes no bit.
/// No more groups than threads, and of kernels with long ops alone, as each group steps over what others read. `chunk`:
/// elements that are worth one.
void FusedKernel::share_lanes(int64_t chunk) {
  constexpr int64_t least_strip = 512;
  const int64_t wanted = std::min<int64_t>(worker_threads(), total_ / chunk) / std::max<int64_t>(cut_.parts, 1);
  const int64_t most = std::min(planes_.lanes() / least_strip, wanted);
  if (planes_.strip == 0 || most < 2) return;
  if (planes_.pixels * planes_.channels < planes_.lanes()) return;
  lane_groups_ = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  strip_ = std::min(strip_, planes_.lanes() / lane_groups_);
}

/// The sizes over which a root adds up, in logical order: those of the kernel, or of its rows.
std::span<const int64_t> FusedKernel::domain_of(const plan::Port& root) const {
  if (!logical_sizes_.empty()) return logical_sizes_;
  const int first = root.row ? kernel_->row_dims : 0;
  return {layout_->sizes + first, static_cast<size_t>(std::max(layout_->dims - first, 0))};
}

/// Joins neighbouring dims over which the port moves evenly, and leaves out dims of one element.
void FusedKernel::merge_dims(Load& load, const int64_t* sizes, int dims) {
  int64_t strides[Shape::max_rank];
  std::copy(load.strides, load.strides + Shape::max_rank, strides);
  for (int d = 0; d < dims; ++d) {
    const bool joins = load.dims > 0 && strides[d] == load.strides[load.dims - 1] * load.sizes[load.dims - 1];
    if (joins) {
      load.sizes[load.dims - 1] *= sizes[d];
    } else {
      load.sizes[load.dims] = sizes[d];
      load.strides[load.dims++] = strides[d];
    }
  }
  if (load.dims == 0) {
    load.dims = 1;
    load.sizes[0] = 1;
    load.strides[0] = 0;
  }
}

/// `elements`: of a strip, at the level of the load.
void FusedKernel::find_access(Load& load, int64_t elements) const {
  if (load.dims == 1) {
    const int64_t stride = load.strides[0];
    load.access = stride == 1 ? Access::direct : stride == 0 || load.sizes[0] == 1 ? Access::splat : Access::strided;
    return;
  }
  // A pattern that repeats within every strip is the same for all strips.
  int64_t before = 1;
  for (int d = 0; d < load.dims; ++d) {
    before *= load.sizes[d];
    if (load.strides[d] != 0) load.period = before;
  }
  load.access = load.period > 0 && elements % load.period == 0 ? Access::repeated : Access::strided;
}

/// Some loads stay at one element for a run of them, or are parts of longer rows; a run is a row where there are row
/// programs. Passes go over runs as over rows: they read that one, or the rows as they stand, where else a strip of
/// copies would be made.
void FusedKernel::find_runs() {
  constexpr int64_t least_run = 16;
  const auto runs = [&](const Load& load) {
    return !load.row && load.access == Access::strided && load.panel_columns == 0 && load.strides[0] >= 0 &&
           load.strides[0] <= 1 && (kernel_->whole_rows || load.sizes[0] >= least_run);
  };
  for (const Load& load : loads_) {
    if (runs(load) && (run_ == 0 || load.sizes[0] < run_)) run_ = load.sizes[0];
  }
  if (kernel_->whole_rows && run_ > 0) run_ = layout_->row;
  for (Load& load : loads_) {
    if (!runs(load)) continue;
    if (load.strides[0] == 1) load.lines = load.sizes[0] == run_;
    else if (load.sizes[0] % run_ == 0) load.repeats = load.sizes[0] / run_;
  }
}

/// Parts of complex numbers: one of them for both, or the other one for each. Loops read the pairs as they stand, in
/// memory of so many elements.
void FusedKernel::find_pairs(Load& load, int64_t elements) const {
  const bool strided = load.access == Access::strided && load.repeats == 0;
  const bool pairs = strided && load.dims == 2 && load.sizes[0] == 2 && load.strides[1] == 2;
  const bool even = total_ % 2 == 0 && strip_ % 2 == 0 && cut_.part % 2 == 0 && cut_.span % 2 == 0 && run_ % 2 == 0;
  if (!pairs || !even || load.row || load.converts || bytes_of(load.type) < 4) return;
  const bool odd = load.offset % 2 != 0;
  const bool swaps = load.strides[0] == -1 && odd, repeats = load.strides[0] == 0;
  if ((!swaps && !repeats) || load.offset - (odd ? 1 : 0) + total_ > elements) return;
  load.pairing = swaps ? Pairing::swapped : odd ? Pairing::second : Pairing::first;
}

void FusedKernel::prepare_roots() {
  const auto place = [this](size_t bytes) {
    const size_t at = partial_bytes_;
    partial_bytes_ += (bytes + 63) / 64 * 64;
    return at;
  };
  int64_t block_bytes = 0;
  for (size_t i = 0; i < kernel_->roots.size(); ++i) {
    const plan::Port& port = kernel_->roots[i];
    const plan::Value& value = structure_.graph.values[static_cast<size_t>(port.value)];
    const std::span<const int64_t> domain = domain_of(port);
    Root root;
    root.value = port.value;
    root.storage = value.dtype;
    root.type = value.compute;
    root.loops = value.op->reducer->body.of(value.compute);
    root.extreme = extreme_loop(value.op->reducer->body, value.compute);
    root.count = layout_->root_counts[i];
    root.row = port.row;
    root.total = port.row ? layout_->rows : total_;
    root.order = sum_order(domain, root.count);
    root.part_bytes = (static_cast<size_t>(root.count * bytes_of(root.type)) + 63) / 64 * 64;
    root.first_part = place(root.part_bytes * static_cast<size_t>(std::max<int64_t>(root.order.parts, 1)));
    if (!logical_sizes_.empty()) {
      root.planes = true;
      root.image_stride = planes_.images > 1 ? layout_->roots[i].strides[layout_->dims - 1] : 0;
      root.kept_values = place(static_cast<size_t>(planes_.runs() * planes_.channels * bytes_of(root.type)));
      root.lanes_at = lanes_bytes_;
      lanes_bytes_ += (static_cast<size_t>(planes_.lanes() * bytes_of(root.type)) + 63) / 64 * 64;
    }
    if (root.row) {
      root.kept_values = place(static_cast<size_t>(root.total * bytes_of(root.type)));
      block_bytes = std::max(block_bytes, std::min(root.order.block, root.total) * bytes_of(root.type));
    }
    Load moves;
    const int first = port.row ? kernel_->row_dims : 0;
    std::copy(layout_->roots[i].strides + first, layout_->roots[i].strides + layout_->dims, moves.strides);
    merge_dims(moves, layout_->sizes + first, std::max(layout_->dims - first, 0));
    root.dims = moves.dims;
    const int64_t most_folded = moves.dims == 2 ? 256 : 24;
    root.folds = moves.dims >= 2 && moves.strides[0] == 1 && moves.strides[1] == 0 && moves.sizes[0] > 0 &&
                 moves.sizes[0] <= most_folded && root.order.block % moves.sizes[0] == 0;
    if (moves.dims >= 2 && moves.strides[0] == 1 && moves.strides[1] == 0 && !root.folds) {
      root.columns = columns_loop(value.op->reducer->body, value.compute);
    }
    std::copy(moves.sizes, moves.sizes + Shape::max_rank, root.sizes);
    std::copy(moves.strides, moves.strides + Shape::max_rank, root.strides);
    roots_.push_back(root);
  }
  spare_block_ = place(static_cast<size_t>(block_bytes));
  if (lane_groups_ > 1) kept_lanes_ = place(static_cast<size_t>(planes_.runs()) * lanes_bytes_);
}

/// Sums over other dims than the first ones add columns to results. A strip of a column and the same strip of the next
/// one follow each other, so that the results of a strip stay in the cache; each result is added up in the same order.
void FusedKernel::find_tile() {
  constexpr int64_t least_column = 512, longest_strip = 2048;
  if (roots_.empty() || kernel_->whole_rows || total_ == 0) return;
  const int64_t column = roots_[0].sizes[0];
  const auto adds_columns = [&](const Root& root) {
    return !root.row && !root.planes && !root.folds && root.dims >= 2 && root.strides[0] == 1 &&
           root.sizes[0] == column && root.order.part == cut_.part && root.order.parts == cut_.parts;
  };
  int64_t pattern = 1;  // elements after which all patterns that repeat start again
  for (const Load& load : loads_) {
    if (load.panel_columns > 0 || load.pairing != Pairing::none) return;
    if (load.access == Access::repeated) pattern = std::lcm(pattern, load.period);
  }
  if (column < least_column || column % pattern != 0 || pattern > longest_strip) return;
  if (!std::all_of(roots_.begin(), roots_.end(), adds_columns)) return;
  column_ = column;
  strip_ = column <= strip_limit ? column : longest_strip / pattern * pattern;
  cut_columns();
}

/// Long columns with few elements for each result have few parts, as each takes a copy of the results. They are cut
/// across: a chunk takes a stretch of each column. The order of sums stays.
void FusedKernel::cut_columns() {
  constexpr int64_t enough_parts = 8, least_elements = 1 << 16;  // of a chunk
  const int64_t wanted = std::min(enough_parts / cut_.parts, total_ / (least_elements * cut_.parts));
  const int64_t strips = (column_ + strip_ - 1) / strip_;
  const auto may_be_cut = [&](const Root& root) {
    return root.dims == 2 && root.strides[1] == 0 && root.order.part % column_ == 0;
  };
  if (wanted < 2 || strips < 2 || !std::all_of(roots_.begin(), roots_.end(), may_be_cut)) return;
  stretches_ = std::min(wanted, strips);
  for (Root& root : roots_) root.of_stretches = true;
}

/// Machine code for the least or greatest of rows, for which compiled loops compare each number with itself.
std::shared_ptr<const MachineLoop> FusedKernel::extreme_loop(const CombineBody& body, ScalarType type) {
  if (!machine_code_works()) return nullptr;
  const std::optional<Primitive> combines = machine_combines(body, type);
  if (combines != Primitive::minimum && combines != Primitive::maximum) return nullptr;
  LoopText text;
  append(text.code, {.primitive = Primitive::input, .type = type, .immediate = 0});
  text.inputs.emplace_back();
  LoopOutput& output = text.outputs.emplace_back();
  output.combines = combines;
  output.neutral = body.neutral_bits(type);
  return machine_loop(text);
}

/// Machine code that joins some columns to a result, one after the other: the result is read and written once.
std::shared_ptr<const MachineLoop> FusedKernel::columns_loop(const CombineBody& body, ScalarType type) {
  if (!machine_code_works()) return nullptr;
  const std::optional<Primitive> combines = machine_combines(body, type);
  if (!combines) return nullptr;
  LoopText text;
  const auto add_input = [&](int64_t number) {
    text.inputs.emplace_back();
    return append(text.code, {.primitive = Primitive::input, .type = type, .operands = {}, .immediate = number});
  };
  uint16_t sum = add_input(0);
  for (int64_t column = 1; column <= columns_together; ++column) {
    const uint16_t x = add_input(column);
    sum = append(text.code, {.primitive = *combines, .type = type, .operands = {sum, x, 0}});
  }
  LoopOutput& output = text.outputs.emplace_back();
  output.place = sum;
  output.shares = true;
  return machine_loop(text);
}

FusedKernel::Ready FusedKernel::ready(const plan::Instr& instr) const {
  Ready ready{};
  ready.what = instr.what;
  ready.row = instr.row;
  ready.type = instr.type;
  ready.from = instr.from;
  ready.storage = instr.storage;
  ready.count = instr.count;
  ready.dst = instr.dst;
  std::copy(std::begin(instr.in), std::end(instr.in), ready.in);
  ready.port = instr.port;
  ready.forward = ready.pass = -1;
  if (instr.what == Do::apply) ready.loop = instr.op->body.loops[static_cast<int>(instr.type)];
  if (instr.what == Do::draw) ready.draw = draw_loop(instr.type);
  if (instr.what == Do::reduce || instr.what == Do::root) ready.loops = instr.reducer->body.of(instr.type);
  ready.once = is_once(instr);
  return ready;
}

/// Whether it gives the same for all strips.
bool FusedKernel::is_once(const plan::Instr& instr) const {
  if (instr.what != Do::load) return instr.what == Do::scalar;
  const Access access = loads_[instr.port].access;
  return access == Access::splat || access == Access::repeated;
}

void FusedKernel::prepare_instrs() {
  if (!prepare_passes()) {
    registers_ = kernel_->registers;
    for (const plan::Instr& instr : kernel_->instrs) instrs_.push_back(ready(instr));
  }
  once_ = static_cast<size_t>(
      std::stable_partition(instrs_.begin(), instrs_.end(), [](const Ready& instr) { return instr.once; }) -
      instrs_.begin());
  find_alike();
  forward_stores();
  slot_elements_ = std::min(strip_, total_);
  lengthen_sums();
  if (passes_.empty()) return;
  lengthen_strips();
  lengthen_rows();
}

/// What is stored of numbers, and of arrays of one element for all.
void FusedKernel::find_alike() {
  for (Ready& store : instrs_) {
    if (store.pass >= 0 || store.what != Do::store) continue;
    store.alike = std::any_of(instrs_.begin(), instrs_.end(), [&](const Ready& made) {
      if (!made.once || made.dst != store.in[0]) return false;
      return made.what == Do::scalar || (made.what == Do::load && loads_[made.port].access == Access::splat);
    });
  }
}

/// What is stored is written to its memory where it is made.
void FusedKernel::forward_stores() {
  for (size_t i = 0; i < instrs_.size(); ++i) {
    if (instrs_[i].pass >= 0 || instrs_[i].what != Do::store) continue;
    if (storage_of(instrs_[i].type) != instrs_[i].storage) continue;
    for (size_t k = i; k-- > 0;) {
      const bool writes = instrs_[k].pass < 0 && instrs_[k].what != Do::store && instrs_[k].what != Do::root;
      if (!writes || instrs_[k].dst != instrs_[i].in[0]) continue;
      if (may_forward(i, k)) instrs_[k].forward = instrs_[i].port;
      break;
    }
  }
}

size_t FusedKernel::loop_bytes() const {
  size_t bytes = passes_.capacity() * sizeof(Pass);
  for (const Root& root : roots_) {
    for (const MachineLoop* loop : {root.extreme.get(), root.columns.get()}) bytes += loop ? loop->bytes() : 0;
  }
  for (const Pass& pass : passes_) {
    bytes += pass.loop->bytes() + (pass.streaming ? pass.streaming->bytes() : 0) +
             pass.outputs.capacity() * sizeof(Pass::Output) + pass.inputs.capacity() * sizeof(uint16_t) +
             pass.moves.capacity() * sizeof(Pass::Move);
  }
  return bytes;
}

/// Whether it copies each strip to where it is wanted.
bool FusedKernel::gathers_strips(const Load& load) {
  return load.access == Access::strided && !load.converts && load.panel_columns == 0;
}

/// Whether the producer of a stored register may write straight to the output's memory.
bool FusedKernel::may_forward(size_t store, size_t producer) const {
  const Ready& made = instrs_[producer];
  const bool gathers = made.what == Do::load && !made.once && !made.per_run && gathers_strips(loads_[made.port]);
  const bool writes = made.what == Do::apply || made.what == Do::convert || made.what == Do::draw || gathers;
  if (!writes || made.forward >= 0) return false;
  if (made.what == Do::convert && storage_of(made.type) != made.storage) return false;
  const plan::Port& port = kernel_->stores[instrs_[store].port];
  if (!port.aliased) return true;
  if (!passes_.empty() || gathers) return false;
  // The memory is also a load's: nothing may read that load after the producer.
  for (size_t k = producer + 1; k < instrs_.size(); ++k) {
    const Ready& later = instrs_[k];
    if (later.what == Do::load || later.what == Do::scalar || later.what == Do::draw) continue;
    const int operands = later.what == Do::apply ? later.count : 1;
    for (int j = 0; j < operands; ++j) {
      for (const Ready& first : instrs_) {
        if (first.what == Do::load && first.port == port.alias && first.dst == later.in[j]) return false;
      }
    }
  }
  return !loads_[port.alias].converts;
}

void FusedKernel::run_view(int64_t chunk, const RunData& data) const {
  const Load& from = loads_[instrs_[0].port];
  const auto* memory = static_cast<const unsigned char*>(data.memory[from.root]);
  view_->run(chunk, data.memory[stores_[instrs_[1].port].value],
             memory + from.offset * static_cast<int64_t>(size_of(from.storage)));
}

/// Whether it is the sum of an array as it stands.
bool FusedKernel::only_adds_columns() const {
  return column_ > 0 && kernel_->instrs.size() == 2 && loads_.size() == 1 && loads_[0].access == Access::direct &&
         !loads_[0].converts && roots_[0].columns;
}

/// Some columns at a time, where they belong to one result.
void FusedKernel::run_columns(int64_t chunk, const RunData& data) const {
  const Root& root = roots_[0];
  const Load& from = loads_[0];
  const Piece piece = piece_of(chunk);
  const int64_t size = bytes_of(root.type), end = piece.end;
  const auto* memory = static_cast<const unsigned char*>(data.memory[from.root]) + from.offset * size;
  const int64_t together = root.strides[1] == 0 ? columns_together : 1;
  int64_t skipped = 0;  // strips that were added with the one before them
  each_strip(piece, [&](int64_t begin, int64_t count) {
    if (skipped-- > 0) return;
    unsigned char* const sum = results_of(root, {begin, count, 0, 0}, data.scratch);
    const int64_t left = std::min(root.sizes[1] - begin / column_ % root.sizes[1], (end - begin - 1) / column_ + 1);
    skipped = left >= together ? together - 1 : 0;
    if (skipped == 0) return root.loops.combine(sum, memory + begin * size, count);
    void* arguments[2 + columns_together] = {sum, sum};
    for (int64_t i = 0; i < columns_together; ++i) {
      arguments[2 + i] = const_cast<unsigned char*>(memory) + (begin + i * column_) * size;
    }
    root.columns->run(arguments, 1, count);
  });
}

FusedKernel::Piece FusedKernel::piece_of(int64_t chunk) const {
  const int64_t part = chunk / stretches_, stretch = chunk % stretches_;
  const int64_t strips = stretches_ > 1 ? (column_ + strip_ - 1) / strip_ : 0;
  const auto place = [&](int64_t s) { return s == stretches_ ? column_ : strips * s / stretches_ * strip_; };
  return {cut_.begin(part), cut_.end(part), place(stretch), place(stretch + 1)};
}

/// A chunk is part of a column, or of whole columns.
template <class F> void FusedKernel::each_strip(const Piece& piece, F&& f) const {
  const int64_t end = piece.end;
  if (stretches_ > 1 || (column_ > 0 && end - piece.first > column_)) {
    for (int64_t place = piece.first_place; place < piece.end_place; place += strip_) {
      const int64_t count = std::min(strip_, piece.end_place - place);
      for (int64_t begin = piece.first + place; begin < end; begin += column_) f(begin, count);
    }
    return;
  }
  for (int64_t begin = piece.first; begin < end;) {
    const int64_t count = std::min(end, cut_.stretch_end(begin, strip_)) - begin;
    f(begin, count);
    begin += count;
  }
}

/// Of images in CWHN: each strip lies in one run, and in the lanes of one group.
template <class F> void FusedKernel::each_strip_of_runs(const Piece& piece, int64_t group, State& state, F&& f) const {
  const int64_t group_elements = planes_.lanes() / lane_groups_;
  for (int64_t begin = piece.first, count = 0; begin < piece.end; begin += count) {
    PlaneRuns::Place& place = state.place;
    if (place.at == place.length) place = planes_.place(begin);
    const int64_t in_group = place.at % group_elements;
    count = std::min({group_elements - in_group, piece.end - begin, place.length - place.at});
    if (place.at / group_elements % lane_groups_ == group) {
      count = std::min(count, strip_);
      f(begin, count);
    }
    place.at += count;
    if (place.at == place.length && lane_groups_ == 1) end_runs(state);
  }
}

void FusedKernel::end_runs(State& state) const {
  for (const Root& root : roots_) {
    if (!root.into) continue;
    end_run(planes_, root.loops, bytes_of(root.type), state.place, state.lanes + root.lanes_at,
            state.data.scratch + root.kept_values);
  }
}

void FusedKernel::run(int64_t chunk, const RunData& data) const {
  if (view_) return run_view(chunk, data);
  if (only_adds_columns()) return run_columns(chunk, data);
  const Piece piece = piece_of(chunk / lane_groups_);
  State state(*this, data, piece.end);
  const int64_t row = std::max<int64_t>(layout_->row, 1);
  const std::span instrs(instrs_);
  bool begins = true;
  const auto run_strip = [&](int64_t begin, int64_t count) {
    const Strip strip = kernel_->whole_rows ? Strip{begin, count, begin / row, count / row} : Strip{begin, count, 0, 0};
    if (begins) {
      for (const Ready& instr : instrs.first(once_)) run_instr(instr, strip, state);
    }
    begins = false;
    for (const Ready& instr : instrs.subspan(once_)) {
      if (instr.what == Do::apply) apply(instr, strip, state);
      else run_instr(instr, strip, state);
    }
  };
  if (planes_.strip > 0) each_strip_of_runs(piece, chunk % lane_groups_, state, run_strip);
  else each_strip(piece, run_strip);
}

void FusedKernel::finish(const RunData& data) const {
  for (const Root& root : roots_) {
    const unsigned char* values = data.scratch + root.kept_values;
    const int64_t size = bytes_of(root.type);
    for (int64_t begin = 0, end = 0; root.row && begin < root.total; begin = end) {
      end = std::min(root.total, root.order.stretch_end(begin, root.order.block));
      add(root, begin, end - begin, values + begin * size, data.scratch + spare_block_, data.scratch);
    }
    for (int64_t part = 0; root.planes && part < root.order.parts; ++part) {
      root.loops.neutral(part_of(root, part, data.scratch), root.count);
    }
    if (root.planes) {
      for (int64_t run = 0; lane_groups_ > 1 && run < planes_.runs(); ++run) {
        unsigned char* const lanes = data.scratch + kept_lanes_ + static_cast<size_t>(run) * lanes_bytes_;
        end_run(planes_, root.loops, size, planes_.place_of_run(run), lanes + root.lanes_at,
                data.scratch + root.kept_values);
      }
      combine_runs(planes_, root.order, root.loops, size, root.image_stride, values,
                   [&](int64_t part) { return part_of(root, part, data.scratch); });
    }
    unsigned char* sum = part_of(root, 0, data.scratch);
    if (root.order.parts == 0) root.loops.neutral(sum, root.count);
    write_results(root, data);
  }
}

/// The partial results, combined in their order.
void FusedKernel::write_results(const Root& root, const RunData& data) const {
  constexpr int64_t worth_a_thread = 1 << 15;  // elements
  const int64_t stretch = chunks() > 1 ? worth_a_thread : std::max<int64_t>(root.count, 1);
  const auto size = static_cast<int64_t>(bytes_of(root.type));
  auto* const out = static_cast<unsigned char*>(data.memory[root.value]);
  parallel_for((root.count + stretch - 1) / stretch, [&](int64_t s) {
    const int64_t first = s * stretch, count = std::min(stretch, root.count - first);
    unsigned char* const sum = part_of(root, 0, data.scratch) + first * size;
    for (int64_t part = 1; part < root.order.parts; ++part) {
      root.loops.combine(sum, part_of(root, part, data.scratch) + first * size, count);
    }
    convert_elements(out + first * static_cast<int64_t>(size_of(root.storage)), root.storage, sum,
                     storage_of(root.type), count);
  });
}

}  // namespace rosin::cpu
