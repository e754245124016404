// What we write for JLD2, read by libhdf5's h5dump, by our own reader, and compared with what JLD2 wrote.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/complex.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/tied.hpp>

#include "io/python_testing.hpp"
#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

class Jld2Writing : public ScratchFolder {};

TEST_F(Jld2Writing, AModelComesBack) {
  Chain model(Conv({3, 3}, 1, 2, relu), BatchNorm(2), Dense(8, 3)), other = model;
  for (Array* x : {&model[0].get_if<Conv>()->weight, &model[2].get_if<Dense>()->weight}) *x = *x * 2 + 1;
  save(path("m.jld2"), model);
  load(path("m.jld2"), other);
  EXPECT_EQ(other[0].get_if<Conv>()->weight.to_vector(), model[0].get_if<Conv>()->weight.to_vector());
  EXPECT_EQ(other[2].get_if<Dense>()->weight.to_vector(), model[2].get_if<Dense>()->weight.to_vector());
  const SavedFile file = load(path("m.jld2"));
  EXPECT_EQ(file["model_state.layers.1.mean"].shape(), (Shape{2}));
}

TEST_F(Jld2Writing, EntriesOfEveryKindComeBack) {
  struct Ties {
    Array in = tied(ones({2}));
    Array out = in;
  } ties;
  const std::vector<std::string> words{"a", "", "long " + std::string(9000, 'x')};
  save(path("e.jld2"), {{"m", ties},
                        {"half", cast(ones({2, 3}), Float16)},
                        {"flags", ones({2}) > 0},
                        {"complex", cast(ones({2}), ComplexF64)},
                        {"bytes", cast(arange(3), UInt8)},
                        {"empty", zeros({0, 2})},
                        {"step", 12345678901},
                        {"rate", 0.5},
                        {"note", "text"},
                        {"words", words}});
  const SavedFile file = load(path("e.jld2"));
  EXPECT_TRUE(is_tied(file["m.in"]) && same(file["m.in"], file["m.out"]));
  EXPECT_EQ(file["half"].dtype(), Float16);
  EXPECT_EQ(file["half"].shape(), (Shape{2, 3}));
  EXPECT_EQ(cast(file["flags"], Int32).to_vector<int>(), (std::vector<int>{1, 1}));
  EXPECT_EQ(file["complex"].dtype(), ComplexF64);
  EXPECT_EQ(real(file["complex"]).to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(file["bytes"].to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 2}));
  EXPECT_EQ(file["empty"].shape(), (Shape{0, 2}));
  EXPECT_EQ(file["step"].item<int64_t>(), 12345678901);
  EXPECT_EQ(file["rate"].item<double>(), 0.5);
  EXPECT_EQ(file.text("note"), "text");
#ifdef ROSIN_HAVE_JSON
  EXPECT_EQ(file.texts("words"), words);
#endif
}

/// What h5dump says of a part, its blanks as one.
std::string dumped(const std::string& arguments) {
  std::string text;
  for (const std::string& part : split_text(output_of("h5dump " + arguments), '\n')) {
    for (const std::string& word : split_text(part, ' ')) text += word.empty() ? "" : word + " ";
  }
  return text;
}

TEST_F(Jld2Writing, Libhdf5ReadsTheStateOfFlux) {
  if (output_of("h5dump --version").find("h5dump: Version") != 0) GTEST_SKIP() << "no h5dump (hdf5-tools)";
  const Array weight = cast(reshape(arange(6), {2, 3}), Float32);
  save(path("m.jld2"), Chain(Dense(weight, ones({2}), relu), Dense(ones({1, 2}), false)));
  const std::string types = dumped(path("m.jld2"));
  // The first Dense; both; the chain: as JLD2 calls and stores them.
  EXPECT_NE(types.find("H5T_COMPOUND { H5T_REFERENCE { H5T_STD_REF_OBJECT } \"weight\"; H5T_REFERENCE { "
                       "H5T_STD_REF_OBJECT } \"bias\"; } ATTRIBUTE \"julia_type\""),
            std::string::npos)
      << types;
  EXPECT_NE(types.find("H5T_REFERENCE { H5T_STD_REF_OBJECT } \"weight\"; H5T_STD_B8LE \"bias\";"), std::string::npos);
  for (const char* name : {"\"Core.NamedTuple\", (DATASET", "\"Core.Symbol\", ()", "\"NTuple\", (DATASET",
                           "\"Core.Tuple\", (D", "\"Core.DataType\", ()"}) {
    EXPECT_NE(types.find(name), std::string::npos) << name << types;
  }
  EXPECT_EQ(types.find("rror"), std::string::npos);
  save(path("a.jld2"), {{"w", weight}, {"step", 7}});
  EXPECT_NE(dumped("-d /w " + path("a.jld2"))
                .find("H5T_IEEE_F32LE DATASPACE SIMPLE { ( 3, 2 ) / ( 3, 2 ) } DATA { "
                      "(0,0): 0, 1, (1,0): 2, 3, (2,0): 4, 5 }"),
            std::string::npos);
  EXPECT_NE(dumped("-d /step " + path("a.jld2")).find("H5T_STD_I64LE DATASPACE SCALAR DATA { (0): 7 }"),
            std::string::npos);
}

TEST_F(Jld2Writing, PythonFollowsTheReferencesToArrays) {
  const std::string interpreter = python_with("h5py");
  if (interpreter.empty()) GTEST_SKIP() << "no python3 with h5py (set PYTHON)";
  const Array weight = cast(reshape(arange(6), {2, 3}), Float32);
  save(path("m.jld2"), {{"model", Chain(Dense(weight, ones({2})), Conv({3, 1}, 1, 1))}, {"note", "\u03bb"}});
  write("read.py",
        "import h5py, sys\nfile = h5py.File(sys.argv[1])\n"
        "layers = file['model'][()]['layers']\n"
        "print(file[layers['1']['weight']][()].T.tolist(), file[layers['1']['bias']].shape)\n"
        "print(layers['2']['pad'], layers['2']['groups'], file['note'][()].decode())\n");
  EXPECT_EQ(output_of(interpreter + " " + path("read.py") + " " + path("m.jld2")),
            "[[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]] (2,)\n(0, 0, 0, 0) 1 \u03bb\n");
}

TEST_F(Jld2Writing, TypesAreTheBytesThatJld2Writes) {
  const std::string real = real_files("jld2/juliahepnet_model.jld2");
  if (!std::filesystem::exists(real)) GTEST_SKIP() << "no " << real << " (set ROSIN_FILES)";
  std::ifstream file(real, std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  Chain model(Dense(3, 64, sigmoid), Dense(64, 1, sigmoid));
  load(real, model);
  save(path("m.jld2"), model);
  const std::string ours = bytes_of_file("m.jld2");
  // The model's type: named tuples in a tuple in a named tuple; an array's; a text's.
  const size_t layers = golden.find("layers\0", golden.find("OHDR", 6274), 7);
  ASSERT_NE(layers, std::string::npos);
  EXPECT_NE(ours.find(golden.substr(layers - 12, 4 + 106)), std::string::npos);
  for (const size_t place : {size_t{560 + 7}, size_t{4824 + 7}, size_t{4946 + 7}}) {
    // The message of a committed type and the head of its attribute, as far as no address follows.
    const size_t length = 4 + static_cast<unsigned char>(golden[place + 1]) + 4 + 6 + 13;
    EXPECT_NE(ours.find(golden.substr(place, length)), std::string::npos) << place;
  }
  Chain again(Dense(3, 64), Dense(64, 1));
  load(path("m.jld2"), again);
  EXPECT_EQ(again[0].get_if<Dense>()->weight.to_vector(), model[0].get_if<Dense>()->weight.to_vector());
}

TEST_F(Jld2Writing, WhatJld2CannotHoldIsRefused) {
  EXPECT_EQ(error_here([&] {
              save(path("b.jld2"), {{"x", cast(ones({2}), BFloat16)}});
            }),
            "save: a JLD2 file has Float16, Float32 and Float64; got BFloat16; convert it, or save it as .bson");
  EXPECT_EQ(error_here([&] {
              save(path("s.jld2"), {{"a/b", ones({2})}});
            }),
            "save: entries of a JLD2 file have names without '/' that are not '_types'; got 'a/b'; rename it");
  EXPECT_TRUE(names_in_folder().empty());
}

}  // namespace
}  // namespace rosin
