// JPEG by libjpeg(-turbo). It leaves by longjmp, so what is between has no destructors to run.
#include <csetjmp>
#include <cstdio>

#include <rosin/error.hpp>

#include "data/pixels.hpp"

#ifdef ROSIN_HAVE_JPEG
#include <jpeglib.h>

#include <jerror.h>
#endif

namespace rosin {

#ifdef ROSIN_HAVE_JPEG

namespace {

// A block of 64 pixels takes a bit at least, with half of the colours four times that; what arithmetic coding could do
// beyond is refused.
constexpr uint64_t pixels_of_byte = 1024;
constexpr int most_scans = 200;  // a scan without content costs a walk over all blocks

/// The state of a decoder, and what it said when it failed.
struct Decoder : jpeg_decompress_struct {
  jpeg_error_mgr errors;
  jpeg_progress_mgr monitor;
  std::jmp_buf out;
  char text[JMSG_LENGTH_MAX] = "";
  bool begun = false;

  Decoder() : jpeg_decompress_struct(), errors(), monitor() {}
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    if (begun) jpeg_destroy_decompress(this);
  }
};

[[noreturn]] void leave(j_common_ptr common) {
  auto* decoder = static_cast<Decoder*>(reinterpret_cast<jpeg_decompress_struct*>(common));
  common->err->format_message(common, decoder->text);
  std::longjmp(decoder->out, 1);
}

/// Warnings that mean lost pixels.
void hear(j_common_ptr common, int level) {
  if (level >= 0) return;
  switch (common->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC: leave(common);
    default: break;
  }
}

void count_scans(j_common_ptr common) {
  auto* decoder = static_cast<Decoder*>(reinterpret_cast<jpeg_decompress_struct*>(common));
  if (decoder->input_scan_number <= most_scans) return;
  std::snprintf(decoder->text, sizeof decoder->text, "more than %d scans", most_scans);
  std::longjmp(decoder->out, 1);
}

/// Whether f() came to its end. f makes nothing that must be destroyed.
template <class F> bool runs(Decoder& decoder, const F& f) {
  if (setjmp(decoder.out) != 0) return false;
  f();
  return true;
}

void read_header(Decoder& decoder, const ImageFile& file) {
  decoder.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = hear;
  jpeg_create_decompress(&decoder);
  decoder.begun = true;
  decoder.monitor.progress_monitor = count_scans;
  decoder.progress = &decoder.monitor;
  jpeg_mem_src(&decoder, file.bytes.data(), file.bytes.size());
  jpeg_read_header(&decoder, TRUE);
}

void read_rows(Decoder& decoder, Pixels& pixels) {
  decoder.out_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&decoder);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = pixels.bytes.data() + decoder.output_scanline * pixels.row_bytes();
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
}

}  // namespace

Pixels read_jpeg(const ImageFile& file) {
  Decoder decoder;
  const auto damaged = [&] { refuse_image(file, std::string("is damaged (JPEG: ") + decoder.text + ")"); };
  if (!runs(decoder, [&] { read_header(decoder, file); })) damaged();
  if (decoder.num_components > 3) {
    refuse_image(file, "has the four colours of print (CMYK); convert it to RGB, with ImageMagick say");
  }
  Pixels pixels{decoder.image_width, decoder.image_height, decoder.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3, {}};
  reserve_pixels(pixels, file, file.bytes.size() * pixels_of_byte);
  if (!runs(decoder, [&] { read_rows(decoder, pixels); })) damaged();
  return pixels;
}

#else

Pixels read_jpeg(const ImageFile& file) {
  refuse_image(file,
               "is a JPEG file and this rosin was built without libjpeg; install libjpeg62-turbo-dev and build again");
}

#endif

}  // namespace rosin
