// The rule of cuts.hpp: enough chunks that a few workers stay busy, none below about 5 us; of long calls as many as
// many workers want, none below about a millisecond.
#include "engines/cuts.hpp"

#include <bit>

namespace rosin::engines {

namespace {

constexpr int64_t least_columns = 16;  // of a chunk, so that kernels see whole tiles
constexpr int64_t column_unit = 4;     // chunks are multiples: fine, so that they are as many as wanted, an even number
constexpr int64_t row_unit = 64;
constexpr int64_t tall_unit = 128;  // of one column: the tallest tiles
constexpr int64_t few_chunks = 8, most_chunks = 64;
constexpr int64_t short_microseconds = 5, long_microseconds = 1000;  // of a chunk: of the first few, of more
constexpr int64_t read_bytes = 20'000;                               // a microsecond, from the last cache

bool rows_are_better(const MatmulSpec& spec, int64_t chunks) {
  if (spec.a_transposed == spec.b_transposed) return spec.m > spec.n;
  if (spec.a_transposed && spec.m >= std::min<int64_t>(4, chunks) * row_unit / 2) return true;
  if (spec.b_transposed && spec.n >= chunks * least_columns) return false;
  return spec.m > spec.n;
}

}  // namespace

int64_t worthwhile_chunks(int64_t microseconds) {
  if (microseconds < 2 * short_microseconds) return 1;
  const int64_t few = std::min(few_chunks, microseconds / short_microseconds), many = microseconds / long_microseconds;
  if (many > few_chunks) return std::min(many / 2 * 2, most_chunks);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(few)));
}

int64_t microseconds_of(const MatmulSpec& spec, int64_t thousands_per_microsecond) {
  const int64_t k = std::max<int64_t>(1, spec.k);
  const int64_t sums = spec.m * spec.n * k * spec.batch / (1000 * std::max<int64_t>(1, thousands_per_microsecond));
  const int64_t a_items = spec.a_batch_stride == 0 ? 1 : spec.batch,
                b_items = spec.b_batch_stride == 0 ? 1 : spec.batch;
  const int64_t operands = (spec.m * a_items + spec.n * b_items) * k * static_cast<int64_t>(size_of(spec.type));
  return std::max(sums, operands / read_bytes);
}

MatmulCut cut_matmul(const MatmulSpec& spec, int64_t thousands_per_microsecond) {
  MatmulCut cut{MatmulCut::Axis::columns, spec.batch, spec.n, spec.m, spec.n, std::max<int64_t>(1, spec.n)};
  const int64_t wanted = worthwhile_chunks(microseconds_of(spec, thousands_per_microsecond));
  if (spec.batch > 1) {
    cut.axis = MatmulCut::Axis::items;
    cut.length = spec.batch;
    cut.step = (spec.batch + wanted - 1) / wanted;
    if (spec.batch >= wanted || wanted == 1) return cut;
  }
  // A batch shorter than the number of chunks is cut inside its items, which the engines then walk per chunk.
  // An operand that is copied transposed is copied once where the cut goes along its own free dim.
  const bool by_rows = rows_are_better(spec, wanted);
  const int64_t rows = spec.a_transposed ? row_unit / 2 : spec.n == 1 ? tall_unit : row_unit;
  const int64_t least = by_rows ? rows : least_columns, unit = by_rows ? rows : column_unit;
  const int64_t length = by_rows ? spec.m : spec.n;
  if (wanted == 1 || length < 2 * least) return cut;
  cut.axis = by_rows ? MatmulCut::Axis::rows : MatmulCut::Axis::columns;
  cut.length = length;
  cut.step = std::max(least, round_up((length + wanted - 1) / wanted, unit));
  return cut;
}

int64_t images_per_chunk(int64_t batch, int64_t operations, int64_t thousands_per_microsecond) {
  const int64_t wanted =
      worthwhile_chunks(batch * operations / (1000 * std::max<int64_t>(1, thousands_per_microsecond)));
  return std::max<int64_t>(1, (batch + wanted - 1) / wanted);
}

}  // namespace rosin::engines
