// See weights_writer.hpp.
#include "cpu/weights_writer.hpp"

#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)

#include <string>

#include "cpu/vector_code.hpp"
#include "cpu/written_loop.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rdi, util::rsi, util::rdx, util::rcx, util::r8, util::r9, util::r10, util::r11, util::rax;

class WeightsWriter : public VectorCode {
 public:
  WeightsWriter(const WeightsText& text, void* memory, size_t bytes)
      : VectorCode(text.block, 0, memory, bytes), text_(text) {}

  void write() {
    Label next_image, next_row, next;
    each([&](int64_t c, int64_t v) { clear(sum(c, v)); });
    L(next_image);
    mov(lane_row, lane_image);
    mov(channel_row, channel_image);
    mov(rows_left, rows);
    L(next_row);
    mov(lane, lane_row);
    mov(channel, channel_row);
    mov(left, pixels);
    L(next);
    add_pixel();
    go_on(lane, text_.lane_steps.pixel);
    go_on(channel, text_.channel_steps.pixel);
    dec(left);
    jnz(next, T_NEAR);
    go_on(lane_row, text_.lane_steps.row);
    go_on(channel_row, text_.channel_steps.row);
    dec(rows_left);
    jnz(next_row, T_NEAR);
    add(lane_image, bytes_of(text_.lane_steps.image));
    add(channel_image, bytes_of(text_.channel_steps.image));
    dec(images);
    jnz(next_image, T_NEAR);
    mov(sums, ptr[list]);
    each([&](int64_t c, int64_t v) {
      vaddps(sum(c, v), sum(c, v), sum_at(c, v));
      vmovups(sum_at(c, v), sum(c, v));
    });
    vzeroupper();
    ret();
  }

 private:
  const Reg64 list = rdi, rows = rsi, pixels = rdx, rows_left = rcx, lane = r8, channel = r9, lane_row = r10,
              channel_row = r11, left = rax, sums = rax;
  const Address lane_image = qword[list + 8], channel_image = qword[list + 16], images = qword[list + 24];

  /// Registers: the sums, lanes, a channel.
  Xmm sum(int64_t c, int64_t v) const { return vector(c * text_.vectors + v); }
  Xmm of_lanes(int64_t v) const { return vector(text_.channels * text_.vectors + v); }
  Xmm of_channel() const { return of_lanes(text_.vectors); }

  Address sum_at(int64_t c, int64_t v) { return at(sums, (c * text_.vectors + v) * text_.block); }
  static uint32_t bytes_of(int64_t elements) { return static_cast<uint32_t>(elements * element_bytes); }
  template <class Visit> void each(Visit visit) {
    for (int64_t c = 0; c < text_.channels; ++c) {
      for (int64_t v = 0; v < text_.vectors; ++v) visit(c, v);
    }
  }

  void add_pixel() {
    for (int64_t v = 0; v < text_.vectors; ++v) vmovups(of_lanes(v), at(lane, v * text_.vector_step));
    for (int64_t c = 0; c < text_.channels; ++c) {
      vbroadcastss(of_channel(), at(channel, c));
      for (int64_t v = 0; v < text_.vectors; ++v) vfmadd231ps(sum(c, v), of_channel(), of_lanes(v));
    }
  }

  const WeightsText& text_;
};

std::string key_of(const WeightsText& text) {
  std::string key = "weights";
  const PixelSteps &lanes = text.lane_steps, &channels = text.channel_steps;
  for (const int64_t number : {text.block, text.vectors, text.channels, text.vector_step, lanes.pixel, lanes.row,
                               lanes.image, channels.pixel, channels.row, channels.image}) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return key;
}

}  // namespace

std::shared_ptr<const MachineLoop> weights_loop(const WeightsText& text) {
  return shared_loop(key_of(text), [&](unsigned char* buffer, size_t bytes) {
    WeightsWriter writer(text, buffer, bytes);
    writer.write();
    return WrittenCode{writer.getSize(), "rosin gradient by weights, " + std::to_string(text.sums()) + " sums", {}};
  });
}

#else

namespace rosin::cpu {

std::shared_ptr<const MachineLoop> weights_loop(const WeightsText&) { return nullptr; }

#endif

int64_t most_weight_channels(int64_t vectors, int64_t block) { return vectors == 1 ? block : block / 2; }

}  // namespace rosin::cpu
