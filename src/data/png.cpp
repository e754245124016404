// PNG by libpng. It leaves by longjmp, so what it calls back and what calls it there has no destructors to run.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <rosin/error.hpp>

#include "data/pixels.hpp"

#ifdef ROSIN_HAVE_PNG
#include <png.h>
#endif

namespace rosin {

#ifdef ROSIN_HAVE_PNG

namespace {

constexpr size_t text_room = 200;
constexpr uint64_t deflated = 1032;                // what deflate makes of a byte at most
constexpr png_alloc_size_t chunk_room = 1u << 20;  // for what a file has beside its pixels
constexpr png_uint_32 longest_side = 0x7fffffff;

/// Steps of libpng, and what it said when one failed.
class Session {
 public:
  explicit Session(bool reads) : reads_(reads) {
    png_ = reads ? png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore)
                 : png_create_write_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore);
    if (png_) info_ = png_create_info_struct(png_);
    if (info_) return;
    end();
    throw Error(ErrorKind::memory, "read_image: libpng could not start");
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { end(); }

  /// Whether f(png, info) came to its end. f makes nothing that must be destroyed.
  template <class F> bool runs(const F& f) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    f(png_, info_);
    return true;
  }
  const char* text() const noexcept { return text_; }

 private:
  static void fail(png_structp png, png_const_charp text) {
    std::snprintf(static_cast<Session*>(png_get_error_ptr(png))->text_, text_room, "%s", text);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  void end() {
    if (reads_) png_destroy_read_struct(&png_, &info_, nullptr);
    else png_destroy_write_struct(&png_, &info_);
  }

  bool reads_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char text_[text_room] = "";
};

struct Source {
  const uint8_t* next;
  size_t left;
};

void read_bytes(png_structp png, png_bytep target, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the data ends too early");
  std::memcpy(target, source->next, count);
  source->next += count;
  source->left -= count;
}

struct Header {
  int64_t width, height;
  int channels;
  uint64_t packed_row;  // bytes before palettes and bits are spread out
};

void read_header(png_structp png, png_infop info, Source& source, Header& header) {
  png_set_read_fn(png, &source, read_bytes);
  png_set_user_limits(png, longest_side, longest_side);
  png_set_chunk_malloc_max(png, chunk_room);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  header.packed_row = png_get_rowbytes(png, info);
  header.width = png_get_image_width(png, info);
  header.height = png_get_image_height(png, info);
}

/// All kinds become 8 bits of grey or colours, with alpha where the file has any. Takes memory for rows.
void start_rows(png_structp png, png_infop info, Header& header) {
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  header.channels = png_get_channels(png, info);
}

}  // namespace

Pixels read_png(const ImageFile& file) {
  Session session(true);
  Source source{file.bytes.data(), file.bytes.size()};
  Header header{};
  const auto damaged = [&] { refuse_image(file, std::string("is damaged (PNG: ") + session.text() + ")"); };
  if (!session.runs([&](png_structp png, png_infop info) { read_header(png, info, source, header); })) damaged();
  Pixels pixels{header.width, header.height, 0, {}};
  const uint64_t rows = file.bytes.size() * deflated / (header.packed_row + 1);
  check_size(pixels, file, rows >= static_cast<uint64_t>(header.height) ? UINT64_MAX : 0);
  if (!session.runs([&](png_structp png, png_infop info) { start_rows(png, info, header); })) damaged();
  pixels.channels = header.channels;
  reserve_pixels(pixels, file, UINT64_MAX);
  std::vector<png_bytep> at(static_cast<size_t>(header.height));
  for (size_t row = 0; row < at.size(); ++row) at[row] = pixels.bytes.data() + row * pixels.row_bytes();
  const auto read_rows = [&](png_structp png, png_infop) {
    png_read_image(png, at.data());
    png_read_end(png, nullptr);
  };
  if (!session.runs(read_rows)) damaged();
  return pixels;
}

namespace {

struct Sink {
  std::vector<uint8_t> bytes;
  bool full = false;
};

void write_bytes(png_structp png, png_bytep bytes, size_t count) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  try {
    sink->bytes.insert(sink->bytes.end(), bytes, bytes + count);
  } catch (...) {
    sink->full = true;
  }
  if (sink->full) png_error(png, "no memory");
}

int colour_type(int channels) {
  constexpr int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                           PNG_COLOR_TYPE_RGB_ALPHA};
  return types[channels - 1];
}

}  // namespace

std::vector<uint8_t> png_bytes(const Pixels& pixels) {
  Session session(false);
  Sink sink;
  const auto write = [&](png_structp png, png_infop info) {
    png_set_write_fn(png, &sink, write_bytes, nullptr);
    png_set_user_limits(png, longest_side, longest_side);
    png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height), 8,
                 colour_type(pixels.channels), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int64_t row = 0; row < pixels.height; ++row) {
      png_write_row(png, pixels.bytes.data() + static_cast<size_t>(row) * pixels.row_bytes());
    }
    png_write_end(png, info);
  };
  if (!session.runs(write)) {
    throw Error(sink.full ? ErrorKind::memory : ErrorKind::argument,
                std::string("encode_png: libpng could not write the picture; ") + session.text());
  }
  return std::move(sink.bytes);
}

#else

Pixels read_png(const ImageFile& file) {
  refuse_image(file, "is a PNG file and this rosin was built without libpng; install libpng-dev and build again");
}

std::vector<uint8_t> png_bytes(const Pixels&) {
  throw Error(ErrorKind::io,
              "encode_png: this rosin was built without libpng; install libpng-dev and build again, or save as npy");
}

#endif

}  // namespace rosin
