// How a convolution over images in CWHN is cut into chunks that are convolutions themselves: by images, and forward,
// where these are few, each image by rows (the slowest of its spatial dims), which read rows of the next chunk's too.
// By shape only. Read after cuts.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"

namespace rosin::engines {

/// One chunk: a convolution of its own, from element `x` of the images on, to element `y` of the results.
struct ConvPiece {
  ConvSpec spec;
  int64_t x = 0, y = 0;
  MatmulPart part{};
};

/// Whether both are as large: of two pieces of one convolution.
inline bool is_same_piece(const ConvSpec& a, const ConvSpec& b) {
  const int rows = a.spatial - 1;
  return a.batch == b.batch && a.in[rows] == b.in[rows] && a.out[rows] == b.out[rows] &&
         a.pad_low[rows] == b.pad_low[rows] && a.pad_high[rows] == b.pad_high[rows];
}

class ConvCuts {
 public:
  /// `most_sums`: of a gradient by weights, the most chunks.
  ConvCuts(const ConvSpec& spec, int64_t most_sums) : spec_(spec), dim_(spec.spatial - 1) {
    const ConvShape s(spec);
    const int64_t per_image = s.out.count() * s.kernel.count() * s.in_channels * s.out_channels * s.groups;
    images_ = images_per_chunk(spec.batch, per_image, thousands);
    if (spec.kind == ConvKind::backward_weights) images_ = std::max(images_, (spec.batch + most_sums - 1) / most_sums);
    rows_ = spec.out[dim_];
    in_pixels_ = s.in.count();
    out_pixels_ = s.out.count();
    if (spec.kind == ConvKind::forward && images_ == 1 && spec.batch * per_image > 0) cut_rows(per_image);
  }

  /// Whether each image is cut.
  bool cuts_rows() const { return parts() > 1; }
  int64_t chunks() const { return (spec_.batch + images_ - 1) / images_ * parts(); }

  ConvPiece piece(int64_t chunk) const {
    const int64_t image = chunk / parts() * images_, last = std::min(spec_.batch, image + images_);
    const int64_t row = chunk % parts() * rows_, last_row = std::min(spec_.out[dim_], row + rows_);
    ConvPiece piece{spec_};
    piece.spec.batch = last - image;
    piece.x = image * in_pixels_ * spec_.in_channels;
    piece.y = image * out_pixels_ * spec_.out_channels;
    piece.part = images_part(spec_, image, last);
    if (parts() > 1) take_rows(piece, row, last_row);
    return piece;
  }

 private:
  static constexpr int64_t thousands = 30;     // multiply-adds a microsecond
  static constexpr int64_t most_parts = 8;     // of all images together
  static constexpr int64_t least_pixels = 24;  // of a part, for which weights are read once more
  static constexpr int64_t many_weights = 1 << 20, few_parts = 4;

  int64_t parts() const { return (spec_.out[dim_] + rows_ - 1) / rows_; }
  int64_t reach() const { return (spec_.kernel[dim_] - 1) * spec_.dilation[dim_] + 1; }

  void cut_rows(int64_t per_image) {
    const int64_t wanted = worthwhile_chunks(spec_.batch * per_image / (1000 * thousands));
    const int64_t weights = per_image / out_pixels_;
    const int64_t parts = std::min({wanted, most_parts / spec_.batch, out_pixels_ / least_pixels,
                                    weights > many_weights ? few_parts : most_parts});
    if (parts < 2 || spec_.pad_low[dim_] >= reach() || spec_.pad_high[dim_] >= reach()) return;
    rows_ = (spec_.out[dim_] + parts - 1) / parts;
  }

  /// Rows [row, last_row) of the results, of the image's rows under their windows.
  void take_rows(ConvPiece& piece, int64_t row, int64_t last_row) const {
    const int64_t below = row * spec_.stride[dim_] - spec_.pad_low[dim_];
    const int64_t above = (last_row - 1) * spec_.stride[dim_] - spec_.pad_low[dim_] + reach();
    const int64_t first = std::max<int64_t>(below, 0), last = std::min(above, spec_.in[dim_]);
    const int64_t out_row = out_pixels_ / spec_.out[dim_], in_row = in_pixels_ / spec_.in[dim_];
    piece.spec.in[dim_] = last - first;
    piece.spec.out[dim_] = last_row - row;
    piece.spec.pad_low[dim_] = first - below;
    piece.spec.pad_high[dim_] = above - last;
    piece.x += first * in_row * spec_.in_channels;
    piece.y += row * out_row * spec_.out_channels;
    piece.part.last_column = piece.part.first_column + last_row * out_row;
    piece.part.first_column += row * out_row;
  }

  ConvSpec spec_;
  int dim_;             // along which an image is cut: the slowest
  int64_t images_ = 1;  // of a chunk
  int64_t rows_ = 1;    // of the results of a chunk
  int64_t in_pixels_, out_pixels_;
};

/// All pieces by chunk, and the different sizes among them, for each of which one call is prepared.
struct ConvPieces {
  struct Piece {
    size_t size;   // its place among the sizes
    int64_t x, y;  // elements
    MatmulPart part;
  };

  explicit ConvPieces(const ConvCuts& cuts) {
    for (int64_t chunk = 0; chunk < cuts.chunks(); ++chunk) {
      const ConvPiece piece = cuts.piece(chunk);
      const auto as_large = [&](const ConvSpec& size) { return is_same_piece(size, piece.spec); };
      const auto found = std::find_if(sizes.begin(), sizes.end(), as_large);
      pieces.push_back({static_cast<size_t>(found - sizes.begin()), piece.x, piece.y, piece.part});
      if (found == sizes.end()) sizes.push_back(piece.spec);
    }
  }

  const Piece& operator[](int64_t chunk) const { return pieces[static_cast<size_t>(chunk)]; }

  std::vector<Piece> pieces;
  std::vector<ConvSpec> sizes;
};

}  // namespace rosin::engines
