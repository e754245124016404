"""Arrays of rosin in NumPy or PyTorch and theirs in rosin, without a copy.

usage: checks.py LIBRARY numpy|torch   (LIBRARY: built from library.cpp; run by ../dlpack_test.py)
"""

import ctypes
import gc
import sys
import unittest

TYPES = {"Bool": 0, "UInt8": 1, "Int8": 2, "Int16": 3, "UInt16": 4, "Int32": 5, "UInt32": 6, "Int64": 7, "UInt64": 8,
         "Float16": 9, "Float32": 11, "Float64": 12, "ComplexF32": 13, "ComplexF64": 14}
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}

lib = ctypes.CDLL(sys.argv[1])
for name in ("counted", "export_versioned", "export_unversioned", "import_versioned", "import_unversioned", "address"):
    getattr(lib, name).restype = ctypes.c_void_p
lib.item.restype = lib.sum_of.restype = ctypes.c_double
lib.size_of_dim.restype = ctypes.c_int64
lib.type_of.restype = lib.error_text.restype = ctypes.c_char_p
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
rename = ctypes.pythonapi.PyCapsule_SetName
rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
USED = {True: b"used_dltensor_versioned", False: b"used_dltensor"}  # (a capsule keeps the pointer to its name)


class Ours:
    """A handle of an array of rosin, which other libraries can take."""

    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)

    def __del__(self):
        lib.drop(self.handle)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        export = lib.export_versioned if versioned else lib.export_unversioned
        return new_capsule(export(self.handle, 0), NAMES[versioned], None)

    @property
    def address(self):
        return lib.address(self.handle)

    @property
    def shape(self):
        return tuple(lib.size_of_dim(self.handle, d) for d in (0, 1))

    @property
    def kind(self):
        return lib.type_of(self.handle).decode()

    def item(self, i, j):
        return lib.item(self.handle, ctypes.c_int64(i), ctypes.c_int64(j))


def counted(rows, columns, kind="Float32"):
    return Ours(lib.counted(ctypes.c_int64(rows), ctypes.c_int64(columns), TYPES[kind]))


def taken(tensor, turned=False):
    """An array of rosin on the memory of somebody else's tensor."""
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0))
    except TypeError:  # it knows no versions
        capsule = tensor.__dlpack__()
    versioned = name_of(capsule) == NAMES[True]
    pointer = pointer_of(capsule, NAMES[versioned])
    rename(capsule, USED[versioned])
    handle = (lib.import_versioned if versioned else lib.import_unversioned)(ctypes.c_void_p(pointer), int(turned))
    if not handle:
        raise ValueError(lib.error_text().decode())
    return Ours(handle)


class NumPy(unittest.TestCase):
    def test_sees_our_memory(self):
        x = counted(2, 3)
        a = numpy.from_dlpack(x)
        self.assertEqual(a.ctypes.data, x.address)
        self.assertEqual(a.tolist(), [[0, 2, 4], [1, 3, 5]])
        self.assertTrue(a.flags.f_contiguous)
        self.assertFalse(a.flags.writeable)

    def test_keeps_our_memory_when_we_let_it_go(self):
        x = counted(300, 200)
        a = numpy.from_dlpack(x)
        del x
        others = [counted(300, 200) for _ in range(5)]
        self.assertEqual(a.sum(dtype="float64"), 60000 * 59999 / 2)
        self.assertNotIn(a.ctypes.data, [other.address for other in others])

    def test_memory_is_ours(self):
        a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        x = taken(a, turned=True)
        self.assertEqual((x.address, x.shape), (a.ctypes.data, (3, 2)))
        self.assertEqual(x.item(2, 1), 5)
        y = taken(a)
        self.assertEqual((y.shape, y.item(1, 2), y.item(0, 1)), ((2, 3), 5, 1))

    def test_memory_is_kept_until_the_last_use(self):
        a = numpy.ones((4, 5), numpy.float32)
        before = sys.getrefcount(a)
        x = taken(a, turned=True)
        self.assertGreater(sys.getrefcount(a), before)
        self.assertEqual(lib.sum_of(x.handle), 20)
        del x
        gc.collect()
        self.assertEqual(sys.getrefcount(a), before)

    def test_views_with_gaps_and_turned_ones_keep_their_elements(self):
        a = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
        for view in (a[1:3, ::2], a[::-1], a.T, a[:, 1:2]):
            x = taken(view)
            self.assertEqual(x.shape, view.shape)
            rows, columns = view.shape
            self.assertEqual([[x.item(i, j) for j in range(columns)] for i in range(rows)], view.tolist())

    def test_types_correspond(self):
        for ours, theirs in (("UInt8", "uint8"), ("Int8", "int8"), ("Int16", "int16"), ("UInt16", "uint16"),
                             ("Int32", "int32"), ("UInt32", "uint32"), ("Int64", "int64"), ("UInt64", "uint64"),
                             ("Float16", "float16"), ("Float32", "float32"), ("Float64", "float64"),
                             ("ComplexF32", "complex64"), ("ComplexF64", "complex128")):
            with self.subTest(ours):
                a = numpy.from_dlpack(counted(2, 3, ours))
                self.assertEqual((a.dtype.name, a[1, 2].real), (theirs, 5))
                self.assertEqual(taken(numpy.arange(6).reshape(2, 3).astype(theirs)).kind, ours)


class Torch(unittest.TestCase):
    def test_sees_our_memory(self):
        x = counted(2, 3)
        t = torch.from_dlpack(x)
        self.assertEqual(t.data_ptr(), x.address)
        self.assertEqual(t.tolist(), [[0, 2, 4], [1, 3, 5]])
        del x
        self.assertEqual(t.sum().item(), 15)

    def test_memory_is_ours(self):
        t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        x = taken(t, turned=True)
        self.assertEqual((x.address, x.shape), (t.data_ptr(), (3, 2)))
        del t
        gc.collect()
        self.assertEqual(lib.sum_of(x.handle), 15)

    def test_types_correspond(self):
        for ours, theirs in (("Bool", torch.bool), ("UInt8", torch.uint8), ("Int64", torch.int64),
                             ("Float16", torch.float16), ("Float64", torch.float64), ("ComplexF32", torch.complex64)):
            self.assertEqual(torch.from_dlpack(counted(2, 3, ours)).dtype, theirs)
            self.assertEqual(taken(torch.zeros((2, 3), dtype=theirs)).kind, ours)
        self.assertEqual(taken(torch.zeros((2, 3), dtype=torch.bfloat16)).kind, "BFloat16")


if __name__ == "__main__":
    if sys.argv[2] == "numpy":
        import numpy
        del Torch
    else:
        import torch
        del NumPy
    unittest.main(argv=sys.argv[:1])
