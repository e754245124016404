// NumPy's files: real ones, ours read by NumPy, NumPy's read by us.
#include <gtest/gtest.h>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/io.hpp>
#include <rosin/loader.hpp>
#include <rosin/movement.hpp>
#include <rosin/npy.hpp>

#include "base/file.hpp"
#include "io/python_testing.hpp"
#include "io/real_files_testing.hpp"
#include "io/zip.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

TEST(NpyFiles, RealFilesHoldWhatTheirMakersSay) {
  const std::string folder = real_files("npy/");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder << " (set ROSIN_FILES)";
  for (const char* kind : {"f32LE", "int", "u64BE"}) {
    const std::string name = folder + "arraymancer_" + kind;
    EXPECT_EQ(load_npy(name + ".npy").to_vector<double>(), (std::vector<double>{1, 2, 3, 4})) << name;
    for (const char* order : {"_2D_c.npy", "_2D_f.npy"}) {
      const Array x = load_npy(name + order);
      EXPECT_EQ(x.shape(), (Shape{2, 4}));
      EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 5, 2, 6, 3, 7, 4, 8})) << name << order;
    }
  }
  EXPECT_EQ(load_npy(folder + "arraymancer_u64BE.npy").dtype(), UInt64);
  EXPECT_EQ(load_npy(folder + "libnpy_double.npy").dtype(), Float64);
  EXPECT_GT(load_npy(folder + "tinygrad_openpilot.npy").count(), 1000);
  const std::string text = error_of([&] { load_npy(folder + "cnpy_out.npy"); }, ErrorKind::dtype);
  EXPECT_NE(text.find("has a structure; convert it with NumPy's astype"), std::string::npos) << text;
  const SavedFile archive = load(folder + "candle_test.npz");
  ASSERT_EQ(archive.arrays().size(), 2u);
  EXPECT_EQ(archive["x"].to_vector<double>(), arange(10).to_vector<double>());
  EXPECT_EQ(archive["x_plus_one"].to_vector<double>(), arange(1, 11, 1).to_vector<double>());
  EXPECT_EQ(list_file(folder + "candle_test.npz").tensors[0].name, archive.arrays()[0].name);
}

/// What np.arange(24).reshape(2, 3, 4) is.
Array numpys_range() { return permute(reshape(arange(24), {4, 3, 2}), {2, 1, 0}); }

class NumPy : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    python_ = python_with("numpy");
    if (python_.empty()) GTEST_SKIP() << "no numpy (python3-numpy, or set PYTHON)";
  }
  std::string python(const std::string& code) const {
    write("code.py", "import numpy as np\nimport os\nos.chdir('" + path("") + "')\n" + code);
    return output_of(python_ + " " + path("code.py"));
  }

 private:
  std::string python_;
};

TEST_F(NumPy, ReadsWhatWeWrite) {
  const Array x = reshape(arange(24), {2, 3, 4});
  save_npy(path("x.npy"), cast(x, Float32));
  save_npy(path("scalar.npy"), Array(std::span<const double>(std::vector<double>{2.5}), Shape()));
  save_npy(path("empty.npy"), zeros({0, 3}));
  std::vector<NamedArray> arrays;
  for (DType type : {Bool, UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, Float32, Float64,
                     ComplexF32, ComplexF64}) {
    arrays.push_back({to_string(type), cast(cast(x, Float32) > 11, type)});
  }
  save(path("all.npz"), arrays);
  EXPECT_EQ(python("x = np.load('x.npy'); print(x.dtype, x.shape, x[1, 2, 3], x[0, 1, 0])\n"
                   "print(np.load('scalar.npy'), np.load('empty.npy').shape)\n"
                   "z = np.load('all.npz')\n"
                   "print(*[z[k].dtype for k in z.files], {z[k].shape for k in z.files}, {int(z[k].sum().real) for k "
                   "in z.files})\n"),
            "float32 (2, 3, 4) 23.0 2.0\n"
            "2.5 (0, 3)\n"
            "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128 "
            "{(2, 3, 4)} {12}\n");
}

TEST_F(NumPy, WritesWhatWeRead) {
  ASSERT_EQ(python("x = np.arange(24).reshape(2, 3, 4)\n"
                   "for t in 'bool u1 i1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16'.split():\n"
                   "  for e in '<>':\n"
                   "    y = (x > 5).astype(np.dtype(t).newbyteorder(e))\n"
                   "    np.save(t + ('l' if e == '<' else 'b') + 'c.npy', y)\n"
                   "    np.save(t + ('l' if e == '<' else 'b') + 'f.npy', np.asfortranarray(y))\n"
                   "np.savez_compressed('z.npz', x=x.astype('f4'), s=np.float64(1.5))\n"
                   "np.savez('s.npz', x=x.astype('>i4'))\n"
                   "np.lib.format.write_array(open('v3.npy', 'wb'), x, version=(3, 0))\n"
                   "np.save('o.npy', np.array([None, 1]), allow_pickle=True)\n"
                   "np.save('t.npy', np.array(['a']))\n"),
            "");
  const std::vector<double> expected = cast(numpys_range() > 5, Float64).to_vector<double>();
  int files = 0;
  for (const std::string& name : names_in_folder()) {
    const bool kept = name == "o.npy" || name == "t.npy" || name == "v3.npy" || !name.ends_with(".npy");
    if (kept) continue;
    const Array x = load_npy(path(name));
    EXPECT_EQ(x.shape(), (Shape{2, 3, 4})) << name;
    EXPECT_EQ(is_complex(x.dtype()) ? real(x).to_vector<double>() : x.to_vector<double>(), expected) << name;
    ++files;
  }
  EXPECT_EQ(files, 14 * 4);
  EXPECT_EQ(load_npy(path("v3.npy")).to_vector<int64_t>(), numpys_range().to_vector<int64_t>());
#ifdef ROSIN_HAVE_ZLIB
  const SavedFile packed = load(path("z.npz"));
  EXPECT_EQ(packed["x"].to_vector<double>(), numpys_range().to_vector<double>());
  EXPECT_EQ(packed["s"].item<double>(), 1.5);
#endif
  EXPECT_EQ(load(path("s.npz"))["x"].dtype(), Int32);
  for (const char* name : {"o.npy", "t.npy"}) {
    EXPECT_NE(error_of([&] { load_npy(path(name)); }, ErrorKind::dtype).find("elements must be numbers or Bool"),
              std::string::npos);
  }
}

TEST_F(NumPy, ReadsEntriesWithSizesOf64Bits) {
  const std::string head = "head", body = "body";
  {
    AtomicFile file(path("wide.zip"));
    ZipWriter zip(file, 0);  // as if every number were too large
    zip.add("a.txt", head, body.data(), body.size());
    zip.add("b.txt", "", "x", 1);
    zip.finish();
    file.commit();
  }
  EXPECT_EQ(
      python("import zipfile\nz = zipfile.ZipFile('wide.zip')\nprint(z.testzip(), z.read('a.txt'), z.read('b.txt'))\n"),
      "None b'headbody' b'x'\n");
  const InputFile file(path("wide.zip"));
  const auto entries = read_zip(file);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(unpack_entry(file, entries[0]).size(), 8u);
}

#ifdef ROSIN_HAVE_ZLIB
TEST_F(NumPy, ReadsWhatWeCompress) {
  const Array x = reshape(arange(0.0, 60000.0, 1.0), {200, 300});
  save(path("c.npz"), {{"x", x}, {"empty", zeros({0, 3})}, {"step", 5}}, {.compress = true});
  EXPECT_EQ(python("import numpy as np, zipfile\n"
                   "z = zipfile.ZipFile('c.npz')\n"
                   "print(z.testzip(), [(i.filename, i.compress_type) for i in z.infolist()])\n"
                   "print(z.getinfo('x.npy').compress_size < z.getinfo('x.npy').file_size)\n"
                   "f = np.load('c.npz')\n"
                   "print(f['x'].shape, f['x'][1, 2], f['x'].sum(dtype='f8'), f['empty'].shape, f['step'])\n"),
            "None [('x.npy', 8), ('empty.npy', 8), ('step.npy', 8)]\nTrue\n"
            "(200, 300) 401.0 1799970000.0 (0, 3) 5\n");
  EXPECT_EQ(load(path("c.npz"))["x"].to_vector<double>(), x.to_vector<double>());
}

TEST_F(NumPy, ReadsCompressedEntriesWithSizesOf64Bits) {
  const std::string text(100000, 'a');
  {
    AtomicFile file(path("wide.zip"));
    ZipWriter zip(file, 0);
    zip.add("a.txt", "head", text.data(), text.size(), true);
    zip.finish();
    file.commit();
  }
  EXPECT_EQ(python("import zipfile\nz = zipfile.ZipFile('wide.zip')\nprint(z.testzip(), len(z.read('a.txt')))\n"),
            "None 100004\n");
  const InputFile file(path("wide.zip"));
  EXPECT_EQ(unpack_entry(file, read_zip(file).at(0)).size(), 100004u);
}
#endif

class NpyModels : public ScratchFolder {};

TEST_F(NpyModels, EntriesWithoutBytesAreAsGoodAsOthers) {
  save(path("e.npz"), {{"x", zeros({0, 2})}});
  EXPECT_EQ(load(path("e.npz"))["x"].shape(), (Shape{0, 2}));
  AtomicFile file(path("nothing.npz"));
  ZipWriter zip(file);
  zip.add("x.npy", "", nullptr, 0);  // not even a header
  zip.finish();
  file.commit();
  EXPECT_NE(error_of([&] { load(path("nothing.npz")); }, ErrorKind::io).find("cut off"), std::string::npos);
}

TEST_F(NpyModels, AModelGoesThroughAnArchive) {
  const Dense model(3, 2);
  Dense other(3, 2);
  save(path("m.npz"), model);
  load(path("m.npz"), other);
  EXPECT_EQ(other.weight.to_vector(), model.weight.to_vector());
  int64_t step = 0;
  save(path("run.npz"), {{"model", model}, {"step", 5}});
  load(path("run.npz"), {{"model", other}, {"step", step}});
  EXPECT_EQ(step, 5);
  EXPECT_EQ(error_here([&] {
              save(path("t.npz"), {{"note", "text"}});
            }),
            "save: NumPy's files hold arrays; got the text 'note' for 'DIR/t.npz'; save it as .safetensors or .bson");
  EXPECT_EQ(error_here([&] { save(path("m.npy"), model); }),
            "save: a .npy file holds one array; got 2 for 'DIR/m.npy'; save them as .npz");
  EXPECT_EQ(error_here([&] { save(path("m.bson"), model, {.compress = true}); }),
            "save: {.compress = true} is for .npz files; got 'DIR/m.bson'; save it without, or as .npz");
}

TEST_F(NpyModels, AFileIsDataForALoader) {
  const Array x = reshape(arange(0.0, 30.0, 1.0), {10, 3}), y = arange(10);
  save_npy(path("x.npy"), x);
  save_npy(path("y.npy"), y);
  const NpyData rows(path("x.npy"));
  EXPECT_EQ(rows.numobs(), 10);
  EXPECT_EQ(rows.shape(), (Shape{3}));
  EXPECT_EQ(rows.getobs(std::vector<int64_t>{4, 1}).to_vector<double>(), (std::vector<double>{4, 14, 24, 1, 11, 21}));
  int64_t seen = 0;
  DataLoader loader(npy_data(path("x.npy"), path("y.npy")), {.batchsize = 4, .num_workers = 2});
  for (auto [features, labels] : loader) {
    EXPECT_EQ(features.shape(), (Shape{3, labels.count()}));
    EXPECT_EQ(labels.to_vector<int64_t>()[0], seen);
    EXPECT_EQ(features.to_vector<double>()[2], 20.0 + static_cast<double>(seen));
    seen += labels.count();
  }
  EXPECT_EQ(seen, 10);
  save_npy(path("short.npy"), arange(9));
  EXPECT_EQ(error_here([&] { npy_data(path("x.npy"), path("short.npy")); }),
            "npy_data: the files must have as many observations; got 10 and 9; write them together");
  EXPECT_EQ(error_of([&] { rows.getobs(std::vector<int64_t>{10}); }),
            "getobs: an observation must be below their number; got 10 of 10; count from 0");
}

TEST_F(NpyModels, ObservationsOfPicturesKeepTheirShape) {
  const Array x = reshape(arange(24), {2, 3, 4});
  save_npy(path("x.npy"), x);
  const Array both = NpyData(path("x.npy")).getobs(std::vector<int64_t>{1, 0});
  EXPECT_EQ(both.shape(), (Shape{3, 4, 2}));
  EXPECT_EQ(slice(both, 2, 0, 1).to_vector(), slice(x, 0, 1, 2).to_vector());
}

}  // namespace
}  // namespace rosin
