// A C library over rosin's DLPack functions, which ../dlpack_test.py builds and checks.py loads into Python.
#include <rosin/array.hpp>
#include <rosin/create.hpp>
#include <rosin/dlpack.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include <string>

using namespace rosin;

namespace {

std::string last_error;

DlpackDims dims_of(int reversed) { return reversed ? DlpackDims::reversed : DlpackDims::same; }

template <class Tensor> Array* imported(Tensor* tensor, int reversed) {
  try {
    return new Array(from_dlpack(tensor, dims_of(reversed)));
  } catch (const Error& error) {
    last_error = error.what();
    return nullptr;
  }
}

}  // namespace

extern "C" {

/// (rows, columns) with 0, 1, 2, ... down the columns, of the element type with this number.
Array* counted(int64_t rows, int64_t columns, int type) {
  return new Array(reshape(cast(arange(rows * columns), static_cast<DType>(type)), {rows, columns}));
}
void drop(Array* x) { delete x; }
const char* error_text() { return last_error.c_str(); }

void* export_versioned(const Array* x, int reversed) { return to_dlpack(*x, dims_of(reversed)); }
void* export_unversioned(const Array* x, int reversed) { return to_unversioned_dlpack(*x, dims_of(reversed)); }
Array* import_versioned(void* tensor, int reversed) {
  return imported(static_cast<dlpack::ManagedTensorVersioned*>(tensor), reversed);
}
Array* import_unversioned(void* tensor, int reversed) {
  return imported(static_cast<dlpack::ManagedTensor*>(tensor), reversed);
}

int64_t size_of_dim(const Array* x, int dim) { return x->size(dim); }
const char* type_of(const Array* x) { return to_string(x->dtype()); }
double item(const Array* x, int64_t i, int64_t j) { return x->item(i, j); }
double sum_of(const Array* x) { return sum(cast(*x, Float64)).item(); }
/// Where the elements of a Float32 array stand; evaluates it.
const void* address(const Array* x) { return x->data<float>().data(); }
}
