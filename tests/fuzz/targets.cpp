// Each target reads a file as a user would, in every way that the library has.
#include "targets.hpp"

#include <algorithm>

#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/dense.hpp>
#include <rosin/error.hpp>
#include <rosin/image.hpp>
#include <rosin/io.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/npy.hpp>
#include <rosin/onnx.hpp>

#include "base/input_file.hpp"
#include "data/idx_file.hpp"
#include "devices/toml_text.hpp"
#include "training.hpp"

namespace rosin::fuzz {
namespace {

/// Runs f; an Error that tells of the file is what a reader should do with a bad one.
template <class F> void refused_or(F f) {
  try {
    f();
  } catch (const Error& error) {
    const ErrorKind kind = error.kind();
    const bool tells =
        kind == ErrorKind::io || kind == ErrorKind::dtype || kind == ErrorKind::shape || kind == ErrorKind::argument;
    if (!tells) throw;
  }
}

void read_arrays(const std::string& path) {
  refused_or([&] { list_file(path); });
  refused_or([&] { load(path); });
}

void read_model(const std::string& path) {
  read_arrays(path);
  // Layers of the seeds and of real files, so that what follows from a fitting name is tried too.
  static Chain convolution(Conv({3, 3}, 1, 2), BatchNorm(2), Dense(4, 3));
  static Dense line(13, 1);
  static Chain network(Dense(3, 64), Dense(64, 1));
  refused_or([&] { load(path, convolution, {.strict = false}); });
  refused_or([&] { load(path, line); });
  refused_or([&] { load(path, network); });
}

/// Of files whose arrays may have PyTorch's names.
void read_torch_model(const std::string& path) {
  read_model(path);
  static Chain convolution(Conv({3, 3}, 1, 2), BatchNorm(2), Dense(4, 3));
  refused_or([&] { load(path, convolution, {.strict = false, .names = torch}); });
}

void read_checkpoint(const std::string& path) {
  Training training;
  refused_or([&] { training.checkpoint.load(path); });
}

void read_npy(const std::string& path) {
  read_arrays(path);
  refused_or([&] {
    const NpyData data(path);
    const int64_t few = std::min<int64_t>(data.numobs(), 2);
    if (few == 0) return;
    const int64_t at[] = {0, data.numobs() - 1};
    data.getobs({at, static_cast<size_t>(few)});
  });
}

void read_onnx(const std::string& path) {
  refused_or([&] { onnx::list_file(path); });
  refused_or([&] { onnx::load(path); });
}

void read_toml(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path);
  const std::string text(bytes.begin(), bytes.end());
  refused_or([&] { toml_entries(path, text); });
  refused_or([&] { with_toml_value(path, text, "rosin", "gpu_backend", "CUDA"); });
  refused_or([&] { with_toml_value(path, text, "rosin", "gpu_backend", std::nullopt); });
}

void read_idx(const std::string& path) {
  refused_or([&] { read_idx_file(path); });
}

void read_picture(const std::string& path) {
  refused_or([&] { read_image(path); });
  refused_or([&] { read_image(path, {.channels = 3}); });
}

constexpr uint64_t mebi = 1 << 20;
constexpr uint64_t deflated = 1032;  // what deflate makes of a byte at most

constexpr Target table[] = {
    {"safetensors", "safetensors", read_torch_model, nullptr,
     [](const std::string& to) { write_models(to, "safetensors"); }, mebi, 400},
    {"checkpoint", "safetensors", read_checkpoint, nullptr, write_checkpoint_seeds, mebi, 400},
    {"bson", "bson", read_model, nullptr, [](const std::string& to) { write_models(to, "bson"); }, mebi, 400},
    {"jld2", "jld2", read_model, repair_hdf5, [](const std::string& to) { write_models(to, "jld2"); }, mebi,
     3 * deflated},
    {"npy", "npy", read_npy, nullptr, write_npy_seeds, mebi, 8},
    {"npz", "npz", read_model, repair_zip, [](const std::string& to) { write_models(to, "npz"); }, mebi, 3 * deflated},
    {"pt", "pt", read_torch_model, repair_zip, write_torch_seeds, mebi, 3 * deflated},
    {"onnx", "onnx", read_onnx, nullptr, write_onnx_seeds, 64 * mebi, 400},
    {"toml", "toml", read_toml, nullptr, write_toml_seeds, mebi, 4000},
    {"idx", "idx", read_idx, nullptr, write_idx_seeds, 4 * mebi, 3 * deflated},
    // A bit of a palette becomes four bytes, once as pixels and once as an array.
    {"image", "image", read_picture, repair_png, write_image_seeds, 4 * mebi, 2 * 33 * deflated},
};

}  // namespace

std::span<const Target> targets() { return table; }

}  // namespace rosin::fuzz
