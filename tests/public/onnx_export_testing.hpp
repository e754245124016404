// What tests of written ONNX files share: a folder, and the comparison of a function with what onnxruntime and our own
// reader make of its file (tests/check_onnx.py; PYTHON names the interpreter).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <rosin/onnx.hpp>
#include <rosin/rosin.hpp>

#include "../../src/io/python_testing.hpp"

namespace rosin {

namespace fs = std::filesystem;

class OnnxExport : public ::testing::Test {
 protected:
  void SetUp() override {
    seed(7);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// What the function gives goes beside the file, and the file into our reader.
  template <class F> void add_case(const F& f, const std::vector<NamedArray>& inputs) {
    Arrays given;
    std::vector<NamedArray> both;
    for (const NamedArray& input : inputs) {
      given.push_back(input.value);
      both.push_back({"input." + input.name, input.value});
    }
    const Arrays wanted = f(given);
    const onnx::Model model = onnx::load(path("m.onnx"));
    const Arrays got = model(std::span<const Array>(given));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].shape(), wanted[i].shape());
      EXPECT_EQ(got[i].dtype(), wanted[i].dtype());
      EXPECT_TRUE(allclose(cast(got[i], Float64), cast(wanted[i], Float64), {.rtol = 1e-4, .atol = 1e-5}));
      both.push_back({"output." + model.outputs()[i].name, wanted[i]});
    }
    cases_ += " " + path(std::to_string(count_) + ".npz");
    save(path(std::to_string(count_++) + ".npz"), both);
  }

  /// The next file is another one, checked together with this.
  void another_file() {
    fs::rename(path("m.onnx"), path(std::to_string(count_) + ".onnx"));
    done_ += " " + path(std::to_string(count_++) + ".onnx") + std::exchange(cases_, "");
  }

  /// Runs the cases of the files so far in onnxruntime, where there is one.
  void check_with_onnxruntime() {
    const std::string python = testing::python_with("numpy, onnx, onnxruntime");
    if (python.empty()) GTEST_SKIP() << "no Python with numpy, onnx and onnxruntime";
    const std::string script = std::string(ROSIN_SOURCE_DIR) + "/tests/check_onnx.py";
    EXPECT_EQ(testing::output_of(python + " " + script + done_ + " " + path("m.onnx") + cases_), "right\n");
    cases_.clear();
    done_.clear();
  }

  /// A function of one array, at the example and with other numbers of observations.
  template <class F> void check(const F& f, const Array& x, const onnx::SaveOptions& options = {}) {
    onnx::save(path("m.onnx"), f, x, options);
    const auto call = [&](const Arrays& given) { return Arrays{f(given[0])}; };
    add_case(call, {{"input", x}});
    for (const int64_t batch : {1, 5}) {
      std::vector<int64_t> order(static_cast<size_t>(batch));
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i * 7) % x.size(-1);
      add_case(call, {{"input", gather(x, Array(order, {batch}), -1)}});
    }
    check_with_onnxruntime();
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("rosin-onnx-export-" + std::to_string(getpid()));
  std::string cases_, done_;
  int count_ = 0;
};

}  // namespace rosin
