// Convolution by oneDNN: images in CWHN (its nhwc), cut along the batch, or where images are few into rows, with a
// primitive for each size of a piece; weights in the order oneDNN asks for, made from the logical ones once per
// execution (begin), or once for all (form), and turned back for gradients (finish).
// Read after onednn_bridge.hpp.
#include "engines/onednn.hpp"

#if defined(ROSIN_HAVE_ONEDNN)

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>

#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "base/workers.hpp"
#include "engines/aligned_bytes.hpp"
#include "engines/conv_cuts.hpp"
#include "engines/conv_shape.hpp"
#include "engines/form_name.hpp"
#include "engines/onednn_bridge.hpp"
#include "engines/onednn_weights.hpp"

namespace rosin::engines {

namespace {

using namespace onednn;

using Description = Owned<dnnl_primitive_desc_t>;

constexpr const char* what = "conv";
constexpr size_t alignment = 64;
constexpr int64_t most_sums = 4;  // gradients of weights that are added up: each takes as much memory as the weights

/// oneDNN's arrays of one number per spatial dim, slowest first.
struct Window {
  dnnl_dims_t stride, dilation, pad_low, pad_high;
};

Window window_of(const ConvSpec& spec) {
  Window window{};
  for (int i = 0; i < spec.spatial; ++i) {
    const int from = spec.spatial - 1 - i;
    window.stride[i] = spec.stride[from];
    window.dilation[i] = spec.dilation[from] - 1;
    window.pad_low[i] = spec.pad_low[from];
    window.pad_high[i] = spec.pad_high[from];
  }
  return window;
}

dnnl_memory_desc_t image_layout(int spatial, int64_t batch, int64_t channels, const int64_t* size,
                                dnnl_data_type_t type) {
  dnnl_dims_t dims{batch, channels};
  for (int i = 0; i < spatial; ++i) dims[2 + i] = size[spatial - 1 - i];
  constexpr dnnl_format_tag_t tags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_tag(&desc, spatial + 2, dims, type, tags[spatial - 1]), what);
  return desc;
}

/// The logical weights, (w, h, d, in, out) column-major; `any` leaves the order to oneDNN.
dnnl_memory_desc_t weights_layout(const ConvSpec& spec, dnnl_data_type_t type, bool any) {
  dnnl_dims_t dims, strides;
  int count = 0;
  if (spec.groups > 1) dims[count++] = spec.groups;
  dims[count++] = spec.out_channels / spec.groups;
  dims[count++] = spec.in_channels / spec.groups;
  for (int i = spec.spatial - 1; i >= 0; --i) dims[count++] = spec.kernel[i];
  int64_t stride = 1;
  for (int i = count - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  dnnl_memory_desc_t desc;
  if (any) {
    check(dnnl_memory_desc_init_by_tag(&desc, count, dims, type, dnnl_format_tag_any), what);
    return desc;
  }
  return strided(count, dims, type, strides, what);
}

/// Descriptors of one convolution.
struct Layouts {
  dnnl_memory_desc_t x, y, weights;
};

Layouts layouts_of(const ConvSpec& spec, const dnnl_memory_desc_t& weights) {
  const dnnl_data_type_t type = data_type_of(spec.type, what);
  return {image_layout(spec.spatial, spec.batch, spec.in_channels, spec.in, type),
          image_layout(spec.spatial, spec.batch, spec.out_channels, spec.out, type), weights};
}

Description forward_description(const ConvSpec& spec, const Layouts& l) {
  const Window w = window_of(spec);
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, &l.x,
                                                   &l.weights, nullptr, &l.y, w.stride, w.dilation, w.pad_low,
                                                   w.pad_high),
        what);
  return described(&desc, attributes(false, what).get(), nullptr, what);
}

Description backward_data_description(const ConvSpec& spec, const Layouts& l, const_dnnl_primitive_desc_t hint) {
  const Window w = window_of(spec);
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &l.x, &l.weights, &l.y,
                                                         w.stride, w.dilation, w.pad_low, w.pad_high),
        what);
  return described(&desc, attributes(false, what).get(), hint, what);
}

Description backward_weights_description(const ConvSpec& spec, const Layouts& l, const_dnnl_primitive_desc_t hint) {
  const Window w = window_of(spec);
  dnnl_convolution_desc_t desc;
  check(dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &l.x, &l.weights, nullptr,
                                                            &l.y, w.stride, w.dilation, w.pad_low, w.pad_high),
        what);
  return described(&desc, attributes(false, what).get(), hint, what);
}

/// oneDNN takes what its machine code does not by loops of which each step takes nanoseconds; our own engines are some
/// hundred times as fast.
Primitive in_machine_code(Description description) {
  if (engine_of(description.get()).starts_with("ref")) {
    throw Error(ErrorKind::backend, std::string(what) + ": oneDNN has no machine code for these sizes");
  }
  return Primitive(std::move(description), what);
}

/// A reorder of weights between two layouts.
Primitive reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
  const SingleThread guard;
  dnnl_primitive_desc_t desc = nullptr;
  const auto attr = attributes(false, what);
  check(dnnl_reorder_primitive_desc_create(&desc, &from, cpu_engine(), &to, cpu_engine(), attr.get()), what);
  return Primitive(Description(desc), what);
}

class OnednnConv final : public VendorCall {
 public:
  explicit OnednnConv(const ConvSpec& spec)
      : spec_(spec), type_(data_type_of(spec.type, what)), pieces_(ConvCuts(spec, most_sums)) {
    may_fail_ = true;
    chunks_ = static_cast<int64_t>(pieces_.pieces.size());
    for (const ConvSpec& size : pieces_.sizes) add_primitive(size);
    for (const Piece& piece : pieces_.pieces) sets_.add(made_[piece.size], operands(piece), what);
    plan_weights();
    sets_.prepare();
  }

  const char* engine() const noexcept override { return "onednn"; }
  size_t bytes() const noexcept override { return (made_.size() + 2) * primitive_bytes; }  // with that of the reorder

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    if (spec_.kind != ConvKind::forward) return std::nullopt;
    return pieces_[chunk].part;
  }

  /// Weights in the order that oneDNN has chosen.
  Form form(int operand) const override {
    if (operand == 0 || spec_.kind == ConvKind::backward_weights) return {};
    return {form_, packed_bytes_};
  }
  void make_form(int, const void* weights, void* to) const override {
    const AlignedBytes workspace(workspace_bytes_);
    sets_.begin(workspace.data() + set_at_);
    pack(weights, workspace.data());
    sets_.finish(workspace.data() + set_at_);
    std::memcpy(to, workspace.data(), dnnl_memory_desc_get_size(&packed_));
  }

  void begin(const VendorBuffers& buffers) const override {
    char* workspace = static_cast<char*>(buffers.workspace);
    ExecutionSets::Set& set = sets_.begin(workspace + set_at_);
    if (spec_.kind == ConvKind::backward_weights) return;
    if (!buffers.forms[1]) pack(buffers.second, workspace);
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      set[static_cast<size_t>(chunk)].point(weights_operand, weights_of(buffers));
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const Piece& piece = pieces_[chunk];
    const auto x_at = [&](const void* base) { return at(base, piece.x); };
    const auto y_at = [&](const void* base) { return at(base, piece.y); };
    char* workspace = static_cast<char*>(buffers.workspace);
    Execution& execution = ExecutionSets::of(workspace + set_at_)[static_cast<size_t>(chunk)];
    if (spec_.kind == ConvKind::forward) {
      const void* data[] = {x_at(buffers.first), weights_of(buffers), y_at(buffers.result)};
      execution.run(data, scratch);
    } else if (spec_.kind == ConvKind::backward_data) {
      const void* data[] = {y_at(buffers.first), weights_of(buffers), x_at(buffers.result)};
      execution.run(data, scratch);
    } else {
      const size_t partial = static_cast<size_t>(chunk) * packed_bytes_;
      const void* data[] = {x_at(buffers.first), workspace + partial, y_at(buffers.second)};
      execution.run(data, scratch);
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    char* workspace = static_cast<char*>(buffers.workspace);
    if (spec_.kind == ConvKind::backward_weights) add_up(workspace, buffers.result);
    sets_.finish(workspace + set_at_);
  }

 private:
  using Piece = ConvPieces::Piece;

  static constexpr size_t weights_operand = 1;  // in every list of operands

  /// oneDNN turns weights on one thread, there faster than ours but for halves in the forward order and where kernels
  /// are to be turned round as well. (The bits are the same.)
  bool turns_by_order() const {
    const bool slow_there = spec_.kind == ConvKind::forward && spec_.type != DType::Float32;
    const bool two_passes = spec_.kind != ConvKind::backward_weights && spec_.flipped;
    return order_->is_known() && (worker_threads() > 1 || slow_there || two_passes);
  }

  static const void* weights_of(const VendorBuffers& buffers) {
    return buffers.forms[1] ? buffers.forms[1] : buffers.workspace;
  }

  void pack(const void* weights, char* workspace) const {
    if (turns_by_order()) return order_->pack(weights, workspace, size_of(spec_.type));
    if (spec_.flipped) {
      turn_round(weights, workspace + turned_at_);
      weights = workspace + turned_at_;
    }
    turn(weights, workspace, workspace);
  }

  /// The partial gradients of all chunks, in order, as logical weights.
  void add_up(char* workspace, void* result) const {
    const auto distance = static_cast<int64_t>(packed_bytes_ / sizeof(float));
    if (turns_by_order()) {
      return order_->sum(reinterpret_cast<const float*>(workspace), chunks_, distance, spec_.type, result);
    }
    float* sums = reinterpret_cast<float*>(workspace);
    const size_t count = packed_bytes_ / sizeof(float);
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const float* partial = sums + static_cast<size_t>(chunk) * count;
      for (size_t i = 0; i < count; ++i) sums[i] += partial[i];
    }
    void* logical = spec_.flipped ? workspace + turned_at_ : result;
    turn(workspace, logical, workspace);
    if (spec_.flipped) turn_round(logical, result);
  }

  /// Reorders weights by the last Execution of the set.
  void turn(const void* from, const void* to, char* workspace) const {
    const void* data[] = {from, to};
    ExecutionSets::of(workspace + set_at_).back().run(data, workspace + turn_scratch_at_);
  }

  const char* at(const void* base, int64_t elements) const {
    return static_cast<const char*>(base) + elements * static_cast<int64_t>(size_of(spec_.type));
  }

  /// A primitive for pieces of one size.
  void add_primitive(const ConvSpec& size) {
    const bool gradient = spec_.kind == ConvKind::backward_weights;
    // Gradients of weights are summed over chunks, so they are kept in Float32.
    const dnnl_memory_desc_t weights =
        made_.empty() ? weights_layout(spec_, gradient ? dnnl_f32 : type_, true) : packed_;
    const Primitive& made = made_.emplace_back(make_primitive(size, weights));
    packed_ = made.layout(gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
    scratch_bytes_ = std::max(scratch_bytes_, made.scratch_bytes());
  }

  Primitive make_primitive(const ConvSpec& spec, const dnnl_memory_desc_t& weights) const {
    const Layouts layouts = layouts_of(spec, weights);
    if (spec.kind == ConvKind::forward) return in_machine_code(forward_description(spec, layouts));
    const Description hint = forward_description(spec, layouts_of(spec, weights_layout(spec, type_, true)));
    if (spec.kind == ConvKind::backward_data) {
      return in_machine_code(backward_data_description(spec, layouts, hint.get()));
    }
    return in_machine_code(backward_weights_description(spec, layouts, hint.get()));
  }

  /// The workspace: packed weights (or one partial gradient per chunk), logical weights turned round, reorder's
  /// scratch, the set of the execution.
  void plan_weights() {
    const dnnl_memory_desc_t logical = weights_layout(spec_, type_, false);
    const bool gradient = spec_.kind == ConvKind::backward_weights;
    const dnnl_memory_desc_t from = gradient ? packed_ : logical, to = gradient ? logical : packed_;
    order_.emplace(packed_, logical, spec_.flipped, packed_.ndims - spec_.spatial);
    turn_ = reorder(from, to);
    sets_.add(turn_, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, what);
    has_begin_ = has_finish_ = true;
    packed_bytes_ = round_up_bytes(dnnl_memory_desc_get_size(&packed_));
    turned_at_ = packed_bytes_ * static_cast<size_t>(gradient ? chunks_ : 1);
    turn_scratch_at_ = turned_at_ + (spec_.flipped ? round_up_bytes(dnnl_memory_desc_get_size(&logical)) : 0);
    set_at_ = turn_scratch_at_ + round_up_bytes(turn_.scratch_bytes());
    workspace_bytes_ = set_at_ + ExecutionSets::bytes;
    form_ = form_name("onednn", {spec_.flipped});
    for (const dnnl_memory_desc_t& layout : {packed_, logical}) form_ = mix(form_, name_of(layout));
  }

  static uint64_t name_of(const dnnl_memory_desc_t& layout) {
    const dnnl_blocking_desc_t& blocks = layout.format_desc.blocking;
    uint64_t name = form_name("", {layout.data_type, layout.ndims, blocks.inner_nblks});
    for (int d = 0; d < layout.ndims; ++d)
      name = mix(name, form_name("", {layout.padded_dims[d], layout.dims[d], blocks.strides[d]}));
    for (int i = 0; i < blocks.inner_nblks; ++i)
      name = mix(name, form_name("", {blocks.inner_blks[i], blocks.inner_idxs[i]}));
    return name;
  }

  static size_t round_up_bytes(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  std::vector<Operand> operands(const Piece& piece) const {
    const Primitive& primitive = made_[piece.size];
    if (spec_.kind == ConvKind::backward_data) {
      return {{DNNL_ARG_DIFF_DST, primitive.layout(dnnl_query_diff_dst_md)},
              {DNNL_ARG_WEIGHTS, primitive.layout(dnnl_query_weights_md)},
              {DNNL_ARG_DIFF_SRC, primitive.layout(dnnl_query_diff_src_md)}};
    }
    if (spec_.kind == ConvKind::backward_weights) {
      return {{DNNL_ARG_SRC, primitive.layout(dnnl_query_src_md)},
              {DNNL_ARG_DIFF_WEIGHTS, primitive.layout(dnnl_query_diff_weights_md)},
              {DNNL_ARG_DIFF_DST, primitive.layout(dnnl_query_diff_dst_md)}};
    }
    return {{DNNL_ARG_SRC, primitive.layout(dnnl_query_src_md)},
            {DNNL_ARG_WEIGHTS, primitive.layout(dnnl_query_weights_md)},
            {DNNL_ARG_DST, primitive.layout(dnnl_query_dst_md)}};
  }

  /// Reverses every kernel in all spatial dims.
  void turn_round(const void* from, void* to) const {
    const ConvShape s(spec_);
    const int64_t taps = s.kernel.count(), filters = s.in_channels * spec_.out_channels;
    const auto reverse = [&](const auto* in, auto* out) {
      for (int64_t filter = 0; filter < filters; ++filter) {
        std::reverse_copy(in + filter * taps, in + (filter + 1) * taps, out + filter * taps);
      }
    };
    if (spec_.type == DType::Float32) {
      reverse(static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
    } else {
      reverse(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
    }
  }

  ConvSpec spec_;
  dnnl_data_type_t type_;
  ConvPieces pieces_;
  std::deque<Primitive> made_;  // by size; they stay where they are
  dnnl_memory_desc_t packed_;
  uint64_t form_ = 0;  // of the packed weights
  size_t packed_bytes_ = 0, turned_at_ = 0, turn_scratch_at_ = 0, set_at_ = 0;
  std::optional<WeightsOrder> order_;
  Primitive turn_;              // where that is not known, or does not pay
  mutable ExecutionSets sets_;  // entry i of a set belongs to the thread that runs chunk i, the last one turns weights
};

}  // namespace

std::unique_ptr<VendorCall> prepare_onednn_conv(const ConvSpec& spec) { return std::make_unique<OnednnConv>(spec); }

}  // namespace rosin::engines

#else

#include <rosin/error.hpp>

namespace rosin::engines {

BFloatProducts onednn_bfloat_products() noexcept { return BFloatProducts::none; }

std::unique_ptr<VendorCall> prepare_onednn_conv(const ConvSpec&) {
  throw Error(ErrorKind::backend, "conv: oneDNN was asked for; this build has none; install libdnnl-dev and rebuild");
}

}  // namespace rosin::engines

#endif
