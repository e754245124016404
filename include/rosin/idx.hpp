// Folders of labelled images in the idx format of MNIST, plain or compressed with gzip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Grey images of one size with a class each, as bytes.
struct LabelledImages {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t>
      pixels;  // image after image, row after row: column-major (columns, rows, count); 0 is background
  std::vector<uint8_t> labels;  // count of them
};

/// The two halves of a data set; their images have the same size.
struct ImageFolder {
  LabelledImages train;
  LabelledImages test;
};

/// Pictures as a network takes them.
struct ImageArrays {
  Array images;  // (columns, rows, 1, count) Float32, 0 is background and 1 full ink
  Array labels;  // (count) Int32
};
/// Error (argument): the counts do not fit each other.
ROSIN_API ImageArrays image_arrays(const LabelledImages& pictures);

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the two `t10k-` files of a folder, each plain or with
/// `.gz` (the plain one is taken where both exist). Errors are of kind io and name the file: a folder or file that is
/// missing, a file that is truncated, damaged or no idx file, labels that do not match their images.
ROSIN_API ImageFolder read_image_folder(const std::string& directory);

}  // namespace rosin
