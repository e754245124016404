// Distances between all points of two sets: a (features, n, batch...), b (features, m, batch...) -> (n, m, batch...).
// Read first: engines/distance_tile.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "cpu/routine.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::cpu {
namespace {

using engines::DistanceTile;

constexpr int64_t most_panel = 32;  // rows of the widest panel

/// In Float64, where no square of a Float32 overflows or vanishes.
float distance_of(const float* a, const float* b, int64_t features) {
  double sum = 0;
  for (int64_t k = 0; k < features; ++k) {
    const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    sum += difference * difference;
  }
  return static_cast<float>(std::sqrt(sum));
}

/// Some points of an item of the batch, and the points of the other set that they are compared with.
struct Patch {
  const float* a = nullptr;  // the first of the rows
  const float* b = nullptr;
  float* result = nullptr;
  int64_t rows = 0, columns = 0;
};

class DistancesCall final : public Call {
 public:
  explicit DistancesCall(const CallSpec& spec)
      : kernels_(engines::tile_kernels()), panel_(kernels_.row_vectors * kernels_.lanes<float>()),
        features_(spec.operands[0].shape[0]), rows_(spec.operands[0].shape[1]), columns_(spec.operands[1].shape[1]),
        batch_(spec.result.shape.count() / (rows_ * columns_)) {
    turned_ = rows_ < most_panel && columns_ > rows_;  // of few points in columns panels would be nearly empty
    if (turned_) std::swap(rows_, columns_);
    constexpr int64_t work = 1 << 20;  // differences of a chunk
    columns_of_chunk_ = Pieces::of(columns_, most_panel * features_, work);
    columns_of_chunk_.step = (columns_of_chunk_.step + DistanceTile::most_columns - 1) / DistanceTile::most_columns *
                             DistanceTile::most_columns;
    const int64_t each = std::min(columns_, columns_of_chunk_.step) * features_;
    rows_of_chunk_ = Pieces::of(rows_, each, work);
    rows_of_chunk_.step = (rows_of_chunk_.step + most_panel - 1) / most_panel * most_panel;
  }

  int64_t chunks() const override { return batch_ * rows_of_chunk_.count() * columns_of_chunk_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const int64_t columns_piece = chunk % columns_of_chunk_.count(), rest = chunk / columns_of_chunk_.count();
    const int64_t rows_piece = rest % rows_of_chunk_.count(), item = rest / rows_of_chunk_.count();
    const auto* a = static_cast<const float*>(data.operands[turned_ ? 1 : 0]) + item * rows_ * features_;
    const auto* b = static_cast<const float*>(data.operands[turned_ ? 0 : 1]) + item * columns_ * features_;
    auto* result = static_cast<float*>(data.result) + item * rows_ * columns_;
    const auto panel = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(panel_ * features_));
    const int64_t first_column = columns_of_chunk_.first(columns_piece);
    const int64_t last_row = rows_of_chunk_.last(rows_piece);
    for (int64_t row = rows_of_chunk_.first(rows_piece); row < last_row; row += panel_) {
      const Patch patch{a + row * features_, b + first_column * features_,
                        result + row * row_step() + first_column * column_step(), std::min(panel_, last_row - row),
                        columns_of_chunk_.last(columns_piece) - first_column};
      turn(patch, panel.get());
      compare(patch, panel.get());
    }
  }

 private:
  int64_t row_step() const { return turned_ ? columns_ : 1; }
  int64_t column_step() const { return turned_ ? 1 : rows_; }

  /// The rows side by side, feature by feature; those that are missing repeat the last one.
  void turn(const Patch& patch, float* panel) const {
    for (int64_t k = 0; k < features_; ++k) {
      for (int64_t row = 0; row < panel_; ++row) {
        *panel++ = patch.a[std::min(row, patch.rows - 1) * features_ + k];
      }
    }
  }

  void compare(const Patch& patch, const float* panel) const {
    float room[most_panel * DistanceTile::most_columns];
    const bool direct = patch.rows == panel_ && !turned_;
    for (int64_t column = 0; column < patch.columns; column += DistanceTile::most_columns) {
      float* to = patch.result + column * column_step();
      const DistanceTile tile{.a = panel,
                              .b = patch.b + column * features_,
                              .c = direct ? to : room,
                              .c_column = direct ? column_step() : panel_,
                              .columns = std::min(DistanceTile::most_columns, patch.columns - column),
                              .features = features_};
      if (!kernels_.distances(tile)) make_sure(patch, tile);
      if (!direct) copy(patch, tile, to);
    }
  }

  void make_sure(const Patch& patch, const DistanceTile& tile) const {
    for (int64_t column = 0; column < tile.columns; ++column) {
      for (int64_t row = 0; row < patch.rows; ++row) {
        float& found = tile.c[row + column * tile.c_column];
        if (found >= engines::least_sure_distance && found < std::numeric_limits<float>::infinity()) continue;
        found = distance_of(patch.a + row * features_, tile.b + column * features_, features_);
      }
    }
  }

  void copy(const Patch& patch, const DistanceTile& tile, float* to) const {
    for (int64_t column = 0; column < tile.columns; ++column) {
      for (int64_t row = 0; row < patch.rows; ++row) {
        to[row * row_step() + column * column_step()] = tile.c[row + column * tile.c_column];
      }
    }
  }

  const engines::TileKernels& kernels_;
  int64_t panel_;  // rows of a panel
  int64_t features_, rows_, columns_, batch_;
  bool turned_ = false;  // the rows are points of the second set
  Pieces rows_of_chunk_, columns_of_chunk_;
};

}  // namespace

std::unique_ptr<Call> prepare_distances(const CallSpec& spec) { return std::make_unique<DistancesCall>(spec); }

}  // namespace rosin::cpu
