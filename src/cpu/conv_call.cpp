// Convolutions: the batch is cut into groups by shape, each with a vendor call of its own. Images come in CWHN, or in
// logical order (WHCN); then a group turns its images, and its result back. Gradients by the weights are added in
// order.
#include <vector>

#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"
#include "engines/call_spec.hpp"
#include "engines/cuts.hpp"

namespace rosin::cpu {
namespace {

// One image: `points` elements of each of `channels`.
struct Image {
  int64_t points = 1, channels = 1;
  bool channels_first = true;

  int64_t count() const { return points * channels; }
  /// Whether it stands in CWHN, or both orders are the same.
  bool plain() const { return channels_first || points == 1 || channels == 1; }
};

Image image_of(const CallArray& array) {
  const Shape& shape = array.shape;
  Image image;
  image.channels_first = array.channels_first();
  for (int d = 0; d < shape.rank() - 2; ++d) image.points *= shape[d];
  image.channels = shape[-2];
  return image;
}

// (rows, columns) -> (columns, rows), in squares that stay in the cache.
template <class T> void transpose_matrix(const T* from, T* to, int64_t rows, int64_t columns) {
  constexpr int64_t square = 16;
  for (int64_t column = 0; column < columns; column += square) {
    const int64_t last_column = std::min(columns, column + square);
    for (int64_t row = 0; row < rows; row += square) {
      const int64_t last_row = std::min(rows, row + square);
      for (int64_t i = row; i < last_row; ++i) {
        for (int64_t j = column; j < last_column; ++j) to[i * columns + j] = from[j * rows + i];
      }
    }
  }
}

void transpose_images(DType type, const void* from, void* to, int64_t images, int64_t rows, int64_t columns) {
  with_bytes_of(type, [&]<class T>(std::type_identity<T>) {
    for (int64_t i = 0; i < images; ++i) {
      const int64_t at = i * rows * columns;
      transpose_matrix(static_cast<const T*>(from) + at, static_cast<T*>(to) + at, rows, columns);
    }
  });
}

class ConvCall final : public Call {
 public:
  explicit ConvCall(const plan::CallDescription& call) : ConvCall(call, spec_of(call)) {}

  ConvCall(const plan::CallDescription& call, const engines::ConvSpec& conv)
      : type_(conv.type), bytes_(size_of(type_)), kind_(conv.kind), result_count_(call.result().shape.count()),
        batch_(conv.batch), first_(image_of(call.arrays[0])),
        second_(kind_ == engines::ConvKind::backward_weights ? image_of(call.arrays[1]) : Image{}),
        result_(kind_ == engines::ConvKind::backward_weights ? Image{} : image_of(call.result())) {
    const int64_t wanted = groups_for(conv);
    images_ = Pieces{batch_, std::max<int64_t>(1, (batch_ + wanted - 1) / wanted)};
    for (int64_t group = 0; group < images_.count(); ++group) add_group(conv, group);
    sums_at_ = kind_ == engines::ConvKind::backward_weights && groups_.size() > 1
                   ? parts_.add(groups_.size() * static_cast<size_t>(result_count_) * bytes_)
                   : 0;
  }

  int64_t chunks() const override { return static_cast<int64_t>(groups_.size()); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override {
    size_t bytes = sizeof(*this);
    for (const Group& group : groups_) bytes += sizeof(Group) + group.call->bytes();
    return bytes;
  }

  void run(int64_t chunk, const CallData& data) override {
    const Group& group = groups_[static_cast<size_t>(chunk)];
    const int64_t first = images_.first(chunk), images = images_.last(chunk) - first;
    engines::VendorBuffers buffers;
    buffers.first = turned(data.operands[0], first_, first, images, data, group.first_at);
    buffers.second = kind_ == engines::ConvKind::backward_weights
                         ? turned(data.operands[1], second_, first, images, data, group.second_at)
                         : data.operands[1];
    buffers.third = data.operands[bias_operand];
    buffers.residual = result_place(data.operands[residual_operand], first);
    void* result = result_at(chunk, first, data);
    buffers.result = turns_result() ? part_at(data, group.result_at) : result;
    buffers.workspace = part_at(data, group.workspace_at);
    group.call->begin(buffers);
    void* scratch = part_at(data, group.scratch_at);
    for (int64_t i = 0; i < group.call->chunks(); ++i) group.call->run_chunk(i, buffers, scratch);
    group.call->finish(buffers);
    if (turns_result()) transpose_images(type_, buffers.result, result, images, result_.channels, result_.points);
  }

  void finish(const CallData& data) override {
    if (groups_.empty()) std::memset(data.result, 0, static_cast<size_t>(result_count_) * bytes_);
    if (kind_ != engines::ConvKind::backward_weights || groups_.size() < 2) return;
    with_number("conv", type_, [&]<class T>(std::type_identity<T>) {
      const T* sums = static_cast<const T*>(part_at(data, sums_at_));
      T* out = static_cast<T*>(data.result);
      const auto groups = static_cast<int64_t>(groups_.size());
      for (int64_t i = 0; i < result_count_; ++i) {
        auto total = static_cast<Computed<T>>(sums[i]);
        for (int64_t g = 1; g < groups; ++g) total = plus(total, static_cast<Computed<T>>(sums[g * result_count_ + i]));
        out[i] = static_cast<T>(total);
      }
    });
  }

 private:
  static engines::ConvSpec spec_of(const plan::CallDescription& call) {
    engines::ConvSpec conv = engines::conv_spec(call);
    conv.activation = activation_loop(call);
    return conv;
  }

  /// Of an array like the result of a convolution, or null.
  const void* result_place(const void* images, int64_t first) const {
    if (images == nullptr) return nullptr;
    return static_cast<const char*>(images) + static_cast<size_t>(first * result_.count()) * bytes_;
  }

  struct Group {
    std::unique_ptr<engines::VendorCall> call;
    size_t first_at = 0, second_at = 0, result_at = 0, workspace_at = 0, scratch_at = 0;
  };

  // One group of images below about 10 us of work; halves are never added up from rounded parts.
  int64_t groups_for(const engines::ConvSpec& conv) const {
    if (conv.batch < 2 || (kind_ == engines::ConvKind::backward_weights && bytes_ == 2)) return 1;
    int64_t products = conv.batch * conv.in_channels / conv.groups * conv.out_channels;
    for (int d = 0; d < conv.spatial; ++d) products *= conv.out[d] * conv.kernel[d];
    constexpr int64_t products_per_microsecond = 20000;
    return std::min<int64_t>(
        {conv.batch, 4, std::max<int64_t>(1, engines::worthwhile_chunks(products, products_per_microsecond))});
  }

  void add_group(engines::ConvSpec conv, int64_t group) {
    conv.batch = images_.last(group) - images_.first(group);
    Group added;
    added.call = engines::prepare_conv(conv);
    const auto image_bytes = [&](const Image& image) {
      return static_cast<size_t>(image.count() * conv.batch) * bytes_;
    };
    if (!first_.plain()) added.first_at = parts_.add(image_bytes(first_));
    if (!second_.plain()) added.second_at = parts_.add(image_bytes(second_));
    if (turns_result()) added.result_at = parts_.add(image_bytes(result_));
    added.workspace_at = parts_.add(added.call->workspace_bytes());
    added.scratch_at = parts_.add(added.call->scratch_bytes_per_chunk());
    groups_.push_back(std::move(added));
  }

  bool turns_result() const { return !result_.plain(); }

  // The group's images in CWHN: where they stand if that is the same, else turned into scratch.
  const void* turned(const void* images, const Image& image, int64_t first, int64_t count, const CallData& data,
                     size_t at) const {
    const void* from = static_cast<const char*>(images) + static_cast<size_t>(first * image.count()) * bytes_;
    if (image.plain()) return from;
    void* to = part_at(data, at);
    transpose_images(type_, from, to, count, image.points, image.channels);
    return to;
  }

  void* result_at(int64_t chunk, int64_t first, const CallData& data) const {
    if (kind_ != engines::ConvKind::backward_weights) {
      return static_cast<char*>(data.result) + static_cast<size_t>(first * result_.count()) * bytes_;
    }
    if (groups_.size() == 1) return data.result;
    return part_at(data, sums_at_ + static_cast<size_t>(chunk * result_count_) * bytes_);
  }

  DType type_;
  size_t bytes_;
  engines::ConvKind kind_;
  int64_t result_count_, batch_;
  Image first_, second_, result_;
  Pieces images_;
  std::vector<Group> groups_;
  ScratchParts parts_;
  size_t sums_at_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_conv_call(const plan::CallDescription& call) { return std::make_unique<ConvCall>(call); }

}  // namespace rosin::cpu
