// gzip through zlib's stream interface, which tells truncated data from complete data. Read next: idx_file.cpp.
#include "data/gzip.hpp"

#include <rosin/error.hpp>

#ifdef ROSIN_HAVE_ZLIB
#include <zlib.h>

#include <algorithm>
#include <limits>
#endif

namespace rosin {

bool looks_like_gzip(const std::vector<uint8_t>& bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

#ifdef ROSIN_HAVE_ZLIB

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::io, "read_idx: '" + path + "' " + why + "; fetch the file again");
}

struct Stream : z_stream {
  Stream() : z_stream() {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(this); }
};

constexpr std::size_t piece = std::size_t{1} << 20;

}  // namespace

std::vector<uint8_t> unpack_gzip(const std::vector<uint8_t>& packed, std::size_t limit, const std::string& path) {
  Stream stream;
  const int gzip_only = MAX_WBITS + 16;
  if (inflateInit2(&stream, gzip_only) != Z_OK) throw Error(ErrorKind::memory, "read_idx: zlib could not start");
  std::vector<uint8_t> out;  // `had` bytes and room for more: a member may be empty, and room costs time
  std::size_t taken = 0, had = 0;
  while (had <= limit) {
    if (out.size() == had) out.resize(had + piece);
    const std::size_t room = out.size() - had;
    const std::size_t given = std::min<std::size_t>(packed.size() - taken, std::numeric_limits<uInt>::max());
    stream.next_in = const_cast<Bytef*>(packed.data() + taken);  // zlib reads only, its type does not say so
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = out.data() + had;
    stream.avail_out = static_cast<uInt>(room);
    const int code = inflate(&stream, Z_NO_FLUSH);
    taken += given - stream.avail_in;
    had += room - stream.avail_out;
    if (code == Z_STREAM_END) {
      if (taken == packed.size()) break;
      if (inflateReset(&stream) != Z_OK) fail(path, "cannot be unpacked");  // the next member of the file
    } else if (code == Z_MEM_ERROR) {
      throw Error(ErrorKind::memory, "read_idx: no memory to unpack '" + path + "'");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      fail(path, "is damaged (gzip: " + std::string(stream.msg == nullptr ? "bad data" : stream.msg) + ")");
    } else if (taken == packed.size() && stream.avail_out > 0) {
      fail(path, "is truncated: its gzip data ends after " + std::to_string(packed.size()) + " bytes, too early");
    }
  }
  out.resize(had);
  return out;
}

#else

std::vector<uint8_t> unpack_gzip(const std::vector<uint8_t>&, std::size_t, const std::string& path) {
  throw Error(ErrorKind::io, "read_idx: '" + path +
                                 "' is compressed and this rosin was built without zlib; unpack it with gunzip, or "
                                 "install zlib1g-dev and build again");
}

#endif

}  // namespace rosin
