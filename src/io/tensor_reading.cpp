// Row-major elements are read in pieces of a few MiB and set into their places of the column-major array, so that a
// file needs the memory of its arrays and little more.
#include "io/tensor_reading.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/movement.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "io/row_major.hpp"
#include "io/safetensors_header.hpp"
#include "model/lost_value.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

constexpr int64_t piece_bytes = int64_t{8} << 20;
/// Larger arrays go to a device straight from the mapped file, through the device's own staging.
constexpr size_t most_on_host = size_t{32} << 20;

using Sizes = std::array<int64_t, Shape::max_rank>;

/// Elements in more than one dim stand in another order in the file.
bool changes_order(const StoredElements& stored) {
  return !stored.column_major &&
         std::count_if(stored.shape.begin(), stored.shape.end(), [](auto n) { return n > 1; }) > 1;
}

/// Whether finite values of one floating-point type may be none of another.
bool may_overflow(DType from, DType to) {
  return from != to && is_float(from) && from != DType::Float16 && to != DType::Float64 &&
         !(from == DType::BFloat16 && to == DType::Float32);
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

/// Reads one array piece by piece; a piece is a range of one dim's indices, whole in the dims after it.
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

  Array read() {
    if (stored_.shape.count() > 0) read_from(0, 0, 0);
    return made_;
  }

 private:
  /// The elements whose indices before dim d are fixed; they stand together in the file.
  void read_from(int d, int64_t from, int64_t to) {
    const auto at = static_cast<size_t>(d);
    int64_t slice = 1;
    for (size_t inner = at + 1; inner < static_cast<size_t>(rank_); ++inner) slice *= sizes_[inner];
    if (slice > most_) {
      for (int64_t i = 0; i < sizes_[at]; ++i) read_from(d + 1, from + i * slice, to + i * strides_[at]);
      return;
    }
    const int64_t step = most_ / slice;
    for (int64_t i = 0; i < sizes_[at]; i += step) {
      const int64_t count = std::min(step, sizes_[at] - i);
      read_piece(d, count, from + i * slice, count * slice, to + i * strides_[at]);
    }
  }

  void read_piece(int d, int64_t rows, int64_t from, int64_t count, int64_t to) {
    auto* target = static_cast<unsigned char*>(made_.node()->data()) + static_cast<size_t>(to) * size_of(type_);
    const bool in_place = rank_ == 1 && type_ == stored_.type;
    void* const raw = in_place ? target : room(raw_, count, stored_.type);
    const size_t width = size_of(stored_.type);
    file_.read(stored_.place + static_cast<uint64_t>(from) * width, raw, static_cast<size_t>(count) * width);
    if (stored_.type == DType::Bool) check_bools(raw, count);
    if (in_place) return;
    const void* values = raw;
    if (type_ != stored_.type) {
      void* const converted = rank_ == 1 ? target : room(converted_, count, type_);
      convert_elements(converted, type_, raw, stored_.type, count);
      check_converted(raw, converted, count);
      values = converted;
    }
    if (rank_ == 1) return;
    Sizes sizes = sizes_;
    sizes[static_cast<size_t>(d)] = rows;
    const auto first = static_cast<size_t>(d), dims = static_cast<size_t>(rank_ - d);
    place_row_major(target, {&strides_[first], dims}, values, {&sizes[first], dims}, size_of(type_));
  }

  void check_bools(const void* raw, int64_t count) const {
    const auto* bytes = static_cast<const unsigned char*>(raw);
    if (std::none_of(bytes, bytes + count, [](unsigned char byte) { return byte > 1; })) return;
    refuse_file(file_.path(), std::string(name_), "the bytes of a BOOL tensor must be 0 or 1", "one is larger");
  }

  /// Values are looked at one by one only where some came out as none that is finite.
  void check_converted(const void* raw, const void* converted, int64_t count) const {
    if (!may_overflow(stored_.type, type_) || all_finite(converted, type_, count)) return;
    const Array seen = borrowed_leaf(raw, stored_.type, {count}, MemoryOwner(nullptr, [](void*) noexcept {}));
    if (const auto lost = lost_value(seen, type_)) refuse_value(file_.path(), name_, stored_.type, type_, *lost);
  }

  static void* room(std::vector<uint64_t>& words, int64_t count, DType type) {
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
  std::vector<uint64_t> raw_, converted_;
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
    const Array leaf = borrowed_leaf(map_->data() + stored.place, stored.type, shape, std::move(owner));
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
  if (may_overflow(x.dtype(), type)) {
    if (const auto lost = lost_value(x, type)) refuse_value(path, entry.name, x.dtype(), type, *lost);
  }
  return transferred(cast(x, type), options.device.position());
}

void check_options(const ReadOptions& options) {
  if (!options.dtype || is_float(*options.dtype)) return;
  throw Error(ErrorKind::argument, "load: {.dtype} is a floating-point type; got " +
                                       std::string(to_string(*options.dtype)) + "; cast other arrays after loading");
}

}  // namespace rosin
