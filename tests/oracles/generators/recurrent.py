"""recurrent.txt: recurrent layers over sequences, by PyTorch in Float64 (GRUv3, which it lacks, by its equations).

rnn, lstm, gru, gruv3(x, Wi, Wh, b, h [, c] or [, W]): x is (in, steps, batch), states (out, batch). Outputs are those
of all steps, then the last state(s). Attributes: act (of rnn); lengths, one for each sequence; reverse. Rows of the
weights are in Flux's order of gates, which is PyTorch's.
"""

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from . import text
from .gradient import gradient_case

FEATURES, OUT, STEPS, BATCH = 3, 2, 4, 3
GATES = {"rnn": 1, "lstm": 4, "gru": 3}
MODULES = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


def of_torch(kind, lengths=None, **options):
    """The function of tensors that PyTorch's module is; its weights are replaced by the inputs."""
    module = MODULES[kind](FEATURES, OUT, **options).double()

    def call(x, wi, wh, b, h, *c):
        weights = {
            "weight_ih_l0": wi,
            "weight_hh_l0": wh,
            "bias_ih_l0": b,
            "bias_hh_l0": torch.zeros_like(b),
        }
        sequences = x.permute(1, 2, 0)
        if lengths is not None:
            sequences = pack_padded_sequence(sequences, torch.tensor(lengths), enforce_sorted=False)
        state = tuple(s.T[None].contiguous() for s in (h, *c))
        y, last = torch.func.functional_call(module, weights, (sequences, state if kind == "lstm" else state[0]))
        if lengths is not None:
            y, _ = pad_packed_sequence(y, total_length=STEPS)
        last = last if kind == "lstm" else (last,)
        return (y.permute(2, 0, 1), *(s[0].T for s in last))

    return call


def backwards(function):
    """From the last step to the first, outputs at the places of their inputs."""

    def call(x, *rest):
        y, *last = function(x.flip(1), *rest)
        return (y.flip(1), *last)

    return call


def gruv3(x, wi, wh, b, h, w):
    outputs = []
    for t in range(x.shape[1]):
        share = (wi @ x[:, t] + b[:, None]).split(OUT)
        r, z = torch.sigmoid(torch.cat(share[:2]) + wh @ h).split(OUT)
        h = (1 - z) * torch.tanh(share[2] + w @ (r * h)) + z * h
        outputs.append(h)
    return torch.stack(outputs, 1), h


def inputs_of(rng, gates, recurrent_gates, states, more=()):
    shapes = [(FEATURES, STEPS, BATCH), (gates * OUT, FEATURES), (recurrent_gates * OUT, OUT), (gates * OUT,)]
    return [text.dyadic(rng, shape, -1.0, 1.0) for shape in shapes + [(OUT, BATCH)] * states + list(more)]


def write(file):
    rng = np.random.default_rng(16)
    for kind, gates in GATES.items():
        states = 2 if kind == "lstm" else 1
        gradient_case(file, kind, of_torch(kind), inputs_of(rng, gates, gates, states), rng)
        gradient_case(file, kind, backwards(of_torch(kind)), inputs_of(rng, gates, gates, states), rng, reverse=True)
        lengths = [2, 4, 1]
        inputs = inputs_of(rng, gates, gates, states)
        gradient_case(file, kind, of_torch(kind, lengths), inputs, rng, lengths=lengths)
    relu = of_torch("rnn", nonlinearity="relu")
    gradient_case(file, "rnn", relu, inputs_of(rng, 1, 1, 1), rng, act="relu")
    gradient_case(file, "gruv3", gruv3, inputs_of(rng, 3, 2, 1, [(OUT, OUT)]), rng)
    gradient_case(file, "gruv3", backwards(gruv3), inputs_of(rng, 3, 2, 1, [(OUT, OUT)]), rng, reverse=True)
