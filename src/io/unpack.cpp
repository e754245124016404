// zlib's stream interface over a buffer of the file. Read next: zip.cpp, julia_arrays.cpp (the users).
#include "io/unpack.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>

#ifdef ROSIN_HAVE_ZLIB
#include <zlib.h>
#endif

namespace rosin {

#ifdef ROSIN_HAVE_ZLIB

namespace {

struct Stream : z_stream {
  Stream() : z_stream() {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(this); }
};

constexpr uint64_t piece = uint64_t{1} << 16;

/// A stream that packs into a vector, which grows as it needs to.
class Packing {
 public:
  Packing() {
    // As NumPy does: the usual level, no header.
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw Error(ErrorKind::memory, "save: no memory to pack an array; free some, or save without {.compress = true}");
    }
  }
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;
  ~Packing() { deflateEnd(&stream_); }

  void add(const void* bytes, uint64_t count, bool last) {
    const auto* next = static_cast<const unsigned char*>(bytes);
    do {
      const uint64_t part = std::min<uint64_t>(count, std::numeric_limits<uInt>::max());
      stream_.next_in = const_cast<Bytef*>(next);  // zlib reads only, its type does not say so
      stream_.avail_in = static_cast<uInt>(part);
      next += part;
      count -= part;
      run(last && count == 0 ? Z_FINISH : Z_NO_FLUSH);
    } while (count > 0);
  }
  std::vector<unsigned char> finish() { return std::move(packed_); }

 private:
  /// Until the input is taken, and with Z_FINISH until all is out.
  void run(int flush) {
    do {
      const size_t had = packed_.size();
      packed_.resize(had + piece);
      stream_.next_out = packed_.data() + had;
      stream_.avail_out = static_cast<uInt>(piece);
      deflate(&stream_, flush);
      packed_.resize(had + piece - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  std::vector<unsigned char> packed_;
};

}  // namespace

std::vector<unsigned char> pack_deflate(std::string_view head, const void* bytes, uint64_t count) {
  Packing packing;
  try {
    packing.add(head.data(), head.size(), false);
    packing.add(bytes, count, true);
  } catch (const std::bad_alloc&) {
    detail::throw_out_of_memory("save", static_cast<int64_t>(count), 1);
  }
  return packing.finish();
}

void unpack_deflate(const InputFile& file, uint64_t place, uint64_t packed, bool zlib, void* target, uint64_t bytes) {
  Stream stream;
  if (inflateInit2(&stream, zlib ? MAX_WBITS : -MAX_WBITS) != Z_OK) {
    throw Error(ErrorKind::memory, "load: no memory to unpack '" + file.path() + "'; free some");
  }
  const auto refuse = [&](const std::string& what) {
    refuse_at(file.path(), place, "compressed data must unpack to the bytes of its array", what);
  };
  std::vector<unsigned char> buffer(static_cast<size_t>(std::min(packed, piece)));
  auto* out = static_cast<unsigned char*>(target);
  unsigned char beyond[1];  // a stream that has more than it should is told from one that ends
  uint64_t taken = 0, given = 0;
  for (int code = Z_OK; code != Z_STREAM_END;) {
    if (stream.avail_in == 0 && taken < packed) {
      const uint64_t count = std::min(packed - taken, piece);
      file.read(place + taken, buffer.data(), static_cast<size_t>(count));
      taken += count;
      stream.next_in = buffer.data();
      stream.avail_in = static_cast<uInt>(count);
    }
    const uint64_t room = bytes - given;
    const uInt space = room == 0 ? 1 : static_cast<uInt>(std::min<uint64_t>(room, std::numeric_limits<uInt>::max()));
    stream.next_out = room == 0 ? beyond : out + given;
    stream.avail_out = space;
    code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) refuse("it is damaged or cut off");
    const uint64_t made = space - stream.avail_out;
    if (room == 0 && made > 0) refuse("it has more");
    given += made;
  }
  if (given != bytes) refuse("it has " + std::to_string(given) + " of " + std::to_string(bytes));
}

#else

std::vector<unsigned char> pack_deflate(std::string_view, const void*, uint64_t) {
  throw Error(ErrorKind::io,
              "save: this rosin was built without zlib and cannot compress; install zlib1g-dev and build "
              "again, or save without {.compress = true}");
}

void unpack_deflate(const InputFile& file, uint64_t, uint64_t, bool, void*, uint64_t) {
  throw Error(ErrorKind::io, "load: '" + file.path() +
                                 "' is compressed and this rosin was built without zlib; install zlib1g-dev and "
                                 "build again, or save it without compression");
}

#endif

void unpack_chunk(const InputFile& file, const JuliaArray& array, void* target) {
  unpack_deflate(file, array.place, array.packed, true, target, array.bytes);
  if (!array.shuffled) return;
  const size_t width = size_of(array.type), count = static_cast<size_t>(array.bytes) / width;
  std::vector<unsigned char> planes = detail::host_vector<unsigned char>("load", static_cast<int64_t>(array.bytes));
  std::memcpy(planes.data(), target, planes.size());
  auto* elements = static_cast<unsigned char*>(target);
  for (size_t plane = 0; plane < width; ++plane) {
    for (size_t i = 0; i < count; ++i) elements[i * width + plane] = planes[plane * count + i];
  }
}

}  // namespace rosin
