"""fourier.txt: Fourier transforms of many lengths, frequencies, windows, stft and istft. Values by NumPy (torch for
stft and istft), gradients by PyTorch. Complex results are given as real parts with a first dim of 2."""

import numpy as np
import torch

from . import text
from .gradient import gradient_case

TOLERANCE = {"tolerance": "rtol=1e-11 atol=1e-12", "gradtol": "rtol=1e-11 atol=1e-12"}
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 30, 34, 60]


def parts(z):
    return torch.stack([z.real, z.imag])


def whole(x):
    return torch.complex(x[0], x[1])


def write_lines(file, rng):
    for n in LENGTHS:
        z = text.dyadic(rng, (2, n), -1.0, 1.0)
        assert np.allclose(torch.fft.fft(whole(torch.tensor(z))).numpy(), np.fft.fft(z[0] + 1j * z[1]))
        gradient_case(file, "fft", lambda x: parts(torch.fft.fft(whole(x))), [z], rng, **TOLERANCE)
        gradient_case(file, "ifft", lambda x: parts(torch.fft.ifft(whole(x))), [z], rng, **TOLERANCE)
        x = text.dyadic(rng, (n,), -1.0, 1.0)
        gradient_case(file, "rfft", lambda t: parts(torch.fft.rfft(t)), [x], rng, **TOLERANCE)
        half = text.dyadic(rng, (2, n // 2 + 1), -1.0, 1.0)
        gradient_case(file, "irfft", lambda t: torch.fft.irfft(whole(t), n=n), [half], rng, **TOLERANCE, n=n)


def write_dims(file, rng):
    z = text.dyadic(rng, (2, 3, 4, 5), -1.0, 1.0)
    for dim in (0, 1, 2, -1):
        function = lambda x: parts(torch.fft.fft(whole(x), dim=dim))  # noqa: E731
        gradient_case(file, "fft", function, [z], rng, **TOLERANCE, dim=dim)
        back = lambda x: torch.fft.irfft(whole(x), dim=dim)  # noqa: E731
        gradient_case(file, "irfft", back, [z], rng, **TOLERANCE, dim=dim)
        gradient_case(file, "rfft", lambda x: parts(torch.fft.rfft(x, dim=dim)), [z[0]], rng, **TOLERANCE, dim=dim)
    for name in ("fftn", "ifftn"):
        function = getattr(torch.fft, name)
        gradient_case(file, name, lambda x: parts(function(whole(x))), [z], rng, **TOLERANCE)
        over = lambda x: parts(function(whole(x), dim=(0, 2)))  # noqa: E731
        gradient_case(file, name, over, [z], rng, **TOLERANCE, dims="0,2")
    for name in ("fft2", "ifft2"):
        function = getattr(torch.fft, name)
        gradient_case(file, name, lambda x: parts(function(whole(x), dim=(0, 1))), [z], rng, **TOLERANCE)
    for name in ("fftshift", "ifftshift"):
        function = getattr(torch.fft, name)
        gradient_case(file, name, lambda x: function(x), [z], rng)
        gradient_case(file, name, lambda x: function(x, dim=(1, 3)), [z], rng, dims="1,3")


def write_tables(file):
    for n in (1, 2, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            values = getattr(np.fft, name)(n, 0.25).astype(np.float32).astype(np.float64)
            text.case(file, name, "Float32", [], [("Float32", values)], "ulp=1", n=n, spacing=0.25)
        for name in ("hann_window", "hamming_window"):
            for periodic in (0, 1):
                values = getattr(torch, name)(n, periodic=bool(periodic), dtype=torch.float64).numpy()
                values = values.astype(np.float32).astype(np.float64)
                out = [("Float32", values)]
                text.case(file, name, "Float32", [], out, "ulp=1 atol=1e-8", n=n, periodic=periodic)


def write_pieces(file, rng):
    for center in (0, 1):
        for normalized in (0, 1):
            for hop in (2, 4):
                options = dict(n_fft=8, hop_length=hop, center=bool(center), normalized=bool(normalized))
                flags = dict(hop=hop, center=center, normalized=normalized)
                window = torch.hamming_window(8, dtype=torch.float64)
                x = text.dyadic(rng, (24, 2), -1.0, 1.0)

                def pieces(t):
                    y = torch.stft(t.T, window=window, return_complex=True, **options)
                    return parts(y.permute(1, 2, 0))

                gradient_case(file, "stft", pieces, [x], rng, **TOLERANCE, **flags)
                y = pieces(torch.tensor(x)).numpy().round(6)
                for length in (0, 16):

                    def back(t):
                        z = whole(t).permute(2, 0, 1)
                        return torch.istft(z, window=window, length=length or None, **options).T

                    gradient_case(file, "istft", back, [y], rng, **TOLERANCE, **flags, length=length)


def write_products(file, rng):
    shapes = (((3, 4), (4, 2)), ((2, 3, 2), (3, 2, 2)), ((3,), (3,)), ((3, 4), (4,)))
    for a, b in shapes:
        x, y = text.dyadic(rng, (2, *a), -1.0, 1.0), text.dyadic(rng, (2, *b), -1.0, 1.0)

        def product(s, t):
            s, t = whole(s), whole(t)
            if s.dim() == 3:
                return parts(torch.einsum("ijb,jkb->ikb", s, t))
            return parts(s @ t)

        gradient_case(file, "complex_matmul", product, [x, y], rng)


def write(file):
    rng = np.random.default_rng(17)
    write_lines(file, rng)
    write_dims(file, rng)
    write_tables(file)
    write_pieces(file, rng)
    write_products(file, rng)
