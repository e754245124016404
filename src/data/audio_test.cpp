// Sound: files against Python's wave module, spectrograms against torch.stft and the mel formula in NumPy.
#include <rosin/audio.hpp>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;

/// As Python's wave module writes (0, -2^23), (2^22, 1): two channels of 24 bits.
std::vector<uint8_t> python_file() {
  return {82,  73,  70, 70, 48, 0, 0,  0, 87,  65, 86,  69, 102, 109, 116, 32, 16, 0, 0, 0, 1, 0,   2, 0, 64, 31, 0, 0,
          128, 187, 0,  0,  6,  0, 24, 0, 100, 97, 116, 97, 12,  0,   0,   0,  0,  0, 0, 0, 0, 128, 0, 0, 64, 1,  0, 0};
}

TEST(Wav, ReadsWhatPythonWrites) {
  const Sound sound = decode_wav(python_file());
  EXPECT_EQ(sound.sample_rate, 8000);
  EXPECT_EQ(sound.samples.shape(), (Shape{2, 2}));
  EXPECT_EQ(sound.samples.to_vector(), (std::vector<float>{0, 0.5f, -1, 0x1p-23f}));
}

TEST(Wav, ComesBackAsItWasWritten) {
  const Sound sound{Array({0.0f, 0.5f, -1.0f, 2.0f, 0x1p-15f, -0.25f}, {3, 2}), 22050};
  const std::string file = ::testing::TempDir() + "sound.wav";
  write_wav(file, sound, 32);
  EXPECT_EQ(read_wav(file).samples.to_vector(), sound.samples.to_vector());
  write_wav(file, sound);
  const Sound again = read_wav(file);
  EXPECT_EQ(again.samples.to_vector(), (std::vector<float>{0, 0.5f, -1, 32767.0f / 32768, 0x1p-15f, -0.25f}));
  EXPECT_EQ(again.sample_rate, 22050);
  EXPECT_EQ(decode_wav(encode_wav({arange(3) * 0.25, 8000})).samples.shape(), (Shape{3, 1}));
}

TEST(Wav, DamagedFilesAreErrors) {
  const std::vector<uint8_t> whole = python_file();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of([&] { decode_wav(std::span(whole).first(size)); }, ErrorKind::io), "");
  }
  std::vector<uint8_t> strange = whole;
  strange[34] = 12;
  EXPECT_EQ(
      error_of([&] { decode_wav(strange); }),
      "read_wav: the sound has samples of kind 1 with 12 bits, which are neither whole numbers nor floats; convert "
      "it");
  EXPECT_EQ(error_of(
                [&] {
                  encode_wav({zeros({2, 2, 2})});
                },
                ErrorKind::argument),
            "write_wav: samples are (time) or (time, channels), of 16 or 32 bits; got (2, 2, 2) with 16 bits; reshape "
            "them");
}

TEST(Mel, BanksAreTriangles) {
  const MelOptions options{.n_mels = 4, .sample_rate = 8000, .fmin = 100};
  expect_near(melscale_filterbanks(9, options),
              {0,         0.8760725, 0, 0, 0, 0, 0, 0,         0,         0,         0.1239275, 0.8904831,
               0.1661598, 0,         0, 0, 0, 0, 0, 0,         0.1095169, 0.8338402, 0.6082943, 0.09998159,
               0,         0,         0, 0, 0, 0, 0, 0.3917057, 0.9000184, 0.7134431, 0.3567216, 0},
              1e-6);
  EXPECT_EQ(error_of([] { melscale_filterbanks(9, {.fmin = 9000}); }, ErrorKind::argument),
            "melscale_filterbanks: there are 2 frequencies or more, a mel or more, and fmin is below fmax; got 9 "
            "frequencies and 80 mels; lower fmin");
}

TEST(Mel, SpectrogramsAreTorchs) {
  const Array x = sin(cast(arange(40), Float32) * 0.7);
  const StftOptions pieces{.n_fft = 16, .hop_length = 8, .window = hann_window(16)};
  const Array power = spectrogram(x, pieces);
  ASSERT_EQ(power.shape(), (Shape{9, 6}));
  expect_near(power(slice(0, 4), 1), {0.0682564, 7.068738, 15.0262, 1.878078}, 1e-4);
  expect_near(square(spectrogram(x, pieces, 1))(slice(0, 4), 2), {0.1642255, 6.815785, 15.16187, 1.856086}, 1e-4);
  const MelOptions options{.n_mels = 4, .sample_rate = 8000, .fmin = 100};
  expect_near(log_mel_spectrogram(x, pieces, options)(slice(), slice(1, 4)),
              {1.823375, 2.678872, 1.168445, -5.487239, 1.786935, 2.684745, 1.16722, -5.582334, 1.798199, 2.682956,
               1.167594, -5.552341},
              2e-3);
  layer_testing::check_function_gradient(
      [&](const Array& a) {
        return log_mel_spectrogram(a, {.n_fft = 16, .hop_length = 8, .window = cast(hann_window(16), Float64)},
                                   options);
      },
      x, "log_mel_spectrogram");
}

}  // namespace
}  // namespace rosin
