// WAV files, spectrograms, the mel scale: see rosin/audio.hpp.
#include <rosin/audio.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "base/file.hpp"
#include "base/input_file.hpp"
#include "graph/context.hpp"

namespace rosin {
namespace {

/// The bytes of a file, and what it is called in messages.
struct WavFile {
  std::span<const uint8_t> bytes;
  std::string name;
};

[[noreturn]] void refuse_wav(const WavFile& file, const std::string& why) {
  throw Error(ErrorKind::io, "read_wav: " + file.name + " " + why);
}

uint64_t number_at(std::span<const uint8_t> bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

bool says(std::span<const uint8_t> bytes, size_t at, std::string_view mark) {
  return at + mark.size() <= bytes.size() && std::memcmp(bytes.data() + at, mark.data(), mark.size()) == 0;
}

/// How samples stand in a file.
struct WavForm {
  uint64_t kind = 0;  // 1: whole numbers, 3: floats
  uint64_t channels = 0, rate = 0, bits = 0;

  bool is_known() const {
    const bool whole = kind == 1 && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
    return channels > 0 && (whole || (kind == 3 && (bits == 32 || bits == 64)));
  }
};

WavForm form_of(std::span<const uint8_t> chunk) {
  WavForm form;
  if (chunk.size() < 16) return form;
  form = {number_at(chunk, 0, 2), number_at(chunk, 2, 2), number_at(chunk, 4, 4), number_at(chunk, 14, 2)};
  constexpr uint64_t extensible = 0xFFFE;
  if (form.kind == extensible && chunk.size() >= 26) form.kind = number_at(chunk, 24, 2);
  return form;
}

/// Bytes of 8 bits stand above 128, the others have a sign.
float sample_at(std::span<const uint8_t> bytes, size_t at, const WavForm& form) {
  const uint64_t number = number_at(bytes, at, form.bits / 8);
  if (form.kind == 3) {
    return form.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(number))
                           : static_cast<float>(std::bit_cast<double>(number));
  }
  if (form.bits == 8) return (static_cast<float>(number) - 128) / 128;
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(number) << (32 - form.bits));
  return static_cast<float>(static_cast<double>(shifted) * 0x1p-31);
}

Sound samples_of(std::span<const uint8_t> bytes, const WavForm& form) {
  const size_t size = form.bits / 8, count = bytes.size() / size / form.channels;
  auto values = detail::host_vector<float>("read_wav", static_cast<int64_t>(count * form.channels));
  for (size_t t = 0; t < count; ++t) {
    for (size_t c = 0; c < form.channels; ++c) {
      values[c * count + t] = sample_at(bytes, (t * form.channels + c) * size, form);
    }
  }
  const Shape shape = {static_cast<int64_t>(count), static_cast<int64_t>(form.channels)};
  return {Array::borrow(std::move(values), shape), static_cast<int64_t>(form.rate)};
}

Sound decoded(const WavFile& file) {
  const std::span<const uint8_t> bytes = file.bytes;
  if (!says(bytes, 0, "RIFF") || !says(bytes, 8, "WAVE")) {
    refuse_wav(file, "is no WAV file by its first bytes; convert it");
  }
  WavForm form;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t size = number_at(bytes, at + 4, 4), begin = at + 8, left = bytes.size() - begin;
    if (says(bytes, at, "fmt ")) form = form_of(bytes.subspan(begin, std::min(size, left)));
    if (says(bytes, at, "data")) {
      if (!form.is_known()) {
        refuse_wav(file, "has samples of kind " + std::to_string(form.kind) + " with " + std::to_string(form.bits) +
                             " bits, which are neither whole numbers nor floats; convert it");
      }
      if (size > left && size < 0xFFFFFFFF) refuse_wav(file, "is truncated: its samples end early; fetch it again");
      return samples_of(bytes.subspan(begin, std::min(size, left)), form);
    }
    if (size > left) break;
    at = begin + size + size % 2;
  }
  refuse_wav(file, "has no samples; it is damaged or truncated");
}

void put(std::vector<uint8_t>& bytes, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put(std::vector<uint8_t>& bytes, std::string_view mark) { bytes.insert(bytes.end(), mark.begin(), mark.end()); }

void put_sample(std::vector<uint8_t>& bytes, float sample, int bits) {
  if (bits == 32) return put(bytes, std::bit_cast<uint32_t>(sample), 4);
  const double scaled = std::isnan(sample) ? 0 : std::clamp(std::round(sample * 32768.0), -32768.0, 32767.0);
  put(bytes, static_cast<uint16_t>(static_cast<int16_t>(scaled)), 2);
}

}  // namespace

Sound decode_wav(std::span<const uint8_t> bytes) { return decoded({bytes, "the sound"}); }

Sound read_wav(const std::string& path) {
  const InputFile file(path, "read_wav");
  auto bytes = detail::host_vector<uint8_t>("read_wav", static_cast<int64_t>(file.size()));
  file.read(0, bytes.data(), bytes.size());
  return decoded({bytes, path});
}

std::vector<uint8_t> encode_wav(const Sound& sound, int bits) {
  const Array& x = sound.samples;
  if ((bits != 16 && bits != 32) || x.is_nothing() || x.rank() < 1 || x.rank() > 2 ||
      (x.rank() == 2 && (x.size(1) < 1 || x.size(1) > 65535))) {
    throw Error(ErrorKind::argument, "write_wav: samples are (time) or (time, channels), of 16 or 32 bits; got " +
                                         (x.is_nothing() ? "nothing" : to_string(x.shape())) + " with " +
                                         std::to_string(bits) + " bits; reshape them");
  }
  const auto count = static_cast<size_t>(x.size(0)), channels = x.rank() == 2 ? static_cast<size_t>(x.size(1)) : 1;
  const size_t size = static_cast<size_t>(bits) / 8, total = count * channels * size;
  if (total > std::numeric_limits<uint32_t>::max() - 64) {
    throw Error(ErrorKind::argument, "write_wav: a file has less than 4 GiB; got " + std::to_string(total) +
                                         " bytes of samples; write several");
  }
  const std::vector<float> values = x.to_vector<float>();
  std::vector<uint8_t> bytes;
  put(bytes, "RIFF");
  put(bytes, 36 + total, 4);
  put(bytes, "WAVEfmt ");
  put(bytes, 16, 4);
  put(bytes, bits == 32 ? 3 : 1, 2);
  put(bytes, channels, 2);
  put(bytes, static_cast<uint64_t>(sound.sample_rate), 4);
  put(bytes, static_cast<uint64_t>(sound.sample_rate) * channels * size, 4);
  put(bytes, channels * size, 2);
  put(bytes, static_cast<uint64_t>(bits), 2);
  put(bytes, "data");
  put(bytes, total, 4);
  for (size_t t = 0; t < count; ++t) {
    for (size_t c = 0; c < channels; ++c) put_sample(bytes, values[c * count + t], bits);
  }
  return bytes;
}

void write_wav(const std::string& path, const Sound& sound, int bits) {
  const std::vector<uint8_t> bytes = encode_wav(sound, bits);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Array spectrogram(const Array& x, const StftOptions& options, double power) {
  const Array y = stft(x, options);
  const Array squares = square(real(y)) + square(imag(y));
  return power == 2 ? squares : pow(squares, power / 2);
}

Array melscale_filterbanks(int64_t n_freqs, const MelOptions& options) {
  const double top = static_cast<double>(options.sample_rate) / 2, fmax = options.fmax > 0 ? options.fmax : top;
  if (n_freqs < 2 || options.n_mels < 1 || !(options.fmin >= 0 && options.fmin < fmax)) {
    throw Error(ErrorKind::argument,
                "melscale_filterbanks: there are 2 frequencies or more, a mel or more, and fmin "
                "is below fmax; got " +
                    std::to_string(n_freqs) + " frequencies and " + std::to_string(options.n_mels) +
                    " mels; lower fmin");
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto hertz_at = [&](int64_t i) {
    const double step = (mel(fmax) - mel(options.fmin)) / static_cast<double>(options.n_mels + 1);
    return 700 * (std::pow(10.0, (mel(options.fmin) + step * static_cast<double>(i)) / 2595) - 1);
  };
  auto values = detail::host_vector<float>("melscale_filterbanks", n_freqs * options.n_mels);
  for (int64_t m = 0; m < options.n_mels; ++m) {
    const double low = hertz_at(m), middle = hertz_at(m + 1), high = hertz_at(m + 2);
    for (int64_t f = 0; f < n_freqs; ++f) {
      const double hertz = top * static_cast<double>(f) / static_cast<double>(n_freqs - 1);
      const double height = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      values[static_cast<size_t>(m * n_freqs + f)] = static_cast<float>(std::max(0.0, height));
    }
  }
  return Array::borrow(std::move(values), {n_freqs, options.n_mels});
}

Array log_mel_spectrogram(const Array& x, const StftOptions& pieces, const MelOptions& options, double least) {
  const Array power = spectrogram(x, pieces);
  const DeviceScope scope(*power.node());
  const Array banks = cast(melscale_filterbanks(power.size(0), options), power.dtype());
  return log(max(matmul(transpose(banks), power), least));
}

}  // namespace rosin
