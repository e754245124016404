// Elements on their way between NumPy's orders and ours.
#include "io/npy.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/npy.hpp>

#include "base/file.hpp"
#include "base/sizes.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/npy_header.hpp"
#include "io/row_major.hpp"
#include "io/safetensors_header.hpp"
#include "io/zip.hpp"

namespace rosin {
namespace {

Shape shape_of(const std::vector<int64_t>& sizes, const NpyBytes& bytes) {
  const auto rank = static_cast<int>(sizes.size());
  if (rank > Shape::max_rank) {
    throw Error(ErrorKind::shape, "load: an array has at most eight dims; '" + bytes.file->path() + "' has " +
                                      std::to_string(rank) + "; reshape it where it was made");
  }
  if (!can_be_sizes(sizes.data(), rank)) bytes.refuse(0, "an array has at most 2^58 elements", "this one has more");
  return Shape(std::span<const int64_t>(sizes));
}

/// In the order of the file, with our order of bytes.
void set_right(void* elements, const NpyHeader& header, uint64_t bytes) {
  const size_t width = size_of(part_type(header.type));
  if (header.big_endian && width > 1) swap_bytes(elements, bytes / width, width);
}

void check_bools(const void* elements, const NpyHeader& header, uint64_t bytes, const NpyBytes& source) {
  if (header.type != DType::Bool) return;
  const auto* first = static_cast<const unsigned char*>(elements);
  if (std::any_of(first, first + bytes, [](unsigned char byte) { return byte > 1; })) {
    source.refuse(header.data, "the bytes of a Bool must be 0 or 1", "one is larger");
  }
}

std::vector<uint64_t> words_for(uint64_t bytes) {
  return detail::host_vector<uint64_t>("npy", static_cast<int64_t>((bytes + 7) / 8));
}

Array read_array(const NpyBytes& source) {
  const NpyHeader header = read_npy_header(source);
  const Shape shape = shape_of(header.sizes, source);
  Array made = fresh_leaf(header.type, shape);
  void* elements = made.node()->data();
  if (header.fortran_order || shape.rank() < 2) {
    source.read(header.data, elements, header.bytes);
    set_right(elements, header, header.bytes);
  } else {
    std::vector<uint64_t> rows = words_for(header.bytes);
    source.read(header.data, rows.data(), header.bytes);
    set_right(rows.data(), header, header.bytes);
    from_row_major(elements, rows.data(), shape, size_of(header.type));
  }
  check_bools(elements, header, header.bytes, source);
  return made;
}

TensorListing listing_of(const std::string& name, const NpyBytes& source) {
  const NpyHeader header = read_npy_header(source);
  TensorListing tensor{name, header.type == DType::ComplexF64 ? "C128" : file_type(header.type), {}, header.bytes};
  for (int64_t size : header.sizes) tensor.sizes.push_back(static_cast<uint64_t>(size));
  return tensor;
}

/// "x" of "folder/x.npy".
std::string stem_of(const std::string& path) {
  const size_t start = path.rfind('/') + 1;  // 0 without a folder
  return path.substr(start, path.size() - start - std::strlen(".npy"));
}

/// Calls use(name, bytes) for each array of an archive; other entries are passed by.
template <class Use> void each_entry(const InputFile& file, Use use) {
  for (const ZipEntry& entry : read_zip(file)) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::vector<unsigned char> bytes = unpack_entry(file, entry);
    use(entry.name.substr(0, entry.name.size() - 4), NpyBytes{&file, entry.place, bytes.data(), bytes.size()});
  }
}

/// Header and elements of an array as a .npy file has them.
struct NpyContent {
  std::string header;
  Array array;                 // where the elements are, unless in `rows`
  std::vector<uint64_t> rows;  // row-major
  uint64_t bytes = 0;

  const void* elements() const { return rows.empty() ? array.node()->data() : rows.data(); }
};

NpyContent content_of(const OutgoingArray& entry) {
  NpyContent content;
  content.array = entry.make ? entry.make(entry.array) : with_values(entry.array);
  const Array& x = content.array;
  const Shape shape = x.shape();
  content.header = npy_header_text(x.dtype(), {shape.begin(), shape.end()});
  content.bytes = bytes_of(x.dtype(), x.shape());
  if (x.rank() > 1 && content.bytes > 0) {
    content.rows = words_for(content.bytes);
    to_row_major(content.rows.data(), x.node()->data(), shape, size_of(x.dtype()));
  }
  return content;
}

void check_type(const OutgoingArray& entry) { npy_header_text(entry.array.dtype(), {}); }

}  // namespace

SavedFile read_npz(const std::string& path) {
  const InputFile file(path, "load");
  std::vector<NamedArray> arrays;
  each_entry(file, [&](const std::string& name, const NpyBytes& bytes) {
    arrays.push_back({name, read_array(bytes)});
  });
  return SavedFile(std::move(arrays), {});
}

FileListing list_npz(const std::string& path) {
  const InputFile file(path, "load");
  FileListing listing;
  each_entry(file, [&](const std::string& name, const NpyBytes& bytes) {
    listing.tensors.push_back(listing_of(name, bytes));
  });
  return listing;
}

void write_npz(const std::string& path, const std::vector<OutgoingArray>& arrays, bool compress) {
  std::set<std::string> names;
  for (const OutgoingArray& entry : arrays) {
    check_type(entry);
    if (!entry.name.empty() && names.insert(entry.name).second) continue;
    throw Error(ErrorKind::argument,
                "save: every array needs a name of its own; '" + entry.name + "' for '" + path + "' is not; rename it");
  }
  AtomicFile file(path);
  ZipWriter zip(file);
  for (const OutgoingArray& entry : arrays) {
    const NpyContent content = content_of(entry);
    zip.add(entry.name + ".npy", content.header, content.elements(), content.bytes, compress);
  }
  zip.finish();
  file.commit();
}

SavedFile read_npy(const std::string& path, const ReadRequest& request) {
  const InputFile file(path, "load");
  const NpyBytes bytes{&file, 0, nullptr, file.size()};
  const NpyHeader header = read_npy_header(bytes);
  const std::string name = stem_of(path);
  if (header.big_endian || header.type == DType::Bool) {
    return SavedFile({{name, adjusted(path, {name, read_array(bytes)}, request.options)}}, {});
  }
  TensorReader reader(file, request);
  return SavedFile(
      {{name, reader.read({header.data, header.type, shape_of(header.sizes, bytes), header.fortran_order}, name)}}, {});
}

FileListing list_npy(const std::string& path) {
  const InputFile file(path, "load");
  FileListing listing;
  listing.tensors.push_back(listing_of(stem_of(path), {&file, 0, nullptr, file.size()}));
  return listing;
}

void write_npy(const std::string& path, const std::vector<OutgoingArray>& arrays) {
  if (arrays.size() != 1) {
    throw Error(ErrorKind::argument, "save: a .npy file holds one array; got " + std::to_string(arrays.size()) +
                                         " for '" + path + "'; save them as .npz");
  }
  const NpyContent content = content_of(arrays[0]);
  AtomicFile file(path);
  file.write(content.header.data(), content.header.size());
  file.write(content.elements(), static_cast<size_t>(content.bytes));
  file.commit();
}

Array load_npy(const std::string& path) {
  const InputFile file(path, "load");
  return read_array({&file, 0, nullptr, file.size()});
}

void save_npy(const std::string& path, const Array& x) { write_npy(path, {{"x", x, x.shape()}}); }

// --- Data that is read batch by batch.

struct NpyData::State {
  explicit State(const std::string& path)
      : file(path, "load"), bytes{&file, 0, nullptr, file.size()}, header(read_npy_header(bytes)),
        whole(shape_of(header.sizes, bytes)) {
    if (whole.rank() == 0) {
      throw Error(ErrorKind::shape,
                  "NpyData: an array of observations has dims; '" + path + "' has none; load it with load_npy");
    }
    one = Shape(std::span<const int64_t>(whole.begin() + 1, whole.end()));
  }

  InputFile file;
  NpyBytes bytes;
  NpyHeader header;
  Shape whole;
  Shape one;  // of an observation
  std::atomic<int> owners{1};

  /// Elements of observation i, in the order of one that stands alone, column-major.
  void read_one(int64_t i, void* target, std::vector<uint64_t>& rows) const {
    const size_t width = size_of(header.type);
    const uint64_t size = bytes_of(header.type, one);
    void* place = one.rank() < 2 ? target : rows.data();
    if (header.fortran_order && whole.rank() > 1) return read_strided(i, static_cast<unsigned char*>(target));
    bytes.read(header.data + static_cast<uint64_t>(i) * size, place, size);
    set_right(place, header, size);
    if (one.rank() >= 2) from_row_major(target, rows.data(), one, width);
  }

  /// In a file in Fortran's order the elements of an observation lie apart.
  void read_strided(int64_t i, unsigned char* target) const {
    const size_t width = size_of(header.type);
    const auto step = static_cast<uint64_t>(whole[0]) * width;
    const auto count = static_cast<uint64_t>(one.count());
    for (uint64_t k = 0; k < count; ++k) {
      bytes.read(header.data + static_cast<uint64_t>(i) * width + k * step, target + k * width, width);
    }
    set_right(target, header, count * width);
  }
};

NpyData::NpyData(const std::string& path) : state_(new State(path)) {}
NpyData::NpyData(const NpyData& other) noexcept : state_(other.state_) {
  if (state_) state_->owners.fetch_add(1, std::memory_order_relaxed);
}
NpyData::~NpyData() {
  if (state_ && state_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state_;
}

int64_t NpyData::numobs() const { return state_->whole[0]; }
Shape NpyData::shape() const { return state_->one; }
DType NpyData::dtype() const { return state_->header.type; }

Array NpyData::getobs(std::span<const int64_t> at) const {
  const State& state = *state_;
  for (int64_t i : at) {
    if (i >= 0 && i < numobs()) continue;
    throw Error(ErrorKind::argument, "getobs: an observation must be below their number; got " + std::to_string(i) +
                                         " of " + std::to_string(numobs()) + "; count from 0");
  }
  std::vector<int64_t> sizes(state.one.begin(), state.one.end());
  sizes.push_back(static_cast<int64_t>(at.size()));
  Array made = fresh_leaf(dtype(), Shape(std::span<const int64_t>(sizes)));
  const size_t each = bytes_of(dtype(), state.one);
  std::vector<uint64_t> rows = words_for(each);
  auto* target = static_cast<unsigned char*>(made.node()->data());
  for (size_t k = 0; each > 0 && k < at.size(); ++k) state.read_one(at[k], target + k * each, rows);
  check_bools(target, state.header, each * at.size(), state.bytes);
  return made;
}

void detail::check_same_observations(std::span<const NpyData> files) {
  for (const NpyData& file : files) {
    if (file.numobs() == files[0].numobs()) continue;
    throw Error(ErrorKind::shape, "npy_data: the files must have as many observations; got " +
                                      std::to_string(files[0].numobs()) + " and " + std::to_string(file.numobs()) +
                                      "; write them together");
  }
}

}  // namespace rosin
