"""tables.txt: CSV texts and what pandas reads from them.

Cases (op table): in the bytes of the text, then for each column one output: its values as Float64, whether it is
missing as Bool, or for a text the place of each field among the sorted different ones as Int32 (-1: missing).
"kinds" has a letter for each column: i (Int64), f (Float64), b (Bool), t (text).
"""

import io

import numpy as np
import pandas

from . import text

TABLES = [
    ("a,b,c,d\n1,2.5,x,true\n-3,1e-3,y,false\n9223372036854775807,inf,x,true\n", {}),
    ("a,b\r\n1,\r\n,2\r\nNA,nan\r\n4,5\r\n", {}),
    ('n,t\n1,"a, b"\n2,"line\nbreak"\n3,"say ""hi"""\n4,plain "quote\n', {}),
    ("x;y\n1;2,5\n3;4\n", {"sep": ";"}),
    ("1,a\n2,b\n", {"header": None}),
    ("\ufeffp,q\n\n1,2\n\n\n3,4", {}),
    ("v\n1\n2.5\n3\n", {}),
    ("v,w\n1,1\nx,2\n1.50,3\nNA,4\n", {}),
    ("v,w\n 1 , 2.5 \n+7,+1e2\n", {}),
    ("v\n0.1\n1e400\n-1e400\n1e-400\n123456789012345678901234567890\n2.2250738585072011e-308\n", {}),
    ("k,v\nnull,N/A\n#NA,None\n", {}),
    ("s,u\nzürich,1\n東京,2\nabc,3\n", {}),
    ('q,r\n"1","2.5"\n"","x"\n', {}),
    ("b\nTrue\nfalse\nTRUE\n", {}),
]


def column(values):
    """The letter and the arrays of a column of pandas; numbers of a column with gaps are whole where all are."""
    gaps = values.isna().to_numpy()
    if values.dtype == bool:
        return "b", ("Float64", values.to_numpy().astype(np.float64)), gaps
    if pandas.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy().astype(np.float64)
        return ("i" if values.dtype == np.int64 else "f"), ("Float64", numbers), gaps
    names = sorted({name.encode() for name in values.dropna()})
    places = [-1 if gap else names.index(name.encode()) for name, gap in zip(values, gaps)]
    return "t", ("Int32", np.array(places, dtype=np.int64)), gaps


def write(file):
    for source, options in TABLES:
        frame = pandas.read_csv(io.BytesIO(source.encode()), float_precision="round_trip", **options)
        columns = [column(frame[name]) for name in frame.columns]
        data = "UInt8", np.array(list(source.encode()), dtype=np.int64)
        outputs = [array for _, values, gaps in columns for array in (values, ("Bool", gaps))]
        kinds, header = "".join(kind for kind, _, _ in columns), options.get("header", 0) == 0
        separator = ord(options.get("sep", ","))
        text.case(file, "table", "Float64", [data], outputs, "exact", separator=separator, kinds=kinds, header=header)
