"""lbfgs.txt: torch.optim.LBFGS with the strong Wolfe line search, in Float64.

Cases (op: the loss): in the first parameters, out those after the attribute `iterations`, and the loss there. `count`
is how many evaluations of the loss there were.
"""

import numpy as np
import torch

from . import text


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def quartic(x):
    scale = torch.arange(1, x.numel() + 1, dtype=x.dtype)
    return (scale * x ** 2).sum() + 0.25 * (x ** 4).sum() + (x[0] * x[1]).sum()


def logistic(x):
    signs = torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=x.dtype)
    return torch.nn.functional.softplus(-signs * x).sum() + 0.05 * (x ** 2).sum()


STARTS = {"rosenbrock": [-1.2, 1.0, 0.5], "quartic": [1.0, -2.0, 0.5, 3.0], "logistic": [0.3, 2.0, -1.5, 0.0]}


def write(file):
    for name, start in STARTS.items():
        for iterations, history in ((1, 10), (3, 10), (8, 10), (8, 2), (20, 10), (60, 10)):
            x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
            rule = torch.optim.LBFGS([x], max_iter=iterations, history_size=history, line_search_fn="strong_wolfe")
            count = 0

            def closure():
                nonlocal count
                count += 1
                rule.zero_grad()
                loss = globals()[name](x)
                loss.backward()
                return loss

            rule.step(closure)
            loss = globals()[name](x).item()
            text.case(file, name, "Float64", [np.array(start)], [x.detach().numpy(), np.array(loss)],
                      "rtol=1e-6 atol=1e-9", iterations=iterations, history=history, count=count)
