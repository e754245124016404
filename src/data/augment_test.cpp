// Augmentations, judged by torchvision (tests/oracles/augment.txt); what is drawn by what it must keep.
#include <rosin/augment.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/data.hpp>
#include <rosin/device.hpp>
#include <rosin/diagnostics.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loader.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/onehot.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/oracle_reader.hpp"

namespace rosin {
namespace {

using oracles::OracleArray;
using oracles::OracleCase;

PixelMode mode_of(const OracleCase& found) {
  return found.attributes.at("mode") == "nearest" ? PixelMode::nearest : PixelMode::bilinear;
}

Array called(const OracleCase& found, const Array& x) {
  const auto floats = [&](const char* key) {
    const std::vector<double> numbers = found.numbers(key);
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  if (found.op == "normalise") return normalise_channels(x, floats("mean"), floats("deviation"));
  if (found.op == "resize") {
    return resize(x, found.integers("width")[0], found.integers("height")[0], mode_of(found));
  }
  if (found.op == "affine") {
    const std::vector<double> move = found.numbers("move"), shear = found.numbers("shear");
    return affine(x, {.angle = found.number("angle", 0),
                      .move_x = move[0],
                      .move_y = move[1],
                      .scale = found.number("scale", 1),
                      .shear_x = shear[0],
                      .shear_y = shear[1],
                      .mode = mode_of(found)});
  }
  const double factor = found.number("factor", 0);
  if (found.op == "brightness") return adjust_brightness(x, factor);
  if (found.op == "contrast") return adjust_contrast(x, factor);
  return found.op == "saturation" ? adjust_saturation(x, factor) : adjust_hue(x, factor);
}

void expect_matches(const OracleArray& want, const Array& got, const oracles::OracleTolerance& tolerance) {
  ASSERT_EQ(to_string(got.shape()), to_string(Shape(want.shape)));
  const std::vector<double> values = got.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(oracles::matches(tolerance, want.dtype, want.values[i], values[i]))
        << want.role << " at " << i << ": " << values[i] << ", not " << want.values[i];
  }
}

TEST(Augment, MovesAndColoursAsTorchvisionDoes) {
  int cases = 0;
  for (const OracleCase& found : oracles::read_oracles(oracles::oracle_path("augment.txt"))) {
    SCOPED_TRACE(found.op + " in line " + std::to_string(found.line));
    const Array x(found.inputs[0].values, Shape(found.inputs[0].shape));
    const Array cotangent(found.cotangents[0].values, Shape(found.cotangents[0].shape));
    expect_matches(found.outputs[0], called(found, x), found.tolerance);
    const Array g = gradient([&](const Array& v) { return sum(cotangent * called(found, v)); }, x);
    expect_matches(*found.gradient_of(0), g, found.gradient_tolerance);
    ++cases;
  }
  EXPECT_GE(cases, 28);
}

TEST(Augment, TakesOptionsOfEachPicture) {
  const Array x = rand({5, 5, 1, 2});
  const Array both = affine(x, {.angle = Array({0.0f, 180.0f}, {2})});
  EXPECT_TRUE(allclose(slice(both, 3, 0, 1), slice(x, 3, 0, 1)));
  EXPECT_TRUE(allclose(slice(both, 3, 1, 2), flip(slice(x, 3, 1, 2), {0, 1}), {.atol = 1e-5}));
  EXPECT_EQ(error_of([&] { affine(x, {.angle = zeros({3})}); }, ErrorKind::shape),
            "affine: an option is a number or has one for each of the 2 pictures; got (3)");
  EXPECT_EQ(
      error_of(
          [&] {
            affine(zeros({5, 5}), {});
          },
          ErrorKind::shape),
      "affine: pictures are (width, height, channels, batch); got (5, 5); write unsqueeze(x, -1) for one picture");
  EXPECT_EQ(error_of([&] { resize(cast(x, UInt8), 2, 2); }, ErrorKind::dtype),
            "resize: pictures are floating point; got UInt8; write cast(x, Float32) / 255 for bytes");
}

/// Pixel (i, j) of all pictures is 10 * i + j + 1.
Array numbered(int64_t width, int64_t height, int64_t batch) {
  const Array one = reshape(10 * arange(width), {width, 1, 1, 1}) + reshape(arange(height), {1, height, 1, 1}) + 1;
  return expand(cast(one, Float32), {width, height, 1, batch});
}

TEST(Augment, CropsArePartsOfThePaddedPicture) {
  Rng rng(3);
  const Array x = numbered(5, 4, 40), padded = pad(x, {{2, 2}, {2, 2}});
  const Array parts = random_crop(rng, x, 4, 3, 2);
  ASSERT_EQ(parts.shape(), (Shape{4, 3, 1, 40}));
  std::vector<int> seen(36);
  for (int64_t n = 0; n < 40; ++n) {
    int found = -1;
    for (int64_t at = 0; at < 36; ++at) {
      const Array part =
          index(padded, {slice(at / 6, at / 6 + 4), slice(at % 6, at % 6 + 3), slice(), slice(n, n + 1)});
      if (all(part == slice(parts, 3, n, n + 1)).item<bool>()) found = static_cast<int>(at);
    }
    ASSERT_GE(found, 0);
    ++seen[static_cast<size_t>(found)];
  }
  EXPECT_GT(36 - std::count(seen.begin(), seen.end(), 0), 15);
  EXPECT_TRUE(same(x, x) && all(random_crop(x, 5, 4) == x).item<bool>());
  EXPECT_EQ(error_of([&] { random_crop(x, 6, 4); }, ErrorKind::shape),
            "random_crop: the part is within the padded picture; got 6x4 of (5, 4, 1, 40) with the padding 0");
}

TEST(Augment, FlipsAreDrawnForEachPicture) {
  Rng rng(5);
  const Array x = numbered(3, 2, 400);
  for (const int dim : {0, 1}) {
    const Array y = random_flip(rng, x, 0.25, dim);
    const Array flipped = all(y == flip(x, dim), {0, 1, 2}), kept = all(y == x, {0, 1, 2});
    EXPECT_TRUE(all(flipped ^ kept).item<bool>());
    EXPECT_NEAR(mean(cast(flipped, Float32)).item(), 0.25, 0.1);
  }
}

TEST(Augment, ErasesOneRectangleOfTheStatedSize) {
  Rng rng(9);
  const Array x = ones({20, 30, 2, 300});
  const Array gone = random_erasing(rng, x, {.p = 0.5, .area = {0.1, 0.2}, .ratio = {0.5, 2}, .value = 7}) == 7;
  const Array across = sum(cast(any(gone, {1, 2}), Float32), {0}), down = sum(cast(any(gone, {0, 2}), Float32), {1});
  EXPECT_TRUE(all(sum(cast(gone, Float32), {0, 1, 2}) == 2 * across * down).item<bool>());
  const Array areas = across * down / 600, hit = areas > 0;
  EXPECT_NEAR(mean(cast(hit, Float32)).item(), 0.5, 0.1);
  EXPECT_TRUE(all((areas == 0) | ((areas > 0.08) & (areas < 0.22))).item<bool>());
}

TEST(Augment, JittersColoursWithinTheBounds) {
  Rng rng(2);
  const Array x = full({2, 2, 3, 200}, 0.5f);
  const Array bright = slice(reshape(colour_jitter(rng, x, {.brightness = 0.4}), {12, 200}), 0, 0, 1);
  EXPECT_GE(minimum(bright).item(), 0.3f - 1e-6);
  EXPECT_LE(maximum(bright).item(), 0.7f + 1e-6);
  EXPECT_GT(stddev(bright).item(), 0.08);
  EXPECT_EQ(colour_jitter(rng, x, {.brightness = 0.1, .contrast = 0.1, .saturation = 0.1, .hue = 0.1}).shape(),
            x.shape());
  EXPECT_EQ(error_of([&] { colour_jitter(rng, x, {.hue = 0.7}); }, ErrorKind::argument),
            "colour_jitter: strengths are not negative, hue at most 0.5; got 0.700000");
}

/// Picture n is n all over and has class n, so that a mixed picture is the mean of its classes.
void expect_mixed(const std::pair<Array, Array>& mixed, int64_t batch) {
  const auto& [x, y] = mixed;
  EXPECT_TRUE(allclose(sum(y, {0}), ones({1, batch})));
  const Array classes = sum(y * reshape(cast(arange(batch), Float32), {batch, 1}), {0});
  EXPECT_TRUE(allclose(reshape(mean(x, {0, 1, 2}), {batch}), reshape(classes, {batch}), {.rtol = 1e-4, .atol = 1e-4}));
}

TEST(Augment, MixesPicturesAndTargetsByTheSameShares) {
  const int64_t batch = 6;
  const Array x = expand(reshape(cast(arange(batch), Float32), {1, 1, 1, batch}), {8, 6, 2, batch});
  const Array y = onehotbatch(arange(batch), batch);
  Rng rng(4);
  bool moved = false;
  for (int i = 0; i < 5; ++i) {
    expect_mixed(mixup(rng, x, y, 0.8), batch);
    const auto cut = cutmix(rng, x, y);
    expect_mixed(cut, batch);
    EXPECT_TRUE(all(cut.first == round(cut.first)).item<bool>());
    moved = moved || !all(cut.first == x).item<bool>();
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(error_of([&] { mixup(x, y, 0); }, ErrorKind::argument), "mixup: alpha is above 0; got 0.000000");
  EXPECT_EQ(error_of(
                [&] {
                  cutmix(x, zeros({2, 3}));
                },
                ErrorKind::shape),
            "cutmix: targets are (classes, batch), as many as pictures; got (2, 3) for (8, 6, 2, 6); write "
            "onehotbatch(labels, classes)");
}

TEST(Augment, GivesTheSameOnADevice) {
  if (!functional("reference")) GTEST_SKIP() << why_not("reference");
  const Device device = get_device("reference", 0);
  const auto all_of = [](const Array& x, const Array& y) {
    Rng rng(12);
    Array z = resize(random_affine(rng, random_flip(rng, random_crop(rng, x, 6, 6, 1)), {.degrees = 20}), 7, 5);
    z = colour_jitter(rng, z, {.brightness = 0.2, .contrast = 0.2, .saturation = 0.2, .hue = 0.2});
    z = normalise_channels(random_erasing(rng, z), {0.5f, 0.5f, 0.5f}, {0.2f, 0.3f, 0.4f});
    return cutmix(rng, mixup(rng, z, y).first, y);
  };
  const Array x = rand({6, 6, 3, 4}), y = onehotbatch(arange(4), 4);
  const auto here = all_of(x, y), there = all_of(x | device, y | device);
  EXPECT_EQ(there.first.device(), device);
  EXPECT_TRUE(allclose(there.first | cpu, here.first, {.rtol = 1e-4, .atol = 1e-4}));
  EXPECT_TRUE(allclose(there.second | cpu, here.second, {.rtol = 1e-5}));
}

TEST(Augment, InALoaderDependsOnItsGeneratorAlone) {
  const Array x = rand({6, 6, 3, 10});
  const auto augmented = mapobs(
      [](const Array& batch) {
        return random_erasing(random_affine(random_flip(random_crop(batch, 6, 6, 1)),
                                            {.degrees = 10, .move = {0.1, 0.1}, .scale = {0.9, 1.1}, .shear = 5}));
      },
      x);
  const auto epoch = [&](int64_t workers) {
    std::vector<float> values;
    DataLoader loader(augmented, {.batchsize = 4, .num_workers = workers, .rng = Rng(8)});
    for (const Array& batch : loader) {
      const std::vector<float> one = batch.to_vector();
      values.insert(values.end(), one.begin(), one.end());
    }
    return values;
  };
  EXPECT_EQ(epoch(0), epoch(2));
}

}  // namespace
}  // namespace rosin
