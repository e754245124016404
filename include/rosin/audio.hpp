// Sound: WAV files as arrays, spectrograms and their mel scale. Read first: fft.hpp (stft).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/fft.hpp>

namespace rosin {

/// What a microphone heard.
struct Sound {
  Array samples;  // (time, channels), Float32 in [-1, 1]
  int64_t sample_rate = 16000;
};
/// A WAV file: whole numbers of 8, 16, 24 or 32 bits, which are divided by 2^7 ... 2^31, or floats of 32 or 64. Error
/// (io): not such a file, or a damaged one.
ROSIN_API Sound read_wav(const std::string& path);
ROSIN_API Sound decode_wav(std::span<const uint8_t> bytes);
/// Samples (time) or (time, channels) as whole numbers of 16 bits, rounded and limited to [-1, 1), or, with 32, as
/// floats. Errors: argument (other bits, more than 65535 channels), io.
ROSIN_API void write_wav(const std::string& path, const Sound& sound, int bits = 16);
ROSIN_API std::vector<uint8_t> encode_wav(const Sound& sound, int bits = 16);

/// |stft(x)|^power: (n_fft / 2 + 1, pieces, batch...) of x (time, batch...). Source: NNlib.spectrogram.
ROSIN_API Array spectrogram(const Array& x, const StftOptions& options = {}, double power = 2);

struct MelOptions {
  int64_t n_mels = 80;
  int64_t sample_rate = 16000;
  double fmin = 0;
  double fmax = 0;  // 0: half of the sample rate
};
/// Triangles between frequencies that are evenly spaced in mel, 2595 log10(1 + hertz / 700): Float32 (n_freqs, n_mels),
/// where n_freqs frequencies go from 0 to half of the sample rate. Error (argument): a size below 1, fmin >= fmax.
/// Sources: NNlib.melscale_filterbanks; torchaudio's melscale_fbanks (HTK, no norm).
ROSIN_API Array melscale_filterbanks(int64_t n_freqs, const MelOptions& options = {});
/// The logarithm of the mel spectrogram of x (time, batch...), of what is at least `least`: (n_mels, pieces, batch...).
ROSIN_API Array log_mel_spectrogram(const Array& x, const StftOptions& pieces = {}, const MelOptions& options = {},
                                    double least = 1e-10);

}  // namespace rosin
