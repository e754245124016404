// Matrices of Eigen, pictures as cv::Mat keeps them, mdspan and DLPack: through the real library where it is there, and
// through classes with the same members where it is not.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/dlpack.hpp>
#include <rosin/eigen.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/image_memory.hpp>
#include <rosin/mdspan.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#if __has_include(<eigen3/Eigen/Core>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <eigen3/Eigen/Core>
#pragma GCC diagnostic pop
#define HAVE_EIGEN
#endif

#include "../error_testing.hpp"

namespace rosin {
namespace {

using Floats = std::vector<float>;

Floats counted(size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// --- Eigen. ---

#ifdef HAVE_EIGEN
TEST(EigenMemory, AMatrixThatIsMovedInIsTheArray) {
  Eigen::MatrixXf matrix(2, 3);
  matrix << 0, 1, 2, 3, 4, 5;
  const float* memory = matrix.data();
  const Array x = from_eigen(std::move(matrix));
  EXPECT_EQ(x.data<float>().data(), memory);
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.item(1, 0), 3);
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(2, 2);
  rows << 1, 2, 3, 4;
  EXPECT_EQ(from_eigen(rows).item(0, 1), 2);
  EXPECT_EQ(from_eigen(Eigen::Vector3f(1, 2, 3)).shape(), Shape({3}));  // its elements stand inside the object
  EXPECT_EQ(sum(from_eigen(Eigen::Vector3f(1, 2, 3))).item(), 6);
}

TEST(EigenMemory, PartsOfAMatrixAreReadByTheirStrides) {
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Random(5, 4);
  const Eigen::Ref<const Eigen::MatrixXf> part = matrix.block(1, 1, 3, 2);
  const Array x = from_eigen(part, nullptr);
  const Eigen::Map<const Eigen::VectorXf, 0, Eigen::InnerStride<>> every(matrix.data(), 4, Eigen::InnerStride<>(5));
  const Array row = from_eigen(every, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(x.item(i, 1), matrix(i + 1, 2));
  for (int j = 0; j < 4; ++j) EXPECT_EQ(row.item(j), matrix(0, j));
}

TEST(EigenMemory, AnArrayIsAMap) {
  const Array x = reshape(arange(0.0, 6.0, 1.0), {2, 3}) * 2;
  const auto matrix = as_eigen<Eigen::Map<const Eigen::MatrixXf>>(x);
  EXPECT_EQ(matrix.data(), x.data<float>().data());
  EXPECT_EQ(matrix(1, 2), 10);
  const Array v = x.size(0) * ones({4});
  EXPECT_EQ(as_eigen<Eigen::Map<const Eigen::VectorXf>>(v).sum(), 8);
  EXPECT_EQ(error_of([&] { as_eigen<Eigen::Map<const Eigen::VectorXf>>(x); }, ErrorKind::shape),
            "as_eigen: the array must have at most 1 dim; got (2, 3); reshape it, or ask for another number of dims");
  EXPECT_THROW(as_eigen<Eigen::Map<const Eigen::MatrixXd>>(x), Error);
}
#else
TEST(EigenMemory, IsTestedWhereEigenIsInstalled) { GTEST_SKIP() << "there is no <eigen3/Eigen/Core> (libeigen3-dev)"; }
#endif

// --- Pictures. ---

/// What cv::Mat has; copies share the pixels.
struct Picture {
  std::shared_ptr<std::vector<uint8_t>> owner;
  unsigned char* data;
  int rows, cols;
  size_t step;
  int count_of_channels;
  int channels() const { return count_of_channels; }
  size_t elemSize1() const { return 1; }
};

Picture picture(int rows, int cols, int channels, size_t gap) {
  const size_t step = static_cast<size_t>(cols * channels) + gap;
  auto owner = std::make_shared<std::vector<uint8_t>>(step * static_cast<size_t>(rows));
  std::iota(owner->begin(), owner->end(), uint8_t{0});
  return {owner, owner->data(), rows, cols, step, channels};
}

TEST(ImageMemory, PixelsStandByWidthHeightAndChannel) {
  for (const size_t gap : {size_t{0}, size_t{5}}) {
    Picture original = picture(3, 4, 2, gap);
    const std::weak_ptr<std::vector<uint8_t>> watched = original.owner;
    Array x = from_mat<uint8_t>(original);
    original = {};
    EXPECT_EQ(watched.expired(), gap > 0);  // without gaps nothing is copied
    EXPECT_EQ(x.shape(), Shape({4, 3, 2}));
    for (int w = 0; w < 4; ++w) {
      for (int h = 0; h < 3; ++h) {
        for (int c = 0; c < 2; ++c)
          EXPECT_EQ(x.item(w, h, c), static_cast<double>((8 + gap) * static_cast<size_t>(h)) + 2 * w + c);
      }
    }
  }
}

TEST(ImageMemory, ElementsAndRowsMustFit) {
  const Picture original = picture(2, 2, 2, 0);
  EXPECT_EQ(error_of([&] { from_mat<float>(original); }, ErrorKind::dtype),
            "from_mat: elements of Float32 have 4 bytes; got elements of 1; name the type that stands there");
  const Floats values = counted(8);
  EXPECT_EQ(error_of([&] { borrow_image(values.data(), 2, 2, 1, 9, nullptr); }, ErrorKind::argument),
            "borrow_image: a row must have a whole number of elements; got 9 bytes for elements of 4; copy the picture "
            "without its gaps");
  EXPECT_EQ(borrow_image(values.data(), 2, 2, 1, 8, nullptr).item(1, 1, 0), 3);
}

// --- mdspan. ---

/// What std::mdspan has.
struct View {
  using element_type = const float;
  const float* values;
  size_t sizes[2], steps[2];
  static constexpr size_t rank() { return 2; }
  const float* data_handle() const { return values; }
  size_t extent(size_t d) const { return sizes[d]; }
  size_t stride(size_t d) const { return steps[d]; }
};

TEST(MdspanMemory, AnyLayoutIsReadByItsStrides) {
  const Floats values = counted(6);
  const Array left = from_mdspan(View{values.data(), {2, 3}, {1, 2}}, nullptr);
  const Array right = from_mdspan(View{values.data(), {2, 3}, {3, 1}}, nullptr);
  EXPECT_EQ(left.data<float>().data(), values.data());
  EXPECT_EQ(left.item(1, 2), 5);
  EXPECT_EQ(right.item(1, 0), 3);
}

TEST(MdspanMemory, AnArrayIsAnMdspan) {
#ifdef __cpp_lib_mdspan
  const Array x = reshape(arange(0.0, 6.0, 1.0), {2, 3});
  const auto span = as_mdspan<float, 2>(x);
  EXPECT_EQ(span.data_handle(), x.data<float>().data());
  EXPECT_EQ((span[std::array{1, 2}]), 5);
  EXPECT_EQ(from_mdspan(span, nullptr).data<float>().data(), span.data_handle());
#else
  GTEST_SKIP() << "this standard library has no <mdspan>";
#endif
}

// --- DLPack. ---

TEST(DlpackMemory, AnArrayGoesOutAndComesBackAsTheSameMemory) {
  const Array x = reshape(arange(0.0, 6.0, 1.0), {2, 3}) * 1;
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(x);
  EXPECT_EQ(tensor->version.major, 1u);
  EXPECT_EQ(tensor->flags, dlpack::read_only);
  EXPECT_EQ(tensor->tensor.data, x.data<float>().data());
  EXPECT_EQ(tensor->tensor.strides[1], 2);
  const Array back = from_dlpack(tensor);
  EXPECT_EQ(back.data<float>().data(), x.data<float>().data());
  EXPECT_EQ(back.shape(), x.shape());
  const Array turned = from_dlpack(to_unversioned_dlpack(x, DlpackDims::reversed), DlpackDims::reversed);
  EXPECT_EQ(turned.data<float>().data(), x.data<float>().data());
  const Array transposed = from_dlpack(to_dlpack(x), DlpackDims::reversed);
  EXPECT_EQ(transposed.to_vector(), permute(x, {1, 0}).to_vector());
}

TEST(DlpackMemory, EveryElementTypeComesBack) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<DType>(i);
    const Array x = is_complex(type) ? cast(ones({3}), type) : cast(arange(3), type);
    const Array back = from_dlpack(to_dlpack(x));
    EXPECT_EQ(back.dtype(), type);
    EXPECT_TRUE(all(back == x).item<bool>()) << to_string(type);
  }
}

/// A tensor of somebody else on row-major values; counts how often it is let go.
struct Foreign {
  float values[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 3};
  int let_go = 0;
  dlpack::ManagedTensor tensor{{values, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0},
                               this,
                               [](dlpack::ManagedTensor* self) { ++static_cast<Foreign*>(self->context)->let_go; }};
};

TEST(DlpackMemory, ATensorWithoutStridesIsRowMajorAndKeptUntilTheLastUse) {
  Foreign foreign;
  Array x = from_dlpack(&foreign.tensor);
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(foreign.let_go, 0);
  EXPECT_EQ(x.item(1, 0), 3);  // permuted into memory of its own
  EXPECT_EQ(foreign.let_go, 1);
  x = from_dlpack(&foreign.tensor, DlpackDims::reversed);
  EXPECT_EQ(x.data<float>().data(), foreign.values);
  EXPECT_EQ(x.item(2, 1), 5);
  EXPECT_EQ(foreign.let_go, 1);
  x = {};
  EXPECT_EQ(foreign.let_go, 2);
}

TEST(DlpackMemory, WhatCannotBeTakenIsAnErrorAndLetGo) {
  const auto refused = [](ErrorKind kind, const auto& change) {
    Foreign foreign;
    change(foreign.tensor.tensor);
    const std::string text = error_of([&] { from_dlpack(&foreign.tensor); }, kind);
    EXPECT_EQ(foreign.let_go, 1) << text;
    return text;
  };
  using Tensor = dlpack::Tensor;
  EXPECT_EQ(
      refused(ErrorKind::device, [](Tensor& t) { t.device.type = 2; }),
      "dlpack: the elements must be in memory of the CPU; got a device of DLPack's type 2; copy the tensor to the "
      "CPU before");
  EXPECT_EQ(refused(ErrorKind::dtype, [](Tensor& t) { t.dtype.lanes = 4; }),
            "dlpack: a tensor must have an element type of arrays; got code 2, 32 bits, 4 lanes; convert it before");
  refused(ErrorKind::shape, [](Tensor& t) { t.ndim = 9; });
  refused(ErrorKind::shape, [](Tensor& t) { t.shape[1] = -1; });
  refused(ErrorKind::shape, [](Tensor& t) { t.shape[0] = t.shape[1] = int64_t{1} << 40; });
  refused(ErrorKind::argument, [](Tensor& t) { t.byte_offset = 1; });
  dlpack::ManagedTensorVersioned* newer = to_dlpack(ones({2}));
  newer->version.major = 2;
  error_of([&] { from_dlpack(newer); }, ErrorKind::argument);
  error_of([] { from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)); }, ErrorKind::argument);
  error_of([] { to_dlpack(Array()); }, ErrorKind::argument);
  error_of([] { to_dlpack(Array(2.0)); }, ErrorKind::argument);
}

}  // namespace
}  // namespace rosin
