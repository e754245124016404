// Chooses the reader of a picture by its first bytes, and turns pixels into arrays and back (image.hpp).
// Read next: pixels.hpp, png.cpp, jpeg.cpp, netpbm.cpp, image_classes.cpp.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/image.hpp>
#include <rosin/movement.hpp>

#include "base/file.hpp"
#include "base/input_file.hpp"
#include "data/pixels.hpp"

namespace rosin {

void refuse_image(const ImageFile& file, const std::string& why) {
  throw Error(ErrorKind::io, "read_image: " + file.name + " " + why);
}

void check_size(const Pixels& pixels, const ImageFile& file, uint64_t possible) {
  const auto wanted = static_cast<uint64_t>(pixels.width) * static_cast<uint64_t>(pixels.height);
  if (wanted > possible) {
    refuse_image(file, "is damaged or truncated: its header claims " + std::to_string(pixels.width) + "x" +
                           std::to_string(pixels.height) + " pixels, more than its " +
                           std::to_string(file.bytes.size()) + " bytes can hold; fetch the file again");
  }
}

void reserve_pixels(Pixels& pixels, const ImageFile& file, uint64_t possible) {
  check_size(pixels, file, possible);
  pixels.bytes = detail::host_vector<uint8_t>("read_image", pixels.width * pixels.height * pixels.channels);
}

namespace {

Pixels read_pixels(const ImageFile& file) {
  const auto begins = [&](std::string_view mark) {
    return file.bytes.size() >= mark.size() && std::memcmp(file.bytes.data(), mark.data(), mark.size()) == 0;
  };
  if (begins("\x89PNG\r\n\x1a\n")) return read_png(file);
  if (begins("\xff\xd8\xff")) return read_jpeg(file);
  for (const char* mark : {"P2", "P3", "P5", "P6"}) {
    if (begins(mark)) return read_netpbm(file);
  }
  refuse_image(file, "is no PNG, JPEG, PPM or PGM file by its first bytes; convert it");
}

/// One pixel with `from` channels as one with `to`.
void convert(const uint8_t* pixel, int from, uint8_t* target, int to) {
  const bool had_colour = from >= 3, has_colour = to >= 3;
  if (has_colour) {
    for (int c = 0; c < 3; ++c) target[c] = pixel[had_colour ? c : 0];
  } else {
    // 0.299, 0.587 and 0.114 in steps of 2^-16, rounded as Pillow rounds.
    const int grey = had_colour ? (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16 : pixel[0];
    target[0] = static_cast<uint8_t>(grey);
  }
  if (to % 2 == 0) target[to - 1] = from % 2 == 0 ? pixel[from - 1] : 255;
}

/// (width, height, channels): channel after channel.
Array array_of(const Pixels& pixels, int channels) {
  const size_t count = static_cast<size_t>(pixels.width * pixels.height), from = static_cast<size_t>(pixels.channels);
  auto values = detail::host_vector<uint8_t>("read_image", static_cast<int64_t>(count) * channels);
  for (size_t i = 0; i < count; ++i) {
    uint8_t pixel[4];
    convert(pixels.bytes.data() + i * from, pixels.channels, pixel, channels);
    for (int c = 0; c < channels; ++c) values[static_cast<size_t>(c) * count + i] = pixel[c];
  }
  return Array::borrow(std::move(values), {pixels.width, pixels.height, channels});
}

Array decoded(const ImageFile& file, const ImageOptions& options) {
  if (options.channels < 0 || options.channels > 4) {
    throw Error(ErrorKind::argument,
                "read_image: channels are 1 to 4, or 0 for those of the file; got " + std::to_string(options.channels));
  }
  const Pixels pixels = read_pixels(file);
  return array_of(pixels, options.channels == 0 ? pixels.channels : options.channels);
}

[[noreturn]] void refuse_to_write(ErrorKind kind, const std::string& text) { throw Error(kind, "encode_png: " + text); }

/// 0 to 255 of 0 to 1.
uint8_t byte_of(float value) { return value > 0 ? static_cast<uint8_t>(std::min(value, 1.0f) * 255.0f + 0.5f) : 0; }

std::vector<uint8_t> bytes_of(const Array& x) {
  if (x.dtype() == UInt8) return x.to_vector<uint8_t>();
  if (!is_float(x.dtype())) {
    refuse_to_write(ErrorKind::dtype, "a picture is UInt8, or floating point from 0 to 1; got " +
                                          std::string(to_string(x.dtype())) + "; convert it with cast(x, UInt8)");
  }
  const std::vector<float> values = x.to_vector<float>();
  std::vector<uint8_t> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(), byte_of);
  return bytes;
}

}  // namespace

Array read_image(const std::string& path, const ImageOptions& options) {
  const std::vector<uint8_t> bytes = read_whole_file(path);
  return decoded({bytes, "'" + path + "'"}, options);
}

Array decode_image(std::span<const uint8_t> bytes, const ImageOptions& options) {
  return decoded({bytes, "what came in memory"}, options);
}

std::vector<uint8_t> encode_png(const Array& x) {
  const bool fits =
      !x.is_nothing() && (x.rank() == 2 || (x.rank() == 3 && x.size(2) >= 1 && x.size(2) <= 4)) && x.count() > 0;
  if (!fits) {
    refuse_to_write(ErrorKind::shape,
                    "a picture is (width, height) or (width, height, channels) with 1 to 4 channels; got " +
                        (x.is_nothing() ? "nothing" : to_string(x.shape())) +
                        "; take one of a batch by select(x, -1, i)");
  }
  Pixels pixels{x.size(0), x.size(1), x.rank() == 2 ? 1 : static_cast<int>(x.size(2)), {}};
  const std::vector<uint8_t> planes = bytes_of(x);
  pixels.bytes.resize(planes.size());
  const size_t count = static_cast<size_t>(pixels.width * pixels.height), channels = planes.size() / count;
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < count; ++i) pixels.bytes[i * channels + c] = planes[c * count + i];
  }
  return png_bytes(pixels);
}

void write_png(const std::string& path, const Array& x) {
  const std::vector<uint8_t> bytes = encode_png(x);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace rosin
