// Both directions of DLPack. What is given away holds a handle of the array; what comes in is a borrowed leaf.
#include <rosin/dlpack.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "graph/device_facts.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "ops/shapes.hpp"
#include "ops/strided.hpp"

namespace rosin {
namespace {

constexpr int32_t cpu_memory = 1, pinned_memory = 3;

struct Correspondence {
  DType type;
  uint8_t code, bits;
};
constexpr Correspondence types[dtype_count] = {
    {Bool, 6, 8},      {UInt8, 1, 8},    {Int8, 0, 8},     {Int16, 0, 16},      {UInt16, 1, 16},
    {Int32, 0, 32},    {UInt32, 1, 32},  {Int64, 0, 64},   {UInt64, 1, 64},     {Float16, 2, 16},
    {BFloat16, 4, 16}, {Float32, 2, 32}, {Float64, 2, 64}, {ComplexF32, 5, 64}, {ComplexF64, 5, 128}};

static_assert(std::all_of(std::begin(types), std::end(types),
                          [](const Correspondence& row) { return &row - types == static_cast<int>(row.type); }));

constexpr const char* op = "dlpack";

// --- Out. ---

/// A tensor with what it refers to.
template <class Managed> struct Exported {
  Managed managed{};
  Array array;
  std::array<int64_t, Shape::max_rank> shape{}, strides{};
};

dlpack::DataType type_of(DType type) {
  const Correspondence& row = types[static_cast<size_t>(type)];
  return {row.code, row.bits, 1};
}

/// x with its values in memory of the CPU.
void check_export(const Array& x) {
  if (x.is_nothing()) refuse(ErrorKind::argument, op, "there must be an array", "nothing", "give it a value first");
  const Node& node = *x.node();
  if (is_scalar(node)) {
    refuse(ErrorKind::argument, op, "an array must have memory", "a C++ number", "read it with item()");
  }
  if (node.device != 0) {
    refuse(ErrorKind::device, op, "the elements must be in memory of the CPU",
           "an array on " + device_text(node.device), "copy it with cpu(x)");
  }
  eval(x);
}

template <class Managed> Managed* exported(const Array& x, DlpackDims dims) {
  check_export(x);
  auto made = std::make_unique<Exported<Managed>>();
  made->array = x;
  const Shape shape = x.shape();
  std::copy(shape.begin(), shape.end(), made->shape.begin());
  int64_t stride = 1;
  for (size_t d = 0; d < static_cast<size_t>(shape.rank()); stride *= made->shape[d++]) made->strides[d] = stride;
  if (dims == DlpackDims::reversed) {
    std::reverse(made->shape.begin(), made->shape.begin() + shape.rank());
    std::reverse(made->strides.begin(), made->strides.begin() + shape.rank());
  }
  made->managed.tensor = {
      x.node()->data(), {cpu_memory, 0}, shape.rank(), type_of(x.dtype()), made->shape.data(), made->strides.data(), 0};
  made->managed.context = made.get();
  made->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->context); };
  return &made.release()->managed;
}

// --- In. ---

DType type_of(const dlpack::DataType& given) {
  for (const Correspondence& row : types) {
    if (given.lanes == 1 && row.code == given.code && row.bits == given.bits) return row.type;
  }
  const std::string numbers = "code " + std::to_string(given.code) + ", " + std::to_string(given.bits) + " bits, " +
                              std::to_string(given.lanes) + " lanes";
  refuse(ErrorKind::dtype, op, "a tensor must have an element type of arrays", numbers, "convert it before");
}

void check_import(const dlpack::Tensor& tensor) {
  if (tensor.device.type != cpu_memory && tensor.device.type != pinned_memory) {
    refuse(ErrorKind::device, op, "the elements must be in memory of the CPU",
           "a device of DLPack's type " + std::to_string(tensor.device.type), "copy the tensor to the CPU before");
  }
  if (tensor.ndim < 0 || tensor.ndim > Shape::max_rank) {
    refuse(ErrorKind::shape, op, "a tensor has at most 8 dims", std::to_string(tensor.ndim), "reshape it before");
  }
  const Shape fits(std::span<const int64_t>(tensor.shape, static_cast<size_t>(tensor.ndim)));  // Error where not
}

/// Sizes and strides by our dims.
struct Form {
  std::array<int64_t, Shape::max_rank> shape{}, strides{};
};

Form form_of(const dlpack::Tensor& tensor, DlpackDims dims) {
  Form form;
  const Shape given(std::span<const int64_t>(tensor.shape, static_cast<size_t>(tensor.ndim)));  // checks the sizes
  int64_t row_major = 1;
  for (int d = given.rank() - 1; d >= 0; row_major *= given[d--]) {
    form.shape[static_cast<size_t>(d)] = given[d];
    form.strides[static_cast<size_t>(d)] = tensor.strides ? tensor.strides[d] : row_major;
  }
  if (dims == DlpackDims::same) return form;
  std::reverse(form.shape.begin(), form.shape.begin() + tensor.ndim);
  std::reverse(form.strides.begin(), form.strides.begin() + tensor.ndim);
  return form;
}

Array imported(const dlpack::Tensor& tensor, DlpackDims dims, MemoryOwner owner) {
  check_import(tensor);
  const DType type = type_of(tensor.dtype);
  const Form form = form_of(tensor, dims);
  const auto rank = static_cast<size_t>(tensor.ndim);
  return strided_array(static_cast<const unsigned char*>(tensor.data) + tensor.byte_offset, type,
                       Shape(std::span<const int64_t>(form.shape.data(), rank)),
                       std::span<const int64_t>(form.strides.data(), rank), std::move(owner));
}

template <class Managed> MemoryOwner owner_of(Managed* tensor) {
  if (!tensor) refuse(ErrorKind::argument, op, "there must be a tensor", "a null pointer", "unpack the capsule first");
  return {tensor, [](void* kept) noexcept {
            auto* managed = static_cast<Managed*>(kept);
            if (managed->deleter) managed->deleter(managed);
          }};
}

}  // namespace

dlpack::ManagedTensorVersioned* to_dlpack(const Array& x, DlpackDims dims) {
  auto* made = exported<dlpack::ManagedTensorVersioned>(x, dims);
  made->version = {1, 0};
  made->flags = dlpack::read_only;
  return made;
}

dlpack::ManagedTensor* to_unversioned_dlpack(const Array& x, DlpackDims dims) {
  return exported<dlpack::ManagedTensor>(x, dims);
}

Array from_dlpack(dlpack::ManagedTensorVersioned* tensor, DlpackDims dims) {
  MemoryOwner owner = owner_of(tensor);
  if (tensor->version.major != 1) {
    refuse(ErrorKind::argument, op, "the protocol must be of version 1", std::to_string(tensor->version.major),
           "ask its maker for one");
  }
  return imported(tensor->tensor, dims, std::move(owner));
}

Array from_dlpack(dlpack::ManagedTensor* tensor, DlpackDims dims) {
  MemoryOwner owner = owner_of(tensor);
  return imported(tensor->tensor, dims, std::move(owner));
}

}  // namespace rosin
