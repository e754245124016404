// Sizes to strides, liveness to places in the arena.
#include "plan/layout.hpp"

#include <algorithm>

#include "base/sizes.hpp"
#include "plan/device.hpp"
#include "plan/image_order.hpp"

namespace rosin::plan {

int64_t View::count() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d) n *= sizes[d];
  return n;
}

namespace {

void make_contiguous(View& view) {
  int64_t stride = 1;
  for (int d = 0; d < view.rank; ++d) {
    view.strides[d] = stride;
    stride *= view.sizes[d];
  }
}

/// The dims of images in CWHN memory order.
void channels_first_order(int rank, int* order) {
  for (int i = 0; i < rank; ++i) order[i] = channels_first_dim(rank, i);
}

void make_channels_first(View& view) {
  int order[Shape::max_rank];
  channels_first_order(view.rank, order);
  int64_t stride = 1;
  for (int i = 0; i < view.rank; ++i) {
    view.strides[order[i]] = stride;
    stride *= view.sizes[order[i]];
  }
}

class LayoutMaker {
 public:
  LayoutMaker(std::shared_ptr<const Structure> structure, const Sizes& sizes) : s_(*structure), sizes_(sizes) {
    layout_.structure = std::move(structure);
  }

  Layout run() {
    layout_.attributes = sizes_.attributes;
    make_views();
    layout_.kernels.reserve(s_.kernels.size());
    for (const Kernel& kernel : s_.kernels) layout_.kernels.push_back(kernel_layout(kernel));
    find_outputs();
    place_arena();
    count_traffic();
    return std::move(layout_);
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int32_t count() const { return static_cast<int32_t>(s_.graph.values.size()); }
  const Value& v(int32_t value) const { return s_.graph.values[at(value)]; }
  size_t bytes(int32_t value) const {
    const size_t raw = static_cast<size_t>(layout_.views[at(value)].count()) * size_of(v(value).dtype);
    return (raw + memory_alignment - 1) / memory_alignment * memory_alignment;
  }

  void make_views() {
    layout_.views.resize(at(count()));
    const int32_t first_leaf = s_.graph.nodes;
    // Leaves first, then nodes and copies in order: a look always goes to an earlier value, or to a copy of one.
    for (int32_t i = first_leaf; i < static_cast<int32_t>(sizes_.shapes.size()); ++i) make_view(i);
    for (int32_t i = 0; i < first_leaf; ++i) make_view(i);
    for (int32_t i = static_cast<int32_t>(sizes_.shapes.size()); i < count(); ++i) make_view(i);
  }

  void make_view(int32_t value) {
    View& view = layout_.views[at(value)];
    if (view.root >= 0) return;
    if (!v(value).op) {
      // A copy or a look: it has its source's sizes, or those that its kind of look makes of them.
      const int32_t source = s_.base[at(value)];
      make_view(source);
      view = layout_.views[at(source)];
      view.offset = 0;
      change_sizes(v(value).look, view);
    } else {
      const Shape& shape = sizes_.shapes[at(value)];
      view.rank = static_cast<uint8_t>(shape.rank());
      std::copy(shape.begin(), shape.end(), view.sizes);
    }
    view.root = value;
    const Home home = s_.homes[at(value)];
    if (v(value).channels_first && (home == Home::own || home == Home::result)) make_channels_first(view);
    else make_contiguous(view);
    if (home == Home::alias || home == Home::view) look(value, view);
    if (home == Home::result) view.root = s_.base[at(value)];
  }

  static void change_sizes(Look look, View& view) {
    switch (look) {
      case Look::none: return;
      case Look::transposed: return std::swap(view.sizes[0], view.sizes[1]);
      case Look::parts:
        std::copy_backward(view.sizes, view.sizes + view.rank, view.sizes + view.rank + 1);
        view.sizes[0] = 2;
        ++view.rank;
        return;
      case Look::whole:
        std::copy(view.sizes + 1, view.sizes + view.rank, view.sizes);
        --view.rank;
        return;
      case Look::bits: view.sizes[0] = (view.sizes[0] + 127) / 128 * 16;
    }
  }

  /// Parts stand one after the other.
  static void look_at_parts(const View& base, View& view) {
    view.strides[0] = 1;
    for (int d = 0; d < base.rank; ++d) view.strides[d + 1] = 2 * base.strides[d];
    view.offset = 2 * base.offset;
  }

  /// A result that stands in a concat of results, or one that was recorded twice.
  void look_at_share(int32_t value, const View& base, View& view) const {
    std::copy(base.strides, base.strides + Shape::max_rank, view.strides);
    const Value& concat = v(s_.base[at(value)]);
    if (concat.op->kind == Kind::part) return;
    const auto dim = static_cast<int>(sizes_.attributes[at(s_.base[at(value)])].as<DimAttributes>().dim);
    for (const int32_t* part = concat.in.begin(); *part != value; ++part) {
      view.offset += sizes_.shapes[at(*part)][dim] * base.strides[dim];
    }
  }

  void look(int32_t value, View& view) {
    make_view(s_.base[at(value)]);
    const View& base = layout_.views[at(s_.base[at(value)])];
    view.root = base.root;
    view.offset = base.offset;
    if (s_.homes[at(value)] == Home::alias) {
      // An identity of a strided view keeps its strides; all other aliases are contiguous.
      if (v(value).op && v(value).op->kind == Kind::argument)
        std::copy(base.strides, base.strides + Shape::max_rank, view.strides);
      return;
    }
    if (v(value).look == Look::transposed) {
      std::copy(base.strides, base.strides + Shape::max_rank, view.strides);
      return std::swap(view.strides[0], view.strides[1]);
    }
    if (v(value).look == Look::parts || v(value).op->movement == Movement::parts) return look_at_parts(base, view);
    if (v(value).op->kind == Kind::part) return look_at_share(value, base, view);
    const Attributes& attributes = sizes_.attributes[at(value)];
    switch (v(value).op->movement) {
      case Movement::broadcast:
        for (int d = 0; d < view.rank; ++d)
          view.strides[d] = d < base.rank && base.sizes[d] == view.sizes[d] ? base.strides[d] : 0;
        break;
      case Movement::permute: {
        const auto permute = attributes.as<PermuteAttributes>();
        for (int d = 0; d < view.rank; ++d) view.strides[d] = base.strides[permute.from[d]];
        break;
      }
      default: {
        const auto slice = attributes.as<SliceAttributes>();
        std::copy(base.strides, base.strides + Shape::max_rank, view.strides);
        view.offset += slice.start * base.strides[slice.dim];
        view.strides[slice.dim] *= slice.step;
      }
    }
  }

  KernelLayout kernel_layout(const Kernel& kernel) const {
    KernelLayout layout;
    const View& domain = layout_.views[at(kernel.domain)];
    int order[Shape::max_rank] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (kernel.channels_first) channels_first_order(domain.rank, order);
    int dims[Shape::max_rank];
    for (int i = 0; i < domain.rank; ++i) {
      const int d = order[i];
      if (!(kernel.wide >> d & 1)) continue;
      dims[layout.dims] = d;
      layout.sizes[layout.dims++] = domain.sizes[d];
    }
    for (int d = 0; d < layout.dims; ++d) (d < kernel.row_dims ? layout.row : layout.rows) *= layout.sizes[d];
    for (const Port& port : kernel.loads) {
      const View& view = layout_.views[at(port.value)];
      PortLayout moves;
      moves.offset = view.offset;
      for (int d = 0; d < layout.dims; ++d) {
        const bool moving = dims[d] < view.rank && view.sizes[dims[d]] != 1;
        moves.strides[d] = moving ? view.strides[dims[d]] : 0;
      }
      layout.loads.push_back(moves);
    }
    for (const Port& port : kernel.roots) {
      const View& view = layout_.views[at(port.value)];
      PortLayout moves;
      for (int d = 0; d < layout.dims; ++d) {
        const bool moving = dims[d] < view.rank && view.sizes[dims[d]] != 1;
        moves.strides[d] = moving ? view.strides[dims[d]] : 0;
      }
      layout.roots.push_back(moves);
      layout.root_counts.push_back(view.count());
    }
    return layout;
  }

  void find_outputs() {
    layout_.places.resize(at(count()));
    for (int32_t i = 0; i < count(); ++i) {
      if (s_.homes[at(i)] == Home::leaf) layout_.places[at(i)] = {Place::Where::leaf, i};
    }
    for (int32_t node = 0; node < s_.graph.nodes; ++node) {
      if (!v(node).held) continue;
      const int32_t copy = s_.contiguous[at(node)];
      const int32_t root = layout_.views[at(copy >= 0 ? copy : node)].root;
      if (s_.homes[at(root)] == Home::leaf) {
        layout_.results.push_back({node, -1, root});
        continue;
      }
      Place& place = layout_.places[at(root)];
      if (place.where == Place::Where::none) {
        place = {Place::Where::output, static_cast<int64_t>(layout_.outputs.size())};
        layout_.outputs.push_back({root, bytes(root), s_.donor[at(root)]});
      }
      layout_.results.push_back({node, static_cast<int32_t>(place.at), -1});
    }
  }

  int64_t bytes_of(int32_t value) const {
    return layout_.views[at(value)].count() * static_cast<int64_t>(size_of(v(value).dtype));
  }
  /// The node that a value stands for: a copy stands for its source.
  int32_t node_of(int32_t value) const {
    while (!v(value).op) value = s_.base[at(value)];
    return value;
  }

  bool is_backward(int32_t value) const {
    const int32_t node = node_of(value);
    return node >= s_.graph.backward && node < s_.graph.nodes;
  }
  /// The first step that belongs to the backward pass alone.
  size_t first_backward() const {
    const auto belongs = [this](const Step& step) {
      return std::all_of(step.writes.begin(), step.writes.end(), [this](int32_t value) { return is_backward(value); });
    };
    return static_cast<size_t>(std::find_if(s_.steps.begin(), s_.steps.end(), belongs) - s_.steps.begin());
  }

  /// Of operand i of a call. A gather reads of its table as much as it writes.
  int64_t bytes_read_of(int32_t node, int i) const {
    const int64_t whole = bytes_of(v(node).in[i]);
    if (i == 0 && is_in_place(node)) return v(node).op->scatter == Scatter::write ? 0 : bytes_written(node);
    return i == 0 && v(node).op->kind == Kind::gather ? std::min(whole, bytes_of(node)) : whole;
  }

  /// Of a scatter into its target what is not the updates stays.
  bool is_in_place(int32_t node) const { return v(node).op->scatter != Scatter::none && s_.donor[at(node)] >= 0; }
  int64_t bytes_written(int32_t value) const {
    const int32_t node = node_of(value);
    const bool in_place = node < s_.graph.nodes && is_in_place(node);
    return in_place ? std::min(bytes_of(value), bytes_of(v(node).in[2])) : bytes_of(value);
  }

  int64_t bytes_read_by(const Step& step) const {
    int64_t bytes = 0;
    if (step.kernel >= 0) {
      for (const Port& port : s_.kernels[at(step.kernel)].loads) bytes += bytes_of(port.value);
      for (const int32_t end : step.ends) {
        for (const Port& port : s_.kernels[at(end)].loads) bytes += bytes_of(port.value);
      }
    } else {
      for (int i = 0; i < v(step.node).operands; ++i) {
        if (v(step.node).in[i] >= 0) bytes += bytes_read_of(step.node, i);
      }
      for (const int32_t value : {step.bias, step.residual, step.center, step.factor, step.shift})
        bytes += value >= 0 ? bytes_of(value) : 0;
      if (step.epilogue.reads_auxiliary()) bytes += bytes_of(step.auxiliary);
    }
    return bytes;
  }

  void count_traffic() {
    Traffic& traffic = layout_.traffic;
    const size_t backward = first_backward();
    std::vector<char> waits(at(count()), 0);  // written before, and not read since
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      const Step& step = s_.steps[i];
      traffic.read += bytes_read_by(step);
      for (int32_t value : step.writes) {
        traffic.written += bytes_written(value);
        waits[at(value)] = i < backward;
      }
      for (int32_t value : step.reads) {
        if (i >= backward && waits[at(value)]) traffic.kept += bytes_of(value);
        if (i >= backward) waits[at(value)] = 0;
      }
    }
  }

  struct Block {
    int32_t value;
    int32_t first, last;  // steps
    size_t bytes, offset;
  };

  /// The first value of a chain of donors shares its block with all that take it over.
  int32_t donor_root(int32_t value) const {
    while (s_.donor[at(value)] >= 0) value = s_.donor[at(value)];
    return value;
  }

  void place_arena() {
    std::vector<Block> blocks;
    std::vector<int32_t> block_of(at(count()), -1);
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      const int32_t step = static_cast<int32_t>(i);
      for (int32_t value : s_.steps[i].writes) {
        if (layout_.places[at(value)].where == Place::Where::output) continue;
        const int32_t root = donor_root(value);
        if (block_of[at(root)] < 0) {
          block_of[at(root)] = static_cast<int32_t>(blocks.size());
          blocks.push_back({root, step, step, bytes(root), 0});
        }
        block_of[at(value)] = block_of[at(root)];
        blocks[at(block_of[at(root)])].last = step;
      }
      for (int32_t value : s_.steps[i].reads) {
        if (block_of[at(value)] >= 0) blocks[at(block_of[at(value)])].last = step;
      }
    }
    place_blocks(blocks);
    for (int32_t i = 0; i < count(); ++i) {
      if (block_of[at(i)] < 0) continue;
      layout_.places[at(i)] = {Place::Where::arena, static_cast<int64_t>(blocks[at(block_of[at(i)])].offset)};
    }
  }

  /// Largest first, each at the lowest offset that is free during its life.
  void place_blocks(std::vector<Block>& blocks) {
    std::vector<size_t> order(blocks.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
    std::vector<Block> placed;  // by offset
    for (size_t i : order) {
      Block& block = blocks[i];
      for (const Block& other : placed) {
        if (other.last < block.first || block.last < other.first) continue;
        if (block.offset + block.bytes <= other.offset) break;  // both are far below what a size_t holds
        block.offset = std::max(block.offset, other.offset + other.bytes);
      }
      const auto after = [](const Block& a, const Block& b) { return a.offset < b.offset; };
      placed.insert(std::upper_bound(placed.begin(), placed.end(), block, after), block);
      layout_.arena_bytes = std::max(layout_.arena_bytes, sum_of_bytes(block.offset, block.bytes));
    }
  }

  const Structure& s_;
  const Sizes& sizes_;
  Layout layout_;
};

}  // namespace

Layout lay_out(std::shared_ptr<const Structure> structure, const Sizes& sizes) {
  return LayoutMaker(std::move(structure), sizes).run();
}

size_t Layout::bytes() const {
  size_t bytes = sizeof(Layout) + views.size() * sizeof(View) + places.size() * sizeof(Place) +
                 outputs.size() * sizeof(Output) + results.size() * sizeof(Result) +
                 attributes.size() * sizeof(Attributes);
  for (const KernelLayout& kernel : kernels) {
    bytes += sizeof(KernelLayout) + (kernel.loads.capacity() + kernel.roots.capacity()) * sizeof(PortLayout) +
             kernel.root_counts.capacity() * sizeof(int64_t);
  }
  return bytes;
}

}  // namespace rosin::plan
