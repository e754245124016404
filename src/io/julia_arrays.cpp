// From places in a file to arrays.
#include "io/julia_arrays.hpp"

#include <algorithm>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "base/sizes.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/unpack.hpp"

namespace rosin {
namespace {

Shape shape_of(const JuliaArray& array, const InputFile& file) {
  const auto rank = static_cast<int>(array.sizes.size());
  if (array.sizes.size() > Shape::max_rank) {
    throw Error(ErrorKind::shape, "load: an array has at most eight dims; '" + file.path() + "' has one of " +
                                      std::to_string(rank) + " at byte " + std::to_string(array.place) +
                                      "; reshape it where it was made");
  }
  if (!can_be_sizes(array.sizes.data(), rank)) {
    refuse_at(file.path(), array.place, "an array has at most 2^58 elements", "one has more");
  }
  return Shape(std::span<const int64_t>(array.sizes));
}

Array read_array(const JuliaArray& array, const InputFile& file) {
  Array made = fresh_leaf(array.type, shape_of(array, file));
  void* elements = made.node()->data();
  if (array.packed > 0) unpack_chunk(file, array, elements);
  else if (array.bytes > 0) file.read(array.place, elements, static_cast<size_t>(array.bytes));
  if (array.type == DType::Bool) {
    const auto* bytes = static_cast<const unsigned char*>(elements);
    if (std::any_of(bytes, bytes + array.bytes, [](unsigned char byte) { return byte > 1; })) {
      refuse_at(file.path(), array.place, "the bytes of a Bool must be 0 or 1", "one is larger");
    }
  }
  return made;
}

template <class T> Array number(T value) { return Array(std::span<const T>(&value, 1), Shape()); }

}  // namespace

bool is_array_or_number(const JuliaValue& value) noexcept {
  return value.kind == JuliaKind::array || value.kind == JuliaKind::boolean || value.kind == JuliaKind::integer ||
         value.kind == JuliaKind::real;
}

Array array_of(const JuliaTree& tree, uint32_t at, const InputFile& file) {
  const JuliaValue& value = tree.values[at];
  switch (value.kind) {
    case JuliaKind::array: return read_array(tree.arrays[value.array], file);
    case JuliaKind::boolean: return number(value.integer != 0);
    case JuliaKind::integer:
      if (value.number == DType::UInt64) return number(static_cast<uint64_t>(value.integer));
      return cast(number(value.integer), value.number);
    case JuliaKind::real: return cast(number(value.real), value.number);
    default: break;
  }
  throw Error(ErrorKind::internal, "load: an array or a number was expected; got another value; report this");
}

}  // namespace rosin
