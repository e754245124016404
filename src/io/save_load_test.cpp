// Writing, and reading into models: round trips, bytes of the file, messages, and files that survive what goes wrong.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>

#include "io/real_files_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

struct Affine {
  Array weight;  // (out, in)
  Array bias;    // (out)
};
struct Pair {
  Affine hidden;
  std::vector<Affine> layers;
  Buffer mean;
};

Affine affine(int64_t out, int64_t in, float start) {
  return {reshape(arange(double{start}, double{start} + static_cast<double>(out * in), 1), {out, in}),
          full({out}, start)};
}
Pair pair(float start) {
  return {affine(3, 2, start), {affine(2, 3, start + 10), affine(4, 2, start + 20)}, full({3}, start / 2)};
}
std::vector<float> all_values(const Pair& m) {
  std::vector<float> values;
  for (const NamedArray& entry : state(m)) {
    for (float value : entry.value.to_vector()) values.push_back(value);
  }
  return values;
}

class SaveAndLoad : public ScratchFolder {};

TEST_F(SaveAndLoad, AModelComesBack) {
  const Pair saved = pair(1);
  save(path("m.safetensors"), saved);
  Pair m = pair(100);
  load(path("m.safetensors"), m);
  EXPECT_EQ(all_values(m), all_values(saved));
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"m.safetensors"});
}

TEST_F(SaveAndLoad, TheFileIsRowMajorWithWideElementsFirst) {
  struct Mixed {
    Array small, wide, matrix;
  } m{Array({uint8_t{7}}, {1}), Array({2.0}, {1}), Array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3})};
  save(path("m.safetensors"), m);
  const std::string bytes = bytes_of_file("m.safetensors");
  const size_t header = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(header % 8, 0u);
  const std::string text = bytes.substr(8, header);
  EXPECT_NE(text.find("\"wide\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},\"matrix\":{\"dtype\":\"F32\","
                      "\"shape\":[2,3],\"data_offsets\":[8,32]},\"small\":{\"dtype\":\"U8\",\"shape\":[1],"
                      "\"data_offsets\":[32,33]}"),
            std::string::npos)
      << text;
  float rows[6];
  std::memcpy(rows, bytes.data() + 8 + header + 8, sizeof rows);
  EXPECT_EQ(std::vector<float>(rows, rows + 6), (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST_F(SaveAndLoad, TheMetadataNamesFormatVersionAndStructure) {
  save(path("a.safetensors"), pair(1));
  save(path("b.safetensors"), pair(2));
  save(path("c.safetensors"), affine(2, 2, 1));
  const auto a = load(path("a.safetensors")).metadata(), b = load(path("b.safetensors")).metadata();
  const auto c = load(path("c.safetensors")).metadata();
  ASSERT_EQ(a.size(), 3u);
  EXPECT_EQ(a[0], (std::pair<std::string, std::string>("rosin.format", "1")));
  EXPECT_EQ(a[1].first, "rosin.version");
  EXPECT_EQ(a[2].first, "rosin.model");
  EXPECT_EQ(a[2], b[2]);
  EXPECT_NE(a[2], c[2]);
}

TEST_F(SaveAndLoad, EveryRankKeepsItsElements) {
  std::vector<NamedArray> arrays;
  const Shape shapes[] = {
      {}, {0}, {1}, {5}, {3, 0, 2}, {33, 65}, {2, 3, 4}, {1, 7, 1, 3}, {2, 1, 3, 2, 2}, {2, 2, 2, 2, 2, 2, 2, 2}};
  for (const Shape& shape : shapes) {
    arrays.push_back({"x" + to_string(shape), reshape(arange(0.0, static_cast<double>(shape.count()), 1.0), shape)});
  }
  save(path("m.safetensors"), arrays);
  const SavedFile file = load(path("m.safetensors"));
  for (const NamedArray& entry : arrays) {
    EXPECT_EQ(file[entry.name].shape(), entry.value.shape());
    EXPECT_EQ(file[entry.name].to_vector(), entry.value.to_vector()) << entry.name;
  }
}

TEST_F(SaveAndLoad, EveryTypeKeepsItsBytes) {
  std::vector<NamedArray> arrays;
  for (DType type :
       {Bool, UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, BFloat16, Float32, Float64}) {
    const Array x = cast(Array({0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f}, {3, 2}), type);
    arrays.push_back({to_string(type), x});
  }
  save(path("m.safetensors"), arrays);
  const SavedFile file = load(path("m.safetensors"));
  for (const NamedArray& entry : arrays) {
    EXPECT_EQ(file[entry.name].dtype(), entry.value.dtype());
    EXPECT_EQ(file[entry.name].to_vector<double>(), (std::vector<double>{0, 1, 1, 0, 0, 1})) << entry.name;
  }
}

TEST_F(SaveAndLoad, SeveralEntriesGoIntoOneFile) {
  int64_t step = 12345678901;
  const double rate = 0.1;
  save(path("run.safetensors"), {{"model", pair(1)}, {"step", step}, {"rate", rate}, {"done", true}, {"x", ones({2})}});
  const SavedFile file = load(path("run.safetensors"));
  EXPECT_EQ(file["step"].item<int64_t>(), step);
  EXPECT_EQ(file["rate"].item(), 0.1);
  EXPECT_EQ(file["done"].dtype(), Bool);
  EXPECT_EQ(file["model.layers.1.bias"].to_vector(), std::vector<float>(4, 21));
  Pair from_part = pair(5);
  loadmodel(from_part, file.part("model"));
  EXPECT_EQ(all_values(from_part), all_values(pair(1)));

  Pair m = pair(100);
  int64_t steps = 0;
  double eta = 0;
  bool done = false;
  Array x = zeros({2});
  load(path("run.safetensors"), {{"model", m}, {"step", steps}, {"rate", eta}, {"done", done}, {"x", x}});
  EXPECT_EQ(all_values(m), all_values(pair(1)));
  EXPECT_EQ(steps, step);
  EXPECT_EQ(eta, 0.1);
  EXPECT_TRUE(done);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 1}));
}

template <class To, class From> std::string message_of_loading(const std::string& path, From saved, To target = {}) {
  const To before = target;
  save(path, {{"n", saved}});
  try {
    load(path, {{"n", target}});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
    EXPECT_EQ(target, before);
    return error.what();
  }
  EXPECT_EQ(static_cast<long double>(target), static_cast<long double>(static_cast<To>(saved)));
  return "";
}

TEST_F(SaveAndLoad, ANumberThatItsPlaceCannotHoldIsAnError) {
  const std::string file = path("n.safetensors");
  EXPECT_EQ(
      message_of_loading<int8_t>(file, 1200),
      "load: '" + file +
          "': values must fit the type of their place; n is Int8 and the source has 1200 of type Int64; load into a "
          "wider type");
  EXPECT_NE(message_of_loading<int8_t>(file, -129), "");
  EXPECT_EQ(message_of_loading<int8_t>(file, -128), "");
  EXPECT_NE(message_of_loading<uint8_t>(file, -1), "");
  EXPECT_NE(message_of_loading<bool>(file, 2), "");
  EXPECT_NE(message_of_loading<int>(file, 2.5), "");
  EXPECT_NE(message_of_loading<int>(file, std::nan("")), "");
  EXPECT_NE(message_of_loading<int64_t>(file, 9223372036854775808.0), "");
  EXPECT_NE(message_of_loading<float>(file, 16777217), "");
  EXPECT_NE(message_of_loading<double>(file, (int64_t{1} << 62) + 1), "");
  EXPECT_NE(message_of_loading<float>(file, 1e300), "");
  EXPECT_NE(message_of_loading<int64_t>(file, ~uint64_t{0}), "");
}

TEST_F(SaveAndLoad, ANumberGoesIntoEveryTypeThatHoldsIt) {
  const std::string file = path("n.safetensors");
  EXPECT_EQ(message_of_loading<uint64_t>(file, ~uint64_t{0}), "");
  EXPECT_EQ(message_of_loading<unsigned long long>(file, ~0ull), "");
  EXPECT_EQ(message_of_loading<long long>(file, size_t{7}), "");
  EXPECT_EQ(message_of_loading<int8_t>(file, 3.0), "");
  EXPECT_EQ(message_of_loading<bool>(file, 1), "");
  EXPECT_EQ(message_of_loading<float>(file, 0.1), "");  // rounded
  EXPECT_EQ(message_of_loading<float>(file, INFINITY), "");
  EXPECT_EQ(message_of_loading<double>(file, 1.5f), "");
  EXPECT_EQ(message_of_loading<uint16_t>(file, true), "");
}

TEST_F(SaveAndLoad, AnArrayWhoseTypeCannotHoldTheValuesIsAnErrorAndTheModelStays) {
  struct Part {
    Array x;
  };
  const auto loads = [&](const Array& saved, DType type) {
    save(path("a.safetensors"), Part{saved});
    Part m{zeros(saved.shape(), type)};
    const Array before = m.x;
    try {
      load(path("a.safetensors"), m);
    } catch (const Error& error) {
      EXPECT_TRUE(same(m.x, before));
      EXPECT_EQ(error.kind(), ErrorKind::dtype) << error.what();
      return false;
    }
    EXPECT_EQ(m.x.dtype(), type);
    return true;
  };
  const Array wide = where(arange(2000) == 1999, 70000.0f, 0.1f);  // the last of several blocks
  EXPECT_FALSE(loads(wide, Float16));
  EXPECT_TRUE(loads(wide, BFloat16));
  EXPECT_FALSE(loads(wide, Int32));
  EXPECT_FALSE(loads(Array({1.0f, 2.5f}, {2}), Int64));
  EXPECT_TRUE(loads(Array({1.0f, -2.0f}, {2}), Int8));
  EXPECT_FALSE(loads(Array({1, 300}, {2}), UInt8));
  EXPECT_TRUE(loads(Array({0, 1}, {2}), Bool));
  EXPECT_FALSE(loads(Array({0, 2}, {2}), Bool));
  EXPECT_TRUE(loads(zeros({0}), Int8));
}

TEST_F(SaveAndLoad, AFailedLoadOfEntriesChangesNothing) {
  save(path("run.safetensors"), {{"step", 3}, {"model", affine(2, 2, 1)}});
  int64_t step = 7;
  Affine m = affine(2, 3, 1);
  EXPECT_EQ(
      error_here([&] {
        load(path("run.safetensors"), {{"step", step}, {"model", m}});
      }),
      "load: 'DIR/run.safetensors': sizes must match; model.weight is (2, 3) and the source has (2, 2); build the "
      "model with the sizes it was saved with");
  EXPECT_EQ(step, 7);
  int64_t epoch = 9;
  load(path("run.safetensors"), {{"epoch", epoch}}, {.strict = false});
  EXPECT_EQ(epoch, 9);
}

TEST_F(SaveAndLoad, MissingExtraAndMisshapenNamesAreNamed) {
  save(path("m.safetensors"), {{"hidden", affine(2, 2, 1)}, {"out", affine(2, 2, 1)}});
  struct Renamed {
    Affine hiden, out;
  } renamed{affine(2, 2, 5), affine(2, 2, 5)};
  EXPECT_EQ(error_here([&] { load(path("m.safetensors"), renamed); }),
            "load: 'DIR/m.safetensors': every array needs an entry in the source; hiden.weight is missing there; the "
            "nearest of its names is hidden.weight; rename it, load into what was saved (a state: of the same rule), "
            "or load with {.strict = false}");
  EXPECT_EQ(renamed.out.bias.to_vector(), (std::vector<float>{5, 5}));
  struct Smaller {
    Affine hidden;
  } smaller{affine(2, 2, 5)};
  EXPECT_EQ(error_here([&] { load(path("m.safetensors"), smaller); }),
            "load: 'DIR/m.safetensors': every entry of the source must have its place; out.bias is in the source only; "
            "load into what was saved (a state: of the same rule), or with {.strict = false}");
  load(path("m.safetensors"), smaller, {.strict = false});
  EXPECT_EQ(smaller.hidden.bias.to_vector(), (std::vector<float>{1, 1}));
  struct Misshapen {
    Affine hidden, out;
  } misshapen{affine(2, 2, 5), affine(2, 3, 5)};
  EXPECT_EQ(
      error_here([&] { load(path("m.safetensors"), misshapen); }),
      "load: 'DIR/m.safetensors': sizes must match; out.weight is (2, 3) and the source has (2, 2); build the model "
      "with the sizes it was saved with");
  EXPECT_EQ(misshapen.hidden.bias.to_vector(), (std::vector<float>{5, 5}));
}

TEST_F(SaveAndLoad, TheExtensionDecides) {
  EXPECT_EQ(error_here([&] { save(path("m.bin"), pair(1)); }),
            "save: the extension of the file must name a supported format; got 'DIR/m.bin'; supported: .safetensors "
            ".safetensors.index.json .bson .jld2 .npz .npy");
  EXPECT_EQ(error_here([&] { load(path("m")); }),
            "load: the extension of the file must name a supported format; got 'DIR/m'; supported: .safetensors "
            ".safetensors.index.json .bson .jld2 .npz .npy .pt .pth");
  EXPECT_TRUE(names_in_folder().empty());
}

TEST_F(SaveAndLoad, NamesThatAFileCannotHoldAreRefused) {
  EXPECT_EQ(
      error_here([&] { save(path("m.safetensors"), ones({2})); }),
      "save: an array in a file needs a name; one for 'DIR/m.safetensors' has none; write save(path, {{\"x\", x}})");
  EXPECT_EQ(error_here([&] {
              save(path("m.safetensors"), {{"x", 1}, {"x", 2}});
            }),
            "save: every entry needs a name of its own; got 'x' twice; rename it");
  EXPECT_EQ(
      error_here([&] {
        save(path("m.safetensors"), {{"__metadata__", 1}});
      }),
      "save: every array needs a name of its own, other than __metadata__; '__metadata__' for 'DIR/m.safetensors' is "
      "not; rename it");
  EXPECT_EQ(error_here([&] {
              save(path("m.safetensors"), {{"\xff", 1}});
            }),
            "save: names and texts must be UTF-8; one has other bytes; rename it, or save bytes as an array of UInt8");
  EXPECT_TRUE(names_in_folder().empty());
}

TEST_F(SaveAndLoad, AnEntryThatIsNotThereIsNamed) {
  save(path("m.safetensors"), {{"a", 1}, {"b", 2.0}});
  const SavedFile file = load(path("m.safetensors"));
  EXPECT_FALSE(file.contains("c"));
  EXPECT_EQ(error_of([&] { file["c"]; }), "load: an array must be in the file; 'c' is not; it has: a, b");
  EXPECT_EQ(error_of([&] { file.part("model"); }),
            "load: an entry must be in the file; 'model' is not; arrays() lists the names of all arrays");
}

TEST_F(SaveAndLoad, AFullDiskLeavesTheOldFile) {
  save(path("m.safetensors"), pair(1));
  const std::string before = bytes_of_file("m.safetensors");
  struct Large {
    Array x = ones({1000, 1000});
  } large;
  eval(large.x);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text = error_here([&] { save(path("m.safetensors"), large); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(text, "write: cannot write 'DIR/m.safetensors'; the system refused to store the data: File too large");
  EXPECT_EQ(bytes_of_file("m.safetensors"), before);
  EXPECT_EQ(names_in_folder(), std::vector<std::string>{"m.safetensors"});
}

TEST_F(SaveAndLoad, AFolderThatDoesNotExistIsNamed) {
  EXPECT_EQ(error_here([&] { save(path("no/m.safetensors"), pair(1)); }),
            "write: cannot write 'DIR/no/m.safetensors'; cannot create a file in its directory: No such file or "
            "directory");
}

}  // namespace
}  // namespace rosin

#endif
