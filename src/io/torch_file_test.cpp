// Files of torch.save, made byte by byte. (tests/torch_files_test.py has some that Python and PyTorch write.)
#include <gtest/gtest.h>

#include <algorithm>

#include <rosin/chain.hpp>
#include <rosin/complex.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/io.hpp>
#include <rosin/normalise_layers.hpp>

#include "io/real_files_testing.hpp"
#include "io/torch_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

template <class T> std::string bytes_of_values(const std::vector<T>& values, bool swapped = false) {
  std::string text;
  for (T value : values) {
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    if (swapped) std::reverse(bytes.begin(), bytes.end());
    text += bytes;
  }
  return text;
}

class TorchFiles : public ScratchFolder {
 protected:
  /// The error of a file with this pickle, from "its data.pkl" on and without the cure.
  std::string refused(const std::string& pickle, const std::string& storage = std::string(24, '\1')) const {
    write_torch_file(path("x.pt"), pickle, {{"data/0", storage}});
    std::string text = error_of([&] { load(path("x.pt")); }, ErrorKind::io);
    text = text.substr(0, text.rfind(';'));
    const size_t start = text.find("at byte ");
    return start == std::string::npos ? text : text.substr(start);
  }
};

TEST_F(TorchFiles, TensorsNumbersAndTextsHaveTheirPathsAsNames) {
  const std::string inner = "}q\x01(" + pickled_integer(7) + pickled_tensor("Float", "0", 6, 0, {2, 3}, {3, 1}) + "u";
  const std::string list = "](" + pickled_integer(-300) + "G" + std::string("\x3f\xe0\0\0\0\0\0\0", 8) + "\x88Ne";
  write_torch_file(path("x.pt"),
                   "}(" + pickled_text("model") + inner + pickled_text("list") + list + pickled_text("note") +
                       pickled_text("hello") + pickled_text("again") + "h\x01u.",
                   {{"data/0", bytes_of_values<float>({0, 1, 2, 3, 4, 5})}});
  const SavedFile file = load(path("x.pt"));
  std::vector<std::string> names;
  for (const NamedArray& entry : file.arrays()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.7", "list.0", "list.1", "list.2", "again.7"}));
  EXPECT_EQ(file["model.7"].shape(), (Shape{2, 3}));
  EXPECT_EQ(file["model.7"].to_vector(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(same(file["model.7"], file["again.7"]));
  EXPECT_EQ(file["list.0"].item<int64_t>(), -300);
  EXPECT_EQ(file["list.1"].item<double>(), 0.5);
  EXPECT_EQ(file["list.2"].dtype(), Bool);
  EXPECT_EQ(file.text("note"), "hello");
  const FileListing listing = list_file(path("x.pt"));
  ASSERT_EQ(listing.tensors.size(), 5u);
  EXPECT_EQ(listing.tensors[0].type, "F32");
  EXPECT_EQ(listing.tensors[0].sizes, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(listing.tensors[0].bytes, 24u);
}

TEST_F(TorchFiles, StridesOffsetsAndOrdersOfBytesAreFollowed) {
  for (const bool big : {false, true}) {
    const std::vector<double> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    write_torch_file(path("x.pt"),
                     "](" + pickled_tensor("Double", "0", 10, 1, {2, 3}, {1, 3}) +
                         pickled_tensor("Double", "0", 10, 9, {1, 1}, {int64_t{1} << 62, 5}) +
                         pickled_tensor("Double", "0", 10, 4, {2, 2}, {0, 2}) +
                         pickled_tensor("Double", "0", 10, 3, {}, {}) +
                         pickled_tensor("Double", "0", 10, 10, {0, 3}, {3, 1}) +
                         pickled_tensor("ComplexFloat", "1", 1, 0, {1}, {1}) + "e.",
                     {{"data/0", bytes_of_values(values, big)}, {"data/1", bytes_of_values<float>({1, 2}, big)}},
                     big ? "big" : "little");
    const SavedFile file = load(path("x.pt"));
    EXPECT_EQ(file["0"].to_vector<double>(), (std::vector<double>{1, 2, 4, 5, 7, 8}));  // columns of 1 4 7, 2 5 8
    EXPECT_EQ(file["1"].to_vector<double>(), (std::vector<double>{9}));
    EXPECT_EQ(file["2"].to_vector<double>(), (std::vector<double>{4, 4, 6, 6}));
    EXPECT_EQ(file["3"].item<double>(), 3);
    EXPECT_EQ(file["4"].shape(), (Shape{0, 3}));
    EXPECT_EQ(real(file["5"]).item(), 1);
    EXPECT_EQ(imag(file["5"]).item(), 2);
  }
}

TEST_F(TorchFiles, AModelIsLoadedUnderPyTorchsNames) {
  const std::string counter = pickled_tensor("Long", "1", 1, 0, {}, {});
  const std::string weights = pickled_name("collections", "OrderedDict") + ")R(" + pickled_text("0.weight") +
                              pickled_tensor("Float", "0", 10, 0, {2, 1, 1, 2}, {2, 2, 2, 1}) + pickled_text("0.bias") +
                              pickled_tensor("Float", "0", 10, 4, {2}, {1}) + pickled_text("1.num_batches_tracked") +
                              counter + pickled_text("1.weight") + pickled_tensor("Float", "0", 10, 6, {2}, {1}) +
                              pickled_text("1.bias") + pickled_tensor("Float", "0", 10, 6, {2}, {1}) +
                              pickled_text("1.running_mean") + pickled_tensor("Float", "0", 10, 8, {2}, {1}) +
                              pickled_text("1.running_var") + pickled_tensor("Float", "0", 10, 8, {2}, {1}) + "u}(" +
                              pickled_text("_metadata") + "}ub";
  const std::vector<std::pair<std::string, std::string>> storages = {
      {"data/0", bytes_of_values<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}, {"data/1", bytes_of_values<int64_t>({3})}};
  write_torch_file(path("x.pth"), weights + ".", storages);
  Chain model(Conv({2, 1}, 1, 2), BatchNorm(2));
  EXPECT_NE(error_of([&] { load(path("x.pth"), model); }, ErrorKind::argument).find("{.names = torch}"),
            std::string::npos);
  load(path("x.pth"), model, {.names = torch});
  EXPECT_EQ(model[0].get_if<Conv>()->weight.to_vector(), (std::vector<float>{1, 0, 3, 2}));  // flipped
  EXPECT_EQ(model[0].get_if<Conv>()->bias.to_vector(), (std::vector<float>{4, 5}));
  EXPECT_EQ(model[1].get_if<BatchNorm>()->mean.value().to_vector(), (std::vector<float>{8, 9}));
  write_torch_file(path("x.pt"), "}(" + pickled_text("net") + weights + pickled_text("epoch") + "K\5u.", storages);
  Chain other(Conv({2, 1}, 1, 2), BatchNorm(2));
  int epoch = 0;
  load(path("x.pt"), {{"net", other}, {"epoch", epoch}}, {.names = torch});
  EXPECT_EQ(other[0].get_if<Conv>()->weight.to_vector(), (std::vector<float>{1, 0, 3, 2}));
  EXPECT_EQ(epoch, 5);
}

TEST_F(TorchFiles, OtherClassesAndOpcodesAreNamedWithTheirPlace) {
  EXPECT_EQ(refused(pickled_name("os", "system") + "(" + pickled_text("touch x") + "tR."),
            "at byte 2: it has the class os.system");
  EXPECT_EQ(refused("N0" + pickled_text("builtins") + pickled_text("eval") + "\x93."), "at byte 3: it has opcode POP");
  EXPECT_EQ(refused(pickled_text("builtins") + pickled_text("eval") + "\x93."),
            "at byte 24: it has the class builtins.eval");
  EXPECT_EQ(refused("}}\x81."), "at byte 4: it has opcode NEWOBJ");
  EXPECT_EQ(refused("ios\nsystem\n."), "at byte 2: it has opcode INST");
  EXPECT_EQ(refused("\xf3."), "at byte 2: it has opcode 0xf3");
  EXPECT_EQ(refused(pickled_name("torch", "FloatStorage") + ")R."), "at byte 23: it has a call of torch.FloatStorage");
  EXPECT_EQ(refused("})R."), "at byte 4: it has a call of something unnamed");
  EXPECT_EQ(refused(pickled_name("torch", "float32") + "."), "at byte 2: it has the class torch.float32");
  EXPECT_EQ(refused(pickled_storage("Float", "0", 6) + "."), "at byte 60: it has a storage by itself");
  EXPECT_EQ(refused("]}b."), "at byte 4: it has the state of an object that is no dict");
  EXPECT_EQ(refused(pickled_text("x") + "Q."), "at byte 8: it has an outside object that is no storage");
}

TEST_F(TorchFiles, DamageIsToldWithItsPlace) {
  EXPECT_EQ(refused("N"), "at byte 3: it is cut off");
  EXPECT_EQ(refused("X\xff\xff\xff\x7fx."), "at byte 2: it is cut off");
  EXPECT_EQ(refused("."), "at byte 2: there are more");
  EXPECT_EQ(refused("NN."), "at byte 4: there are more");
  EXPECT_EQ(refused("(N."), "at byte 4: there are more");
  EXPECT_EQ(refused("a."), "at byte 2: there are too few");
  EXPECT_EQ(refused("t."), "at byte 2: there is no mark");
  EXPECT_EQ(refused("](Na."), "at byte 5: there are none");
  EXPECT_EQ(refused("h\5."), "at byte 2: number 5 has not");
  EXPECT_EQ(refused("}(Nu."), "at byte 5: there is no dict, or no value");
  EXPECT_EQ(refused("\x8a\x09........."), "at byte 2: one has 72");
  EXPECT_EQ(refused("\x80\x07."), "at byte 2: it is 7");
  EXPECT_EQ(refused("}(]Nu."), "at byte 4: one is neither");
  EXPECT_EQ(refused("}(" + pickled_text("a") + "N" + pickled_text("a") + "NK\1K\1K\1K\2u."),
            "at byte 24: two are called 1");
}

TEST_F(TorchFiles, TensorsOutsideTheirStorageAreRefused) {
  const auto tensor = [&](int64_t count, int64_t offset, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) {
    const std::string text = refused(pickled_tensor("Float", "0", count, offset, sizes, strides) + ".");
    return text.substr(text.find(": ") + 2);
  };
  constexpr int64_t huge = int64_t{1} << 62;
  EXPECT_EQ(tensor(6, 0, {7}, {1}), "one goes on after its end");
  EXPECT_EQ(tensor(6, 1, {2, 3}, {3, 1}), "one goes on after its end");
  EXPECT_EQ(tensor(6, 6, {}, {}), "one goes on after its end");
  EXPECT_EQ(tensor(6, 0, {3, 3}, {huge, huge}), "one goes on after its end");
  EXPECT_EQ(tensor(6, 0, {2}, {-1}), "one is none");
  EXPECT_EQ(tensor(6, 0, {-2}, {1}), "one is none");
  EXPECT_EQ(tensor(6, 0, {2, 3}, {1}), "one has not");
  EXPECT_EQ(tensor(6, -1, {2}, {1}), "one has not");
  EXPECT_EQ(tensor(-1, 0, {2}, {1}), "one has not");
  EXPECT_EQ(tensor(huge, 0, {2}, {1}), "one is too large");
  EXPECT_EQ(tensor(7, 0, {6}, {1}), "number 0 has others");
  EXPECT_EQ(tensor(6, 0, {huge, 2}, {0, 0}), "one has more");
  EXPECT_EQ(tensor(6, 0, {int64_t{1} << 40}, {0}), "expanded ones (clone() them) have");
  EXPECT_EQ(refused(pickled_tensor("Float", "../x", 6, 0, {6}, {1}) + "."), "at byte 0: number ../x is not there");
  EXPECT_NE(refused(pickled_tensor("Bool", "0", 24, 0, {24}, {1}) + ".", std::string(24, '\2')).find("larger"),
            std::string::npos);
  // Of two views of one storage the second states another size, in which it would lie.
  const std::string second = pickled_tensor("Float", "0", huge / 8, huge / 16, {2}, {1});
  const std::string both = refused("](" + pickled_tensor("Float", "0", 6, 0, {2}, {1}) + second + "e.");
  EXPECT_EQ(both.substr(both.find(": ") + 2), "number 0 has others");
  const std::vector<int64_t> nine(9, 1);
  write_torch_file(path("x.pt"), pickled_tensor("Float", "0", 6, 0, nine, nine) + ".", {});
  EXPECT_NE(error_of([&] { load(path("x.pt")); }, ErrorKind::shape).find("at most eight dims"), std::string::npos);
}

TEST_F(TorchFiles, WhatIsDeepOrSharedWithoutEndIsRefused) {
  EXPECT_EQ(refused(std::string(200, ']') + std::string(199, 'a') + "."), "at byte 103: these are deeper");
  EXPECT_EQ(refused("]q\1h\1a."), "at byte 2: these are deeper");  // contains itself
  std::string doubled = "]q" + std::string(1, '\0') + "Na";        // 2^30 times None
  for (char i = 1; i <= 30; ++i) {
    const std::string before(1, static_cast<char>(i - 1));
    doubled += std::string("](h") + before + "h" + before + "eq" + i;
  }
  EXPECT_NE(refused("(" + doubled + "t.").find("shared ones are too many"), std::string::npos);
  std::string long_names = "}(" + pickled_text(std::string(10000, 'x')) + "}(";
  for (int i = 0; i < 300; ++i) long_names += pickled_text(std::to_string(i)) + "N";
  EXPECT_NE(refused(long_names + "uu.").find("or too long"), std::string::npos);
}

TEST_F(TorchFiles, OtherArchivesAndOldFilesAreRefused) {
  write("x.pt", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.");
  EXPECT_EQ(error_here([&] { load(path("x.pt")); }),
            "load: a file of PyTorch is a zip archive, as torch.save writes it since 1.6; 'DIR/x.pt' at byte 0: this "
            "one is none; save model.state_dict() with torch.save, or write the file again");
  save(path("x.npz"), {{"x", ones({2})}});
  std::filesystem::rename(path("x.npz"), path("x.pt"));
  EXPECT_NE(error_here([&] { load(path("x.pt")); }).find("has a data.pkl"), std::string::npos);
  write("x.pt", "");
  EXPECT_NE(error_here([&] { list_file(path("x.pt")); }).find("is a zip archive"), std::string::npos);
  write_torch_file(path("x.pt"), "N.", {}, "middle");
  EXPECT_NE(error_here([&] { load(path("x.pt")); }).find("byteorder is little or big"), std::string::npos);
}

}  // namespace
}  // namespace rosin
