"""images.txt: files of pictures and the pixels that Pillow reads from them.

Cases (op image): in the bytes of the file, out (width, height, channels) UInt8. The attribute channels is 0 for the
kind that the file has (palettes as colours), else what Pillow's convert makes of it.
"""

import io

import numpy as np
from PIL import Image

from . import text

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def picture(mode, width, height, seed):
    """Smooth colours with some noise."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    planes = [(np.sin(x / 3 + c) + np.cos(y / 4 - c)) * 60 + 128 + rng.normal(0, 9, x.shape) for c in range(len(mode))]
    pixels = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if mode == "L" else pixels, mode)


def file_of(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def interlaced(mode, width, height):
    """A PNG of seven passes; Pillow writes none, so the chunks are written here."""
    import struct
    import zlib
    pixels = np.asarray(picture(mode, width, height, 7)).reshape(height, width, -1)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    parts = [pixels[y::dy, x::dx] for x, y, dx, dy in passes]
    raw = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    kind = {"L": 0, "RGB": 2, "RGBA": 6}[mode]
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 1)), (b"IDAT", zlib.compress(raw)),
              (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
                    for name, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def files():
    for seed, (mode, sizes) in enumerate([("L", (5, 3)), ("LA", (3, 4)), ("RGB", (7, 5)), ("RGBA", (4, 6))]):
        yield file_of(picture(mode, *sizes, seed), format="PNG")
    yield file_of(picture("RGB", 9, 7, 10).quantize(6), format="PNG")
    yield file_of(picture("RGB", 9, 7, 11).quantize(6), format="PNG", transparency=2)
    yield file_of(picture("L", 11, 3, 12).point(lambda v: 255 * (v > 128), "1"), format="PNG")
    yield interlaced("RGB", 11, 9)
    yield interlaced("L", 3, 2)
    yield file_of(picture("L", 9, 6, 13), format="JPEG", quality=90)
    yield file_of(picture("RGB", 16, 16, 14), format="JPEG", quality=95, subsampling=0)
    yield file_of(picture("RGB", 21, 13, 15), format="JPEG", quality=75)
    yield file_of(picture("RGB", 19, 9, 16), format="JPEG", progressive=True, quality=60)
    yield file_of(picture("L", 5, 4, 17), format="PPM")
    yield file_of(picture("RGB", 5, 4, 18), format="PPM")
    yield b"P2 # grey\n3 2\n# greatest\n15\n0 1 2\n13 14 15\n"
    yield b"P3\n2 1 255 1 2 3\n250 251 252"
    yield b"P6\n2 1\n100\n" + bytes([0, 1, 50, 99, 100, 33])


def natural(image):
    """The kind that a file has, without a palette."""
    if image.mode == "P":
        return image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image.convert("L") if image.mode in ("1", "I") else image


def write(file):
    for data in files():
        source = "UInt8", np.array(list(data), dtype=np.int64)
        image = natural(Image.open(io.BytesIO(data)))
        for channels in (0, 1, 2, 3, 4):
            if channels and (len(data) > 300 or (channels < 3 and image.mode == "RGBA" and channels != 1)):
                continue
            pixels = np.asarray(image.convert(MODES[channels]) if channels else image).astype(np.int64)
            pixels = pixels.reshape(image.height, image.width, -1).transpose(1, 0, 2)
            text.case(file, "image", "UInt8", [source], [("UInt8", pixels)], "exact", channels=channels)
