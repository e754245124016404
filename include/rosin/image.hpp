// Pictures in files: PNG, JPEG and PPM become arrays, arrays become PNG; folders of them are data for a loader.
// PNG and JPEG need libpng and libjpeg when rosin is built. Read next: data.hpp, image_memory.hpp (pixels in memory).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

struct ImageOptions {
  /// 0: as in the file. 1 is grey (ITU-R 601: 0.299 R + 0.587 G + 0.114 B), 2 grey with alpha, 3 RGB, 4 RGB with alpha;
  /// what has no alpha is opaque.
  int channels = 0;
};

/// (width, height, channels) UInt8 of a PNG, JPEG, or PPM or PGM file (P2, P3, P5, P6), by its first bytes. Palettes
/// become colours, 16 bits become 8, as in libpng. Errors: io (the file cannot be read, is damaged, truncated, of
/// another kind, claims more pixels than its bytes can hold, or its library was missing at build time), argument
/// (channels). Memory follows what the file really holds.
ROSIN_API Array read_image(const std::string& path, const ImageOptions& options = {});
/// The same from bytes in memory.
ROSIN_API Array decode_image(std::span<const uint8_t> bytes, const ImageOptions& options = {});

/// Writes x as PNG, all or nothing: (width, height) or (width, height, channels) with 1 to 4 channels, UInt8 as it is,
/// floating point from 0 to 1 (what is outside is clamped, NaN is 0). Errors: shape, dtype, io.
ROSIN_API void write_png(const std::string& path, const Array& x);
/// The bytes of that file.
ROSIN_API std::vector<uint8_t> encode_png(const Array& x);

/// Pictures in folders, one folder for each class: data whose observation is (picture, label), read when asked for.
/// Source: torchvision.datasets.ImageFolder.
///
///     DataLoader loader(ImageClasses("flowers", {.channels = 3}), {.batchsize = 16, .shuffle = true});
///
/// A batch needs pictures of one size; `mapobs` works on batches, so differing sizes are data of your own that crops
/// or resizes each picture.
class ROSIN_API ImageClasses {
 public:
  /// Classes are the folders in `directory`, sorted by name; their pictures are the files below them with the
  /// extensions png, jpg, jpeg, ppm and pgm in either case, sorted by path. Errors (io): no such folder, no class, a
  /// class without a picture.
  explicit ImageClasses(const std::string& directory, const ImageOptions& options = {});

  int64_t numobs() const noexcept { return static_cast<int64_t>(paths_.size()); }
  /// (width, height, channels) UInt8, and the number of the class, 0-d Int32.
  std::tuple<Array, Array> getobs(int64_t i) const;

  /// Names of the classes; the label of a picture is a place in them.
  const std::vector<std::string>& classes() const noexcept { return classes_; }
  const std::vector<std::string>& paths() const noexcept { return paths_; }
  const std::vector<int32_t>& labels() const noexcept { return labels_; }

  static constexpr bool rosin_leaf = true;  // data, not a model

 private:
  ImageOptions options_;
  std::vector<std::string> classes_, paths_;
  std::vector<int32_t> labels_;
};

}  // namespace rosin
