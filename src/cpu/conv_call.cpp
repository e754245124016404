// Convolutions by one vendor call each. Images come in CWHN, or in logical order (WHCN): where each group has one
// input channel, where windows are single points, and where the math mode is one that no engine here has. Unless an
// engine reads that they are turned before, and the result back.
#include <vector>

#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/row_conv.hpp"
#include "engines/call_spec.hpp"

namespace rosin::cpu {
namespace {

// Images: `points` elements of each of `channels`.
struct Image {
  int64_t points = 1, channels = 1;
  bool as_read = true;   // as the engine reads them
  size_t turned_at = 0;  // in the scratch: where they stand in CWHN, if not in memory

  int64_t count() const { return points * channels; }
  /// Whether nothing is turned: both orders may be the same.
  bool plain() const { return as_read || points == 1 || channels == 1; }
};

Image image_of(const CallArray& array, bool logical) {
  const Shape& shape = array.shape;
  Image image;
  image.as_read = logical || array.channels_first();
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
  ConvCall(const plan::CallDescription& call, bool weights_stay) : ConvCall(call, spec_of(call, weights_stay)) {}

  ConvCall(const plan::CallDescription& call, const engines::ConvSpec& conv)
      : type_(conv.type), result_bytes_(static_cast<size_t>(call.result().shape.count()) * size_of(type_)),
        batch_(conv.batch), by_weights_(conv.kind == engines::ConvKind::backward_weights),
        first_(image_of(call.arrays[0], conv.logical)),
        second_(by_weights_ ? image_of(call.arrays[1], conv.logical) : Image{}),
        result_(by_weights_ ? Image{} : image_of(call.result(), conv.logical)), call_(prepare_row_conv(conv)) {
    if (!call_) call_ = engines::prepare_conv(conv);
    for (Image* image : {&first_, &second_, &result_}) {
      if (!image->plain()) image->turned_at = parts_.add(static_cast<size_t>(image->count() * batch_) * size_of(type_));
    }
    workspace_at_ = parts_.add(call_->workspace_bytes());
    chunk_bytes_ = (call_->scratch_bytes_per_chunk() + 63) / 64 * 64;
    scratch_at_ = parts_.add(chunk_bytes_ * static_cast<size_t>(call_->chunks()));
  }

  int64_t chunks() const override { return call_->chunks(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override { return sizeof(*this) + call_->bytes(); }

  engines::Form form(int operand) const override {
    return operand == 1 && !by_weights_ ? call_->form(1) : engines::Form{};
  }
  void make_form(int operand, const void* from, void* to) const override { call_->make_form(operand, from, to); }

  void begin(const CallData& data) override {
    turn(first_, data.operands[0], data);
    if (by_weights_) turn(second_, data.operands[1], data);
    if (call_->has_begin()) call_->begin(buffers(data));
  }

  void run(int64_t chunk, const CallData& data) override {
    call_->run_chunk(chunk, buffers(data), part_at(data, scratch_at_ + chunk_bytes_ * static_cast<size_t>(chunk)));
  }

  void finish(const CallData& data) override {
    if (chunks() == 0) std::memset(data.result, 0, result_bytes_);
    else if (call_->has_finish()) call_->finish(buffers(data));
    if (result_.plain()) return;
    transpose_images(type_, part_at(data, result_.turned_at), data.result, batch_, result_.channels, result_.points);
  }

 private:
  static engines::ConvSpec spec_of(const plan::CallDescription& call, bool weights_stay) {
    engines::ConvSpec conv = engines::conv_spec(call);
    conv.weights_stay = weights_stay;
    conv.activation = activation_loop(call);
    conv.logical = engines::takes_logical(conv) && engines::in_logical_order(call);
    return conv;
  }

  /// Images into CWHN.
  void turn(const Image& image, const void* from, const CallData& data) const {
    if (image.plain()) return;
    transpose_images(type_, from, part_at(data, image.turned_at), batch_, image.points, image.channels);
  }

  engines::VendorBuffers buffers(const CallData& data) const {
    const auto place = [&](const Image& image, const void* at) {
      return image.plain() ? at : part_at(data, image.turned_at);
    };
    engines::VendorBuffers buffers;
    buffers.first = place(first_, data.operands[0]);
    buffers.second = place(second_, data.operands[1]);
    buffers.third = data.operands[bias_operand];
    buffers.residual = data.operands[residual_operand];
    buffers.center = data.operands[center_operand];
    buffers.factor = data.operands[factor_operand];
    buffers.shift = data.operands[shift_operand];
    buffers.result = result_.plain() ? data.result : part_at(data, result_.turned_at);
    buffers.workspace = part_at(data, workspace_at_);
    buffers.forms[1] = data.forms[1];
    return buffers;
  }

  DType type_;
  size_t result_bytes_;
  int64_t batch_;
  bool by_weights_;
  Image first_, second_, result_;
  std::unique_ptr<engines::VendorCall> call_;
  ScratchParts parts_;
  size_t workspace_at_ = 0, scratch_at_ = 0, chunk_bytes_ = 0;  // scratch of each chunk
};

}  // namespace

std::unique_ptr<Call> prepare_conv_call(const plan::CallDescription& call, bool weights_stay) {
  return std::make_unique<ConvCall>(call, weights_stay);
}

}  // namespace rosin::cpu
