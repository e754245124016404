"""attention.txt: attention, what goes with it, and transformer layers. PyTorch in Float64; NumPy where it lacks them.

attention(q, k, v [, mask]; heads, kv_heads, causal) by scaled_dot_product_attention, outputs y and the scores; in
Float32, which the CPU computes in blocks, blocks(q, k, v [, bias] [, mask]; the same) of longer sequences, output y;
rotary(x; heads, offset, interleaved) by products of complex numbers; alibi(; heads, queries, keys) by the paper;
rmsnorm(x, scale; eps); glu(x; dim, act); encoder and decoder (x [, memory], parameters in the order of the layer's
fields; heads, norm_first, act).
"""

import math

import numpy as np
import torch
import torch.nn.functional as functional

from . import text
from .gradient import gradient_case


def split_heads(x, heads):
    """(features, length, batch) -> PyTorch's (batch, heads, length, features of a head)."""
    features, length, batch = x.shape
    return x.permute(2, 1, 0).reshape(batch, length, heads, features // heads).permute(0, 2, 1, 3)


def join_heads(x):
    batch, heads, length, features = x.shape
    return x.permute(0, 2, 1, 3).reshape(batch, length, heads * features).permute(2, 1, 0)


def causal_mask(queries, keys):
    """The last query sees all."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


def attention(heads, kv_heads, causal=False):
    def call(q, k, v, mask=None):
        parts = split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
        keep = None if mask is None else mask.permute(3, 2, 1, 0)
        if causal:
            keep = causal_mask(q.shape[1], k.shape[1])
        y = functional.scaled_dot_product_attention(*parts, attn_mask=keep, enable_gqa=heads != kv_heads)
        length, batch = k.shape[1], k.shape[2]
        ones = torch.eye(length, dtype=torch.float64).expand(batch, kv_heads, length, length)
        scores = functional.scaled_dot_product_attention(
            parts[0], parts[1], ones, attn_mask=keep, enable_gqa=heads != kv_heads
        )
        return join_heads(y), scores.permute(3, 2, 1, 0)

    return call


def write_attention(file, rng):
    def inputs(features, kv_features, queries, keys, v_features):
        shapes = (features, queries, 2), (kv_features, keys, 2), (v_features, keys, 2)
        return [text.dyadic(rng, shape, -1.0, 1.0) for shape in shapes]

    gradient_case(file, "attention", attention(1, 1), inputs(4, 4, 3, 5, 2), rng, heads=1)
    gradient_case(file, "attention", attention(2, 2), inputs(4, 4, 3, 5, 6), rng, heads=2)
    gradient_case(file, "attention", attention(2, 2, True), inputs(4, 4, 4, 4, 4), rng, heads=2, causal=True)
    gradient_case(file, "attention", attention(2, 2, True), inputs(4, 4, 2, 5, 4), rng, heads=2, causal=True)
    gradient_case(file, "attention", attention(4, 2), inputs(8, 4, 3, 4, 4), rng, heads=4, kv_heads=2)
    mask = rng.random((5, 3, 1, 2)) < 0.6
    mask[0] = True
    types = ["Float64", "Float64", "Float64", "Bool"]
    gradient_case(file, "attention", attention(2, 2), inputs(4, 4, 3, 5, 4) + [mask], rng, types=types, heads=2)


def blocks(heads, kv_heads, causal=False):
    """What is added to logits, and leaves them out, is one mask of PyTorch's."""

    def call(q, k, v, *rest):
        parts = split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)
        added = torch.zeros(q.shape[1], k.shape[1], dtype=torch.float64)
        for x in rest:
            x = x.permute(3, 2, 1, 0)
            added = added + (x if x.dtype == torch.float64 else torch.zeros(x.shape).masked_fill(~x, -math.inf))
        if causal:
            added = added.masked_fill(~causal_mask(q.shape[1], k.shape[1]), -math.inf)
        added = added.expand(q.shape[2], heads, q.shape[1], k.shape[1])
        return join_heads(
            functional.scaled_dot_product_attention(*parts, attn_mask=added, enable_gqa=heads != kv_heads)
        )

    return call


def write_blocks(file, rng):
    def case(features, queries, keys, batch=1, heads=1, kv_heads=1, causal=False, rest=()):
        q, k = (features * heads, queries, batch), (features * kv_heads, keys, batch)
        inputs = [text.dyadic(rng, shape, -1.0, 1.0) for shape in (q, k, k)] + list(rest)
        types = ["Bool" if x.dtype == bool else "Float32" for x in inputs]
        attributes = {"heads": heads, "kv_heads": kv_heads} | ({"causal": True} if causal else {})
        attributes |= {"bias": True} if any(x.dtype != bool for x in rest) else {}
        call = blocks(heads, kv_heads, causal)
        tolerance = {"tolerance": "rtol=1e-05 atol=2e-06", "gradtol": "rtol=1e-05 atol=1e-05"}
        gradient_case(file, "blocks", call, inputs, rng, types=types, dtype="Float32", **tolerance, **attributes)

    case(1, 1, 1)
    case(8, 3, 3, heads=2, kv_heads=2, batch=2, causal=True)
    case(24, 17, 17, causal=True)
    case(2, 65, 65, causal=True)
    case(2, 70, 130)
    case(2, 20, 70, causal=True)
    case(4, 17, 33, heads=4, kv_heads=2, causal=True)
    padding = np.arange(40)[:, None, None, None] < np.array([40, 9])[None, None, None, :]
    case(2, 20, 40, batch=2, heads=2, kv_heads=2, rest=[padding])
    bias = text.dyadic(rng, (33, 18, 2, 1), -1.0, 1.0)
    mask = rng.random((33, 18, 1, 1)) < 0.6
    mask[5] = True
    case(2, 18, 33, heads=2, kv_heads=2, rest=[bias, mask])


def rotary(x, heads, offset, interleaved):
    """By complex numbers: pairs of features times exp(i angle)."""
    features, length, batch = x.shape
    each = features // heads
    parts = x.reshape(heads, each, length, batch)  # row-major: heads lie one after another
    even = parts[:, 0::2] if interleaved else parts[:, : each // 2]
    odd = parts[:, 1::2] if interleaved else parts[:, each // 2 :]
    speeds = 10000.0 ** (-2 * np.arange(each // 2) / each)
    angles = speeds[:, None] * (offset + np.arange(length))[None, :]
    turned = (even + 1j * odd) * np.exp(1j * angles)[None, :, :, None]
    y = np.empty_like(parts)
    if interleaved:
        y[:, 0::2], y[:, 1::2] = turned.real, turned.imag
    else:
        y[:, : each // 2], y[:, each // 2 :] = turned.real, turned.imag
    return y.reshape(x.shape)


def write_positions(file, rng):
    for heads, offset, interleaved in ((1, 0, False), (2, 3, False), (2, 0, True)):
        x = text.dyadic(rng, (8, 5, 2))
        y = rotary(x, heads, offset, interleaved)
        attributes = {"heads": heads, "offset": offset, "interleaved": interleaved}
        text.case(file, "rotary", "Float32", [x], [text.rounded(y, "Float32")], "rtol=1e-05 atol=1e-06", **attributes)
    slopes = {  # as the authors' program prints them
        4: [0.25, 0.0625, 0.015625, 0.00390625],
        6: [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125],
        8: [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625],
    }
    for heads, numbers in slopes.items():
        queries, keys = 3, 5
        places = np.arange(queries) + keys - queries
        distance = np.minimum(np.arange(keys)[:, None] - places[None, :], 0)
        bias = distance[:, :, None] * np.array(numbers)
        text.case(file, "alibi", "Float32", [], [bias], "exact", heads=heads, queries=queries, keys=keys)


def write_parts(file, rng):
    def rmsnorm(x, scale):
        return functional.rms_norm(x.permute(2, 1, 0), (x.shape[0],), scale, 1e-6).permute(2, 1, 0)

    x = [text.dyadic(rng, (6, 3, 2)), text.dyadic(rng, (6,))]
    gradient_case(file, "rmsnorm", rmsnorm, x, rng, eps=1e-6)
    gradient_case(file, "glu", lambda t: functional.glu(t, 0), [text.dyadic(rng, (6, 3))], rng, dim=0)
    gradient_case(file, "glu", lambda t: functional.glu(t, 1), [text.dyadic(rng, (3, 4))], rng, dim=1)

    def swiglu(t):
        a, b = t.chunk(2, 0)
        return a * functional.silu(b)

    gradient_case(file, "glu", swiglu, [text.dyadic(rng, (6, 3))], rng, dim=0, act="swish")


DIM, HEADS, HIDDEN = 4, 2, 6
ATTENTION = [(DIM, DIM), (DIM,)] * 4  # q, k, v, out: weight and bias each
FEED_FORWARD = [(HIDDEN, DIM), (HIDDEN,), (DIM, HIDDEN), (DIM,)]


def attention_weights(prefix, weights):
    """What PyTorch calls the eight arrays of one attention."""
    return {
        f"{prefix}.in_proj_weight": torch.cat(weights[0:6:2]),
        f"{prefix}.in_proj_bias": torch.cat(weights[1:6:2]),
        f"{prefix}.out_proj.weight": weights[6],
        f"{prefix}.out_proj.bias": weights[7],
    }


def rest_of(weights, norms):
    names = ["linear1", "linear2"] + [f"norm{i + 1}" for i in range(norms)]
    return {f"{n}.{part}": weights[2 * i + j] for i, n in enumerate(names) for j, part in enumerate(("weight", "bias"))}


def encoder(**options):
    module = torch.nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, **options).double().train()

    def call(x, *weights):
        named = attention_weights("self_attn", weights[:8]) | rest_of(weights[8:], 2)
        return torch.func.functional_call(module, named, (x.permute(1, 2, 0),)).permute(2, 0, 1)

    return call


def decoder(**options):
    module = torch.nn.TransformerDecoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, **options).double().train()

    def call(x, memory, *weights):
        named = attention_weights("self_attn", weights[:8]) | attention_weights("multihead_attn", weights[8:16])
        named |= rest_of(weights[16:], 3)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=torch.float64)
        y = torch.func.functional_call(module, named, (x.permute(1, 2, 0), memory.permute(1, 2, 0), mask))
        return y.permute(2, 0, 1)

    return call


def write_layers(file, rng):
    def inputs(shapes):
        return [text.dyadic(rng, shape, -1.0, 1.0) for shape in shapes]

    for options in ({}, {"norm_first": True, "activation": "gelu"}):
        attributes = {"heads": HEADS, "norm_first": bool(options), "act": "gelu_erf" if options else "relu"}
        shapes = [(DIM, 3, 2)] + ATTENTION + FEED_FORWARD + [(DIM,)] * 4
        gradient_case(file, "encoder", encoder(**options), inputs(shapes), rng, **attributes)
        shapes = [(DIM, 3, 2), (DIM, 5, 2)] + ATTENTION * 2 + FEED_FORWARD + [(DIM,)] * 6
        gradient_case(file, "decoder", decoder(**options), inputs(shapes), rng, **attributes)


def write(file):
    rng = np.random.default_rng(23)
    assert math.isclose(rotary(np.array([[[1.0]], [[0.0]]]), 1, 1, False)[1, 0, 0], math.sin(1))
    write_attention(file, rng)
    write_blocks(file, np.random.default_rng(29))
    write_positions(file, rng)
    write_parts(file, rng)
    write_layers(file, rng)
