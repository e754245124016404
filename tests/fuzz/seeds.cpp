// Small files of each kind to begin with, made by rosin's writers where there are any. Real ones come beside them from
// the folder that tools/fuzz.py is given.
#include <filesystem>
#include <fstream>

#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/npy.hpp>
#include <rosin/tied.hpp>

#include "../oracle_reader.hpp"
#include "io/torch_testing.hpp"
#include "onnx/file_testing.hpp"
#include "targets.hpp"
#include "training.hpp"

namespace rosin::fuzz {
namespace {

std::string name_in(const std::string& folder, int number, const char* extension) {
  return folder + "/" + std::to_string(number) + "." + extension;
}

void write_text(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

struct Ties {
  Array in = tied(ones({2}));
  Array out = in;
};

}  // namespace

void write_models(const std::string& folder, const char* extension) {
  const Chain model(Conv({3, 3}, 1, 2), BatchNorm(2), Dense(4, 3));
  const auto name = [&](int number) { return name_in(folder, number, extension); };
  save(name(1), model);
  save(name(2), {{"model", Dense(ones({1, 2}), false)}, {"step", 3}, {"rate", 0.5}, {"on", true}});
  save(name(3), {{"m", Ties()}, {"half", cast(ones({2, 3}), Float16)}, {"bytes", cast(ones({3}), UInt8)}});
  save(name(4), {{"x", zeros({0, 2})}, {"c", cast(ones({2}), ComplexF32)}, {"flags", ones({2}) > 0}});
  if (std::string(extension) == "npz") save(name(6), model, {.compress = true});
  else save(name(5), {{"note", "text"}, {"notes", std::vector<std::string>{"a", "b"}}});
}

void write_checkpoint_seeds(const std::string& folder) {
  Training training;
  Checkpoint at_first(name_in(folder, 1, "safetensors"), {{"model", training.model}, {"step", training.step}});
  at_first.save();
  std::filesystem::current_path(folder);
  training.checkpoint.save();
}

void write_npy_seeds(const std::string& folder) {
  int number = 0;
  for (const DType type : {Float32, Float16, Int8, UInt64, Bool, ComplexF64}) {
    save_npy(name_in(folder, ++number, "npy"), cast(reshape(arange(2), {1, 2}), type));
  }
  for (const char* text : {"{'descr': '>f4', 'fortran_order': True, 'shape': (2, 1), }",
                           "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }"}) {
    std::string header = text;
    header.resize(117, ' ');
    write_text(name_in(folder, ++number, "npy"), "\x93NUMPY\1" + std::string(1, '\0') + "\x76" + std::string(1, '\0') +
                                                     header + "\n" + std::string(8, '\1'));
  }
}

void write_torch_seeds(const std::string& folder) {
  using namespace testing;
  const std::string storage(40, '\1'), view = pickled_tensor("Float", "0", 10, 4, {2, 3}, {1, 2});
  write_torch_file(name_in(folder, 1, "pt"),
                   pickled_name("collections", "OrderedDict") + ")R(" + pickled_text("0.weight") + view +
                       pickled_text("0.bias") + pickled_tensor("Float", "0", 10, 0, {2}, {1}) + "u}b.",
                   {{"data/0", storage}});
  write_torch_file(name_in(folder, 2, "pt"),
                   "}q\1(" + pickled_text("model") + "](" + view + "Nh\1e" + pickled_text("epoch") + "K\5" +
                       pickled_text("on") + "\x88" + pickled_text("note") + pickled_text("text") + "u.",
                   {{"data/0", storage}}, "big");
  write_torch_file(name_in(folder, 3, "pt"), pickled_tensor("ComplexDouble", "0", 2, 0, {2, 2}, {0, 1}) + ".",
                   {{"data/0", std::string(32, '\1')}});
}

void write_onnx_seeds(const std::string& folder) {
  using namespace testing;
  write_text(name_in(folder, 1, "onnx"), small_network());
  write_text(name_in(folder, 2, "onnx"),
             model_file(node("ConstantOfShape", {"a"}, {"c"}) + node("Pad", {"c", "widths"}, {"p"}) +
                        node("Slice", {"p", "from", "to"}, {"s"}) + node("Expand", {"s", "from"}, {"e"}) +
                        node("Tile", {"e", "a"}, {"t"}) + node("Reshape", {"t", "flat"}, {"r"}) +
                        node("Add", {"x", "r"}, {"y"}) + integers("a", {2}, {2, 3}) + integers("from", {2}, {1, 1}) +
                        integers("to", {2}, {4, 4}) + integers("widths", {4}, {1, 1, 1, 1}) +
                        integers("flat", {1}, {-1}) + input("x", {1}) + output("y", {-1})));
}

void write_toml_seeds(const std::string& folder) {
  write_text(name_in(folder, 1, "toml"), "[rosin]\ngpu_backend = \"CUDA\" # a choice\n");
  write_text(name_in(folder, 2, "toml"), "a = 1\n[Flux]\ngpu_backend = 'AMDGPU'\n[rosin.deep]\nb = [1, {c = 2.5}]\n");
  write_text(name_in(folder, 3, "toml"),
             "rosin = {gpu_backend = \"\"\"x\"\"\", \"q\\u00e9\" = 1979-05-27T07:32:00Z}\n");
  write_text(name_in(folder, 4, "toml"), "[[a]]\nx.y = true\n[[a]]\nz = 0xff\r\n");
}

void write_idx_seeds(const std::string& folder) {
  const std::string head("\0\0\x08\2\0\0\0\2\0\0\0\3", 12), one("\0\0\x0d\1\0\0\0\2", 8);
  write_text(name_in(folder, 1, "idx"), head + "abcdef");
  write_text(name_in(folder, 2, "idx"), one + std::string(8, '\1'));
  // The first of them, by gzip.
  const unsigned char packed[] = {0x1f, 0x8b, 8,   0,   0,   0,    0,    0,    2,    3,  1, 18, 0, 237,
                                  255,  0,    0,   8,   2,   0,    0,    0,    2,    0,  0, 0,  3, 'a',
                                  'b',  'c',  'd', 'e', 'f', 0x83, 0xda, 0x46, 0x2f, 18, 0, 0,  0};
  write_text(name_in(folder, 3, "idx"), {packed, packed + sizeof packed});
}

/// The files of tests/oracles/images.txt.
void write_image_seeds(const std::string& folder) {
  int number = 0;
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("images.txt"))) {
    if (found.attributes.at("channels") != "0") continue;
    const std::vector<int64_t>& bytes = found.inputs[0].integers;
    std::string file;
    for (const int64_t byte : bytes) file.push_back(static_cast<char>(byte));
    write_text(name_in(folder, ++number, "image"), file);
  }
}

}  // namespace rosin::fuzz
