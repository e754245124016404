// load(path, options): mapped, converted, on devices; files in several; the memory that loading takes.
#include <gtest/gtest.h>

#include <cstring>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/io.hpp>
#include <rosin/log.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/npy.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/python_testing.hpp"
#include "io/real_files_testing.hpp"

#include "../tests/error_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

Array counted(const Shape& shape) { return reshape(arange(0.0, static_cast<double>(shape.count()), 1), shape); }

/// A number of /proc/self/status in KiB ("VmHWM:"); 0 where there is none.
int64_t status_number(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size()));
  }
  return 0;
}

/// How many MiB the process grew at most while `use` ran; -1 where the system does not count it.
template <class Use> int64_t growth(Use use) {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  const int64_t before = status_number("VmRSS:");
  if (!reset || before == 0) return -1;
  use();
  return (status_number("VmHWM:") - before) / 1024;
}

class ReadingFiles : public ScratchFolder {
 protected:
  /// A file with one array of zeros; the file system need not store them.
  std::string file_of_zeros(const std::string& shape, uint64_t bytes) const {
    std::string header =
        R"({"x":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
    header.append((8 - header.size() % 8) % 8, ' ');
    const std::string file = write("zeros.safetensors", safetensors_bytes(header, ""));
    std::filesystem::resize_file(file, 8 + header.size() + bytes);
    return file;
  }
};

TEST_F(ReadingFiles, MappedArraysStandOnTheFileAndHaveItsValues) {
  const Array row = counted({7}), matrix = counted({3, 4}), cube = counted({2, 3, 5});
  save(path("a.safetensors"),
       {{"row", row}, {"matrix", matrix}, {"cube", cube}, {"flag", row > 3}, {"none", zeros({0, 2})}});
  const SavedFile file = load(path("a.safetensors"), {.map = true});
  std::filesystem::remove(path("a.safetensors"));  // the mapping holds it
  EXPECT_TRUE(is_lent(*file["row"].node()->buffer));
  EXPECT_FALSE(is_lent(*file["flag"].node()->buffer));  // Bool is looked at, and so read
  EXPECT_EQ(file["row"].to_vector(), row.to_vector());
  EXPECT_EQ(file["matrix"].shape(), (Shape{3, 4}));
  EXPECT_EQ(file["matrix"].to_vector(), matrix.to_vector());
  EXPECT_EQ(file["cube"].to_vector(), cube.to_vector());
  EXPECT_EQ(file["flag"].to_vector<double>(), (row > 3).to_vector<double>());
  EXPECT_EQ(file["none"].count(), 0);
}

TEST_F(ReadingFiles, ElementsThatAreNotAlignedAreReadInstead) {
  const std::string data(8, '\0');
  write("odd.safetensors",
        safetensors_bytes(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} )", data));  // an odd length
  const SavedFile file = load(path("odd.safetensors"), {.map = true});
  EXPECT_FALSE(is_lent(*file["x"].node()->buffer));
  EXPECT_EQ(file["x"].to_vector(), (std::vector<float>{0, 0}));
}

TEST_F(ReadingFiles, AnOptimiserNeverWritesTheMappedFile) {
  save(path("m.safetensors"), {{"weight", ones({1000})}});
  const std::string before = bytes_of_file("m.safetensors");
  struct Model {
    Array weight;
  } model{load(path("m.safetensors"), {.map = true})["weight"]};
  ASSERT_TRUE(is_lent(*model.weight.node()->buffer));
  auto rule_state = setup(Descent{0.5f}, model);
  for (int step = 0; step < 3; ++step) {
    const auto [loss, gradients] = withgradient([](const Model& m) { return sum(m.weight * m.weight); }, model);
    update(rule_state, model, gradients);
    eval(model.weight);
  }
  EXPECT_EQ(model.weight.to_vector(), std::vector<float>(1000, 0.0f));
  EXPECT_EQ(bytes_of_file("m.safetensors"), before);
}

TEST_F(ReadingFiles, AMappedFileThatIsSavedAnewStaysWhatItWas) {
#ifdef _WIN32
  GTEST_SKIP() << "file systems that do not rename as POSIX does replace no file that is mapped";
#endif
  save(path("m.safetensors"), {{"x", full({2000}, 1.0f)}});
  const Array x = load(path("m.safetensors"), {.map = true})["x"];
  save(path("m.safetensors"), {{"x", full({10}, 2.0f)}});
  EXPECT_EQ(sum(x).item<float>(), 2000.0f);
  save(path("m.safetensors"), {{"x", x + 1}});  // from the old file, over the new one
  EXPECT_EQ(load(path("m.safetensors"))["x"].to_vector(), std::vector<float>(2000, 2.0f));
}

TEST_F(ReadingFiles, MappingTakesNoMemoryForWhatIsNotTouched) {
  const std::string file = file_of_zeros("[12582912]", uint64_t{48} << 20);
  load(file, {.map = true});
  const int64_t grown = growth([&] { EXPECT_EQ(load(file, {.map = true})["x"].count(), 12582912); });
  if (grown < 0) GTEST_SKIP() << "no /proc/self/clear_refs";
  EXPECT_LT(grown, 16);
}

TEST_F(ReadingFiles, LoadingTakesTheMemoryOfTheFileAndLittleMore) {
  for (const char* shape : {"[3072,4096]", "[2,6291456]"}) {  // many rows in a piece; a row of several pieces
    const std::string file = file_of_zeros(shape, uint64_t{48} << 20);
    const int64_t grown = growth([&] { EXPECT_EQ(load(file)["x"].count(), 12582912); });
    if (grown < 0) GTEST_SKIP() << "no /proc/self/clear_refs";
    EXPECT_LT(grown, 48 + 32) << shape;
  }
}

TEST_F(ReadingFiles, ConversionOnLoadTakesTheMemoryOfTheResultAndLittleMore) {
  const std::string file = file_of_zeros("[3072,4096]", uint64_t{48} << 20);
  const int64_t grown = growth([&] { EXPECT_EQ(load(file, {.dtype = BFloat16})["x"].dtype(), BFloat16); });
  if (grown < 0) GTEST_SKIP() << "no /proc/self/clear_refs";
  EXPECT_LT(grown, 24 + 32);
}

TEST_F(ReadingFiles, RowsLongerThanAPieceComeToTheirPlaces) {
  // Slices of 8.5 MiB, and rows of 2.8 MiB of which a piece of 8 MiB holds two.
  const Array x = counted({2, 3, 370000});
  save(path("x.safetensors"), {{"x", cast(x, Float64)}});
  const Array back = load(path("x.safetensors"))["x"];
  EXPECT_TRUE(all(cast(back, Float32) == x).item<bool>());
}

TEST_F(ReadingFiles, FloatingPointArraysComeInTheTypeThatIsAskedFor) {
  const Array x = counted({3, 4}) / 3.0f;
  save(path("x.safetensors"), {{"x", x}, {"wide", cast(x, Float64)}, {"n", cast(arange(4), Int16)}, {"b", x > 1}});
  for (DType type : {Float16, BFloat16, Float32, Float64}) {
    const SavedFile file = load(path("x.safetensors"), {.dtype = type});
    EXPECT_EQ(file["x"].dtype(), type);
    EXPECT_EQ(file["x"].to_vector<double>(), cast(x, type).to_vector<double>());
    EXPECT_EQ(file["wide"].dtype(), type);
    EXPECT_EQ(file["n"].dtype(), Int16);
    EXPECT_EQ(file["b"].dtype(), Bool);
  }
  save(path("large.safetensors"), {{"x", full({3}, 1e6f)}});
  EXPECT_EQ(error_here([&] { load(path("large.safetensors"), {.dtype = Float16}); }),
            "load: values must fit the type that is asked for; 'DIR/large.safetensors', tensor 'x' has 1000000 of type "
            "Float32, for Float16; load it in a wider type");
  EXPECT_EQ(error_here([&] { load(path("x.safetensors"), {.dtype = Int8}); }),
            "load: {.dtype} is a floating-point type; got Int8; cast other arrays after loading");
}

TEST_F(ReadingFiles, OtherFormatsAreConvertedTooAndNotMapped) {
  save(path("x.npz"), {{"x", counted({2, 3})}});
  save(path("x.bson"), {{"x", counted({2, 3})}});
  save_npy(path("x.npy"), counted({2, 3}));
  for (const char* name : {"x.npz", "x.bson", "x.npy"}) {
    const Array x = load(path(name), {.dtype = Float16})["x"];
    EXPECT_EQ(x.dtype(), Float16) << name;
    EXPECT_EQ(x.to_vector(), counted({2, 3}).to_vector()) << name;
  }
  EXPECT_EQ(load(path("x.npy"), {.map = true})["x"].to_vector(), counted({2, 3}).to_vector());
  EXPECT_EQ(error_here([&] { load(path("x.npz"), {.map = true}); }),
            "load: .safetensors, .safetensors.index.json and .npy can be mapped; got 'DIR/x.npz' with {.map = true}; "
            "load it without");
}

TEST_F(ReadingFiles, ArraysComeToADeviceInPieces) {
  Device device;
  try {
    device = get_device("reference", 0);
  } catch (const Error&) {
    GTEST_SKIP() << "no reference device";
  }
  const Array x = counted({3, 4}), large = counted({8500000});  // 34 MB
  save(path("x.safetensors"), {{"x", x}, {"large", large}});
  const SavedFile file = load(path("x.safetensors"), {.device = device});
  EXPECT_TRUE(file["x"].device() == device);
  EXPECT_EQ(file["x"].to_vector(), x.to_vector());
  EXPECT_TRUE(file["large"].device() == device);
  EXPECT_EQ(file["large"].to_vector(), large.to_vector());
  struct Model {
    Array x, large;
  } model{zeros({3, 4}), zeros({8500000})};
  Model there = model | device;
  load(path("x.safetensors"), there);
  EXPECT_TRUE(there.large.device() == device);
  EXPECT_EQ(there.large.to_vector(), large.to_vector());
}

TEST_F(ReadingFiles, TheWayToADeviceTakesLittleMemoryOfTheHost) {
  Device device;
  try {
    device = get_device("reference", 0);
  } catch (const Error&) {
    GTEST_SKIP() << "no reference device";
  }
  constexpr int64_t most = int64_t{64} << 20;
  for (const char* shape : {"[25165824]", "[6144,4096]"}) {  // 96 MiB
    const std::string file = file_of_zeros(shape, uint64_t{96} << 20);
    const MemoryStats before = memory_stats(Device());
    const Array x = load(file, {.device = device})["x"];
    EXPECT_TRUE(x.device() == device);
    EXPECT_LE(memory_stats(Device()).peak, std::max(before.peak, before.live + most)) << shape;
    EXPECT_GE(memory_stats(device).live, int64_t{96} << 20);
  }
}

// --- Several files.

TEST_F(ReadingFiles, AModelInSeveralFilesComesBack) {
  struct Model {
    std::vector<Array> layers;
    Array bias;
  } model{{counted({10, 10}), counted({20, 10}), counted({5, 5})}, counted({3})}, other{model};
  const std::string index = path("m.safetensors.index.json");
  save(index, model, {.metadata = {{"format", "pt"}}, .shard_bytes = 900});
  EXPECT_EQ(names_in_folder(), (std::vector<std::string>{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors",
                                                         "m.safetensors.index.json"}));
  EXPECT_EQ(bytes_of_file("m.safetensors.index.json"),
            R"({"metadata":{"total_size":1312,"format":"pt"},"weight_map":{)"
            R"("bias":"m-00001-of-00002.safetensors","layers.0":"m-00001-of-00002.safetensors",)"
            R"("layers.1":"m-00002-of-00002.safetensors","layers.2":"m-00002-of-00002.safetensors"}})"
            "\n");
  for (Array& x : other.layers) x = zeros(x.shape());
  load(index, other);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(other.layers[i].to_vector(), model.layers[i].to_vector());
  EXPECT_EQ(load(index, {.map = true})["layers.1"].to_vector(), model.layers[1].to_vector());
  EXPECT_EQ(list_file(index).tensors.size(), 4u);
  const auto metadata = load(path("m-00002-of-00002.safetensors")).metadata();
  EXPECT_EQ(metadata.back(), (std::pair<std::string, std::string>("format", "pt")));
}

TEST_F(ReadingFiles, AnIndexThatDoesNotFitItsFilesIsRefused) {
  save(path("a.safetensors"), {{"x", ones({2})}});
  const auto text_of = [&](const std::string& map) {
    write("m.safetensors.index.json", map);
    return error_here([&] { load(path("m.safetensors.index.json")); });
  };
  EXPECT_NE(text_of(R"({"weight_map":{"y":"a.safetensors"}})").find("tensor 'y': this one is not there"),
            std::string::npos);
  EXPECT_NE(text_of(R"({"weight_map":{"x":"../a.safetensors"}})").find("of its own folder"), std::string::npos);
  EXPECT_NE(text_of(R"({"weight_map":{"x":"b.safetensors"}})").find("b.safetensors': " + no_such_file()),
            std::string::npos);
  EXPECT_NE(text_of(R"({"weight_map":{"x":"a.safetensors","x":"a.safetensors"}})").find("occurs twice"),
            std::string::npos);
  for (const char* map : {"[]", "{}", "3", "", R"({"weight_map":{"x":3}})", R"({"weight_map":{"x":["a"]}})",
                          R"({"weight_map":"a"})", R"({"weight_map":{"x":"a.safetensors"})"}) {
    EXPECT_NE(text_of(map).find("load: an index must be an object"), std::string::npos) << map;
  }
  write("m.safetensors.index.json", R"({"metadata":{"total_size":8,"more":[{}]},"weight_map":{"x":"a.safetensors"}})");
  EXPECT_EQ(load(path("m.safetensors.index.json"))["x"].count(), 2);
}

TEST_F(ReadingFiles, WhatCannotBeWrittenLeavesTheOldFilesOfAWhole) {
  const std::string index = path("m.safetensors.index.json");
  save(index, {{"a", ones({4})}, {"b", ones({4})}}, {.shard_bytes = 16});
  const std::string before = bytes_of_file("m-00001-of-00002.safetensors");
  std::filesystem::permissions(path("m-00002-of-00002.safetensors"), std::filesystem::perms::owner_read);
  if (access(path("m-00002-of-00002.safetensors").c_str(), W_OK) == 0) GTEST_SKIP() << "root may write everything";
  EXPECT_THROW(save(index, {{"a", zeros({4})}, {"b", zeros({4})}}, {.shard_bytes = 16}), Error);
  EXPECT_EQ(bytes_of_file("m-00001-of-00002.safetensors"), before);
}

// --- Metadata.

TEST_F(ReadingFiles, MetadataGoesOutAndComesIn) {
  save(path("a.safetensors"), {{"x", ones({2})}, {"note", "first"}},
       {.metadata = {{"format", "pt"}, {"rosin.x", "y"}}});
  const SavedFile file = load(path("a.safetensors"));
  EXPECT_EQ(file.text("format"), "pt");
  EXPECT_EQ(file.text("note"), "first");
  EXPECT_THROW(file.text("rosin.x"), Error);
  save(path("b.safetensors"), file.arrays(), {.metadata = file.metadata()});
  EXPECT_EQ(load(path("b.safetensors")).text("note"), "first");
  EXPECT_THROW(save(path("b.safetensors"), {{"note", "a"}}, {.metadata = {{"note", "b"}}}), Error);
  EXPECT_THROW(save(path("b.npz"), {{"x", ones({2})}}, {.metadata = {{"note", "b"}}}), Error);
}

TEST_F(ReadingFiles, AFailedLoadOfSeveralEntriesWarnsOfNoClass) {
  save(path("a.safetensors"), {{"x", ones({2})}});
  std::vector<std::string> warnings;
  set_log_sink([](const LogMessage& message,
                  void* all) { static_cast<std::vector<std::string>*>(all)->emplace_back(message.text); },
               &warnings);
  Dense layer(2, 2);
  int64_t step = 0;
  EXPECT_THROW(load(path("a.safetensors"), {{"model", layer}, {"step", step}}), Error);
  set_log_sink(nullptr);
  EXPECT_EQ(warnings, std::vector<std::string>{});
}

// --- The format's own library.

class SafetensorsInPython : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    python_ = python_with("numpy, safetensors");
    if (python_.empty()) GTEST_SKIP() << "no safetensors (pip install numpy safetensors, or set PYTHON)";
  }
  std::string python(const std::string& code) const {
    write("code.py", "import json, os\nimport numpy as np\nfrom safetensors import numpy as st, safe_open\nos.chdir('" +
                         path("") + "')\n" + code);
    return output_of(python_ + " " + path("code.py"));
  }

 private:
  std::string python_;
};

TEST_F(SafetensorsInPython, ReadsOurFilesOfAWholeAndWeReadItsMetadata) {
  save(path("m.safetensors.index.json"), {{"a", counted({3, 4})}, {"b", counted({5})}},
       {.metadata = {{"format", "np"}}, .shard_bytes = 30});
  EXPECT_EQ(
      python("index = json.load(open('m.safetensors.index.json'))\n"
             "for name, file in sorted(index['weight_map'].items()):\n"
             "  with safe_open(file, 'np') as f: print(name, f.get_tensor(name).tolist()[-1], f.metadata()['format'])\n"
             "st.save_file({'x': np.arange(12, dtype=np.float32).reshape(3, 4)}, 'p.safetensors', {'who': 'numpy'})\n"),
      "a [2.0, 5.0, 8.0, 11.0] np\nb 4.0 np\n");
  const SavedFile file = load(path("p.safetensors"), {.map = true});
  EXPECT_EQ(file.text("who"), "numpy");
  EXPECT_EQ(file["x"].to_vector(), (std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
}

}  // namespace
}  // namespace rosin

#endif
