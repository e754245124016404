// PGM and PPM: "P5 WIDTH HEIGHT MAXIMUM" and bytes, or with P2 and P3 decimal numbers; "#" begins a comment.
// Source: netpbm's manual, pgm(5) and ppm(5).
#include "data/pixels.hpp"

namespace rosin {
namespace {

constexpr int largest_maximum = 65535;

class Reader {
 public:
  explicit Reader(const ImageFile& file) : file_(file) {}

  size_t left() const noexcept { return file_.bytes.size() - at_; }
  uint8_t byte() {
    if (left() == 0) refuse_image(file_, "is truncated: its pixels end too early");
    return file_.bytes[at_++];
  }
  /// The next decimal number, at most `most`, and what separates it from what follows.
  int64_t number(int64_t most, const char* of) {
    skip_spaces();
    int64_t value = 0;
    size_t digits = 0;
    for (; left() > 0 && file_.bytes[at_] >= '0' && file_.bytes[at_] <= '9'; ++digits) {
      value = value * 10 + (file_.bytes[at_++] - '0');
      if (value > most) refuse_image(file_, std::string("is damaged: its ") + of + " is too large");
    }
    if (digits == 0) refuse_image(file_, std::string("is damaged or truncated: there is no ") + of);
    return value;
  }
  /// The one space that ends a header.
  void header_ends() { byte(); }

 private:
  void skip_spaces() {
    for (; left() > 0; ++at_) {
      const uint8_t next = file_.bytes[at_];
      if (next == '#') {
        while (left() > 0 && file_.bytes[at_] != '\n') ++at_;
        if (left() == 0) return;
      } else if (next != ' ' && (next < '\t' || next > '\r')) {
        return;
      }
    }
  }

  const ImageFile& file_;
  size_t at_ = 2;
};

}  // namespace

Pixels read_netpbm(const ImageFile& file) {
  Reader reader(file);
  const char kind = static_cast<char>(file.bytes[1]);
  const bool decimal = kind == '2' || kind == '3';
  const int64_t width = reader.number(INT32_MAX, "width"), height = reader.number(INT32_MAX, "height"),
                maximum = reader.number(largest_maximum, "greatest value");
  if (width == 0 || height == 0 || maximum == 0) refuse_image(file, "is damaged: a size or its greatest value is 0");
  if (!decimal) reader.header_ends();
  Pixels pixels{width, height, kind == '2' || kind == '5' ? 1 : 3, {}};
  const bool wide = maximum > 255;
  reserve_pixels(pixels, file, reader.left() / static_cast<size_t>(pixels.channels) / (wide && !decimal ? 2 : 1));
  for (uint8_t& pixel : pixels.bytes) {
    int64_t value;
    if (decimal) value = reader.number(largest_maximum, "pixel");
    else if (wide) value = reader.byte() << 8, value |= reader.byte();
    else value = reader.byte();
    if (value > maximum) refuse_image(file, "is damaged: a pixel is above the greatest value");
    pixel = static_cast<uint8_t>((2 * 255 * value + maximum) / (2 * maximum));
  }
  return pixels;
}

}  // namespace rosin
