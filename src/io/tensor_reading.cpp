// Row-major elements are read in pieces of a few MiB and set into their places of the column-major array while a cache
// holds them, by all threads: a file needs the memory of its arrays and little more.
#include "io/tensor_reading.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/movement.hpp>

#include "base/workers.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "io/row_major.hpp"
#include "io/safetensors_header.hpp"
#include "model/lost_value.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

constexpr int64_t piece_bytes = int64_t{2} << 20;
constexpr int64_t most_readers = 8;  // at a time; each has room for two pieces
/// Larger arrays go to a device straight from the mapped file, through the device's own staging.
constexpr size_t most_on_host = size_t{32} << 20;

using Sizes = std::array<int64_t, Shape::max_rank>;

/// Elements in more than one dim stand in another order in the file.
bool changes_order(const StoredElements& stored) {
  return !stored.column_major &&
         std::count_if(stored.shape.begin(), stored.shape.end(), [](auto n) { return n > 1; }) > 1;
}

/// Elements of a floating-point type of 2 or 4 bytes: no exponent has all bits set.
bool all_finite(const void* values, DType type, int64_t count) {
  const auto test = [&]<class Word>(Word exponent) {
    const auto* words = static_cast<const Word*>(values);
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) finite &= (words[i] & exponent) != exponent;
    return finite;
  };
  if (type == DType::Float16) return test(uint16_t{0x7c00});
  if (type == DType::BFloat16) return test(uint16_t{0x7f80});
  return type == DType::Float32 && test(uint32_t{0x7f800000});
}

[[noreturn]] void refuse_value(const std::string& path, std::string_view name, DType from, DType to,
                               const std::string& lost) {
  throw Error(ErrorKind::dtype, "load: values must fit the type that is asked for; '" + path + "', tensor '" +
                                    std::string(name) + "' has " + lost + " of type " + to_string(from) + ", for " +
                                    to_string(to) + "; load it in a wider type");
}

/// A range of one dim's indices, whole in the dims after it: these elements stand together in the file.
struct Piece {
  int dim = 0;
  int64_t rows = 0;
  int64_t from = 0, count = 0;  // elements of the file
  int64_t to = 0;               // the first one's place in the array
};

/// Reads one array piece by piece.
class PieceReader {
 public:
  PieceReader(const InputFile& file, const StoredElements& stored, DType type, std::string_view name)
      : file_(file), stored_(stored), type_(type), name_(name), made_(fresh_leaf(type, stored.shape)) {
    rank_ = std::max(1, stored.shape.rank());
    sizes_.fill(1);
    if (changes_order(stored)) std::copy(stored.shape.begin(), stored.shape.end(), sizes_.begin());
    else rank_ = 1, sizes_[0] = stored.shape.count();
    int64_t stride = 1;
    for (size_t d = 0; d < static_cast<size_t>(rank_); stride *= sizes_[d++]) strides_[d] = stride;
    most_ = piece_bytes / static_cast<int64_t>(std::max(size_of(stored.type), size_of(type)));
  }

  /// Each thread has a range of the pieces in their order, so that the error that is told is that of the first element.
  Array read() {
    if (stored_.shape.count() > 0) add_pieces(0, 0, 0);
    const auto count = static_cast<int64_t>(pieces_.size());
    const int64_t readers = std::min({count, most_readers, int64_t{worker_threads()}});
    parallel_for(readers, [&](int64_t reader) {
      Room room;
      for (int64_t i = count * reader / readers; i < count * (reader + 1) / readers; ++i) {
        read_piece(pieces_[static_cast<size_t>(i)], room);
      }
    });
    return made_;
  }

 private:
  /// A thread's memory for elements as they stand in the file, and converted.
  struct Room {
    std::vector<uint64_t> raw, converted;
  };

  /// The elements whose indices before dim d are fixed.
  void add_pieces(int d, int64_t from, int64_t to) {
    const auto at = static_cast<size_t>(d);
    int64_t slice = 1;
    for (size_t inner = at + 1; inner < static_cast<size_t>(rank_); ++inner) slice *= sizes_[inner];
    if (slice > most_) {
      for (int64_t i = 0; i < sizes_[at]; ++i) add_pieces(d + 1, from + i * slice, to + i * strides_[at]);
      return;
    }
    const int64_t step = most_ / slice;
    for (int64_t i = 0; i < sizes_[at]; i += step) {
      const int64_t rows = std::min(step, sizes_[at] - i);
      pieces_.push_back({d, rows, from + i * slice, rows * slice, to + i * strides_[at]});
    }
  }

  void read_piece(const Piece& piece, Room& room) const {
    auto* target = static_cast<unsigned char*>(made_.node()->data()) + static_cast<size_t>(piece.to) * size_of(type_);
    const bool in_place = rank_ == 1 && type_ == stored_.type;
    void* const raw = in_place ? target : room_for(room.raw, piece.count, stored_.type);
    const size_t width = size_of(stored_.type);
    file_.read(stored_.place + static_cast<uint64_t>(piece.from) * width, raw,
               static_cast<size_t>(piece.count) * width);
    if (stored_.type == DType::Bool) check_bools(raw, piece.count);
    if (in_place) return;
    const void* values = raw;
    if (type_ != stored_.type) {
      void* const converted = rank_ == 1 ? target : room_for(room.converted, piece.count, type_);
      convert_elements(converted, type_, raw, stored_.type, piece.count);
      check_converted(raw, converted, piece.count);
      values = converted;
    }
    if (rank_ == 1) return;
    Sizes sizes = sizes_;
    const auto first = static_cast<size_t>(piece.dim), dims = static_cast<size_t>(rank_) - first;
    sizes[first] = piece.rows;
    place_row_major(target, {&strides_[first], dims}, values, {&sizes[first], dims}, size_of(type_));
  }

  void check_bools(const void* raw, int64_t count) const {
    const auto* bytes = static_cast<const unsigned char*>(raw);
    if (std::none_of(bytes, bytes + count, [](unsigned char byte) { return byte > 1; })) return;
    refuse_file(file_.path(), std::string(name_), "the bytes of a BOOL tensor must be 0 or 1", "one is larger");
  }

  /// Values are looked at one by one only where some came out as none that is finite.
  void check_converted(const void* raw, const void* converted, int64_t count) const {
    if (all_finite(converted, type_, count)) return;
    const auto lost = lost_value(raw, stored_.type, type_, count);
    if (lost) refuse_value(file_.path(), name_, stored_.type, type_, *lost);
  }

  static void* room_for(std::vector<uint64_t>& words, int64_t count, DType type) {
    const size_t needed = (static_cast<size_t>(count) * size_of(type) + 7) / 8;
    if (words.size() < needed) words = detail::host_vector<uint64_t>("load", static_cast<int64_t>(needed));
    return words.data();
  }

  const InputFile& file_;
  const StoredElements& stored_;
  DType type_;
  std::string_view name_;
  Array made_;
  int rank_ = 1;
  Sizes sizes_{}, strides_{};
  int64_t most_ = 1;  // elements of a piece
  std::vector<Piece> pieces_;
};

DType wanted_type(DType stored, const ReadOptions& options, const Device& device) {
  const DType type = options.dtype && is_float(stored) ? *options.dtype : stored;
  return device.type_after_move(type, Device());
}

/// Bool must be looked at; what is not aligned can only be read.
bool can_map(const StoredElements& stored, DType type) {
  return type == stored.type && type != DType::Bool && stored.shape.count() > 0 &&
         stored.place % size_of(part_type(type)) == 0;
}

}  // namespace

/// The leaf has the order of the file, so that a device gets it as it stands and turns it there.
Array TensorReader::mapped(const StoredElements& stored, const Device& device) {
  if (!map_) map_ = std::make_shared<const MappedFile>(file_);
  using Kept = std::shared_ptr<const MappedFile>;
  const auto leaf_of_shape = [&](const Shape& shape) {
    MemoryOwner owner(new Kept(map_), [](void* kept) noexcept { delete static_cast<Kept*>(kept); });
    const Array leaf = mapped_leaf(map_->data() + stored.place, stored.type, shape, std::move(owner));
    return transferred(leaf, device.position());
  };
  if (!changes_order(stored)) return leaf_of_shape(stored.shape);
  const auto rank = static_cast<size_t>(stored.shape.rank());
  Sizes sizes{};
  std::reverse_copy(stored.shape.begin(), stored.shape.end(), sizes.begin());
  std::array<int, Shape::max_rank> order{};
  for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int>(rank - 1 - d);
  return permute(leaf_of_shape(Shape(std::span<const int64_t>(sizes.data(), rank))), {order.data(), rank});
}

Array TensorReader::read(const StoredElements& stored, std::string_view name) {
  const Device device = request_.device_of ? request_.device_of(name) : request_.options.device;
  const DType type = wanted_type(stored.type, request_.options, device);
  const bool on_host = device.position() == 0;
  const bool large = bytes_of(stored.type, stored.shape) > most_on_host;
  if (can_map(stored, type) && (on_host ? request_.options.map : large)) return mapped(stored, device);
  return transferred(PieceReader(file_, stored, type, name).read(), device.position());
}

Array adjusted(const std::string& path, const NamedArray& entry, const ReadOptions& options) {
  const Array& x = entry.value;
  const DType type = wanted_type(x.dtype(), options, options.device);
  if (type == x.dtype()) return transferred(x, options.device.position());
  if (const auto lost = lost_value(x, type)) refuse_value(path, entry.name, x.dtype(), type, *lost);
  return transferred(cast(x, type), options.device.position());
}

void check_options(const ReadOptions& options) {
  if (!options.dtype || is_float(*options.dtype)) return;
  throw Error(ErrorKind::argument, "load: {.dtype} is a floating-point type; got " +
                                       std::string(to_string(*options.dtype)) + "; cast other arrays after loading");
}

}  // namespace rosin
