// Pictures between a file and an array. One reader for each kind of file; image.cpp chooses by the first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rosin {

/// Rows from the top, the channels of a pixel beside one another.
struct Pixels {
  int64_t width = 0, height = 0;
  int channels = 0;  // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::vector<uint8_t> bytes;

  size_t row_bytes() const noexcept { return static_cast<size_t>(width) * static_cast<size_t>(channels); }
};

/// The bytes of a file and how messages call it.
struct ImageFile {
  std::span<const uint8_t> bytes;
  std::string name;
};

/// Error (io): `why` continues "read_image: 'NAME' ".
[[noreturn]] void refuse_image(const ImageFile& file, const std::string& why);
/// Error (io): the file's bytes can hold so many pixels, and its header claims more.
void check_size(const Pixels& pixels, const ImageFile& file, uint64_t possible);
/// The same, then takes memory for the pixels.
void reserve_pixels(Pixels& pixels, const ImageFile& file, uint64_t possible);

Pixels read_png(const ImageFile& file);
Pixels read_jpeg(const ImageFile& file);
/// P2, P3, P5, P6.
Pixels read_netpbm(const ImageFile& file);

/// Error (io): libpng was missing at build time.
std::vector<uint8_t> png_bytes(const Pixels& pixels);

}  // namespace rosin
