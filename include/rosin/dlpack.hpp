// Arrays for other libraries and theirs for us without a copy, by the DLPack protocol (NumPy, PyTorch, JAX, CuPy; its
// public specification is at https://dmlc.github.io/dlpack). The structs are declared here as the protocol has them, so
// that no other header is needed; where <dlpack/dlpack.h> is included, cast the pointers. Read next: borrow.hpp.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin::dlpack {

struct Device {
  int32_t type;  // 1: memory of the CPU; 3: such memory that a GPU can read
  int32_t id;
};

struct DataType {
  uint8_t code;  // 0: signed, 1: unsigned, 2: float, 4: bfloat, 5: complex, 6: bool
  uint8_t bits;
  uint16_t lanes;
};

/// DLTensor.
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

/// DLManagedTensor, of protocols before 1.0: in Python a capsule "dltensor", "used_dltensor" once it is consumed.
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

struct Version {
  uint32_t major, minor;
};

inline constexpr uint64_t read_only = 1;

/// DLManagedTensorVersioned: in Python a capsule "dltensor_versioned", "used_dltensor_versioned" once it is consumed.
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;
  Tensor tensor;
};

/// Names of the Python capsules that the structs travel in.
inline constexpr const char* capsule_name = "dltensor";
inline constexpr const char* versioned_capsule_name = "dltensor_versioned";

}  // namespace rosin::dlpack

namespace rosin {

/// How dims of both sides correspond. `same`: element (i, j) stays (i, j); our memory is column-major, theirs mostly
/// row-major, so that a row-major tensor becomes a permuted array. `reversed`: element (i, j) becomes (j, i), which
/// suits both: a PyTorch batch (N, C, H, W) is our (W, H, C, N), a matrix (batch, features) our (features, batch).
enum class DlpackDims : uint8_t { same, reversed };

/// A tensor on the elements of x, marked as read-only; they live until its deleter is called, which may happen on any
/// thread. Evaluates what is pending. Errors: device (not on the CPU: cpu(x)), argument (a C++ number, nothing).
ROSIN_API dlpack::ManagedTensorVersioned* to_dlpack(const Array& x, DlpackDims dims = DlpackDims::same);
/// The same for consumers that know no versions. It cannot be marked there, so nothing may be written to it.
ROSIN_API dlpack::ManagedTensor* to_unversioned_dlpack(const Array& x, DlpackDims dims = DlpackDims::same);

/// An array on the elements of a tensor, borrowed as by borrow_strided (a tensor with gaps is copied), and nothing may
/// change them while it lives. Takes the tensor over, on an Error too: its deleter is called after the last use.
/// (Rename a Python capsule first.) Errors: device (memory that the CPU cannot read), dtype (a type that arrays lack),
/// argument (a null pointer, a major version other than 1, not aligned), shape (more than eight dims).
ROSIN_API Array from_dlpack(dlpack::ManagedTensorVersioned* tensor, DlpackDims dims = DlpackDims::same);
ROSIN_API Array from_dlpack(dlpack::ManagedTensor* tensor, DlpackDims dims = DlpackDims::same);

}  // namespace rosin
