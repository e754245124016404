"""optim.txt: the rules of Optimisers.jl, computed from their equations in Float64, compared with golden vectors (made
elsewhere from the same equations) and with torch.optim where the definitions coincide.

A case: inputs x, g1, g2, ...; outputs x after each step. Chains have rules=Rule(number),... in their order.
"""

import numpy as np
import torch

from . import text

TOLERANCES = {"Float64": "rtol=1e-12 atol=1e-13", "Float32": "rtol=2e-06 atol=2e-06"}


def descent(x, g, s, eta=0.1):
    return eta * g


def momentum(x, g, s, eta=0.01, rho=0.9):
    s["m"] = rho * s.get("m", 0) + eta * g
    return s["m"]


def nesterov(x, g, s, eta=0.001, rho=0.9):
    old = s.get("v", 0)
    s["v"] = rho * old - eta * g
    return -(rho**2) * old + (1 + rho) * eta * g


def rmsprop(x, g, s, eta=0.001, rho=0.9, epsilon=1e-8, centred=False):
    s["q"] = rho * s.get("q", 0) + (1 - rho) * g**2
    s["l"] = rho * s.get("l", 0) + (1 - rho) * g if centred else 0
    return g * eta / (np.sqrt(s["q"] - s["l"] ** 2) + epsilon)


def rprop(x, g, s, eta=1e-3, ell=(0.5, 1.2), gamma=(1e-6, 50.0)):
    before, step = s.get("g", 0 * g), s.get("h", 0 * g + eta)
    turn = before * g
    step = np.where(
        turn > 0, np.minimum(step * ell[1], gamma[1]), np.where(turn < 0, np.maximum(step * ell[0], gamma[0]), step)
    )
    s["g"], s["h"] = np.where(turn < 0, 0, g), step
    return step * np.sign(s["g"])


def moments(g, s, beta):
    """Running mean and mean square; the powers of beta of this step."""
    s["t"] = s.get("t", 0) + 1
    s["m"] = beta[0] * s.get("m", 0) + (1 - beta[0]) * g
    s["v"] = beta[1] * s.get("v", 0) + (1 - beta[1]) * g**2
    return s["m"], s["v"], beta[0] ** s["t"], beta[1] ** s["t"]


def adam(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8):
    m, v, p1, p2 = moments(g, s, beta)
    return m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon) * eta


def adamw(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8, lambda_=0.0, couple=True):
    d = adam(x, g, s, 1.0, beta, epsilon)
    return eta * (d + lambda_ * x) if couple else eta * d + lambda_ * x


def radam(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8):
    m, v, p1, p2 = moments(g, s, beta)
    last = 2 / (1 - beta[1]) - 1
    r = last - 2 * s["t"] * p2 / (1 - p2)
    if r <= 4:
        return m / (1 - p1) * eta
    scale = np.sqrt((r - 4) * (r - 2) * last / ((last - 4) * (last - 2) * r))
    return m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon) * eta * scale


def adamax(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8):
    m, _, p1, _ = moments(g, s, beta)
    s["u"] = np.maximum(beta[1] * s.get("u", 0), np.abs(g))
    return eta / (1 - p1) * m / (s["u"] + epsilon)


def oadam(x, g, s, eta=0.001, beta=(0.5, 0.9), epsilon=1e-8):
    before = s.get("term", 0)
    s["term"] = adam(x, g, s, eta, beta, epsilon)
    return 2 * s["term"] - before


def nadam(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8):
    m, v, p1, p2 = moments(g, s, beta)
    mean = beta[0] * m / (1 - beta[0] * p1) + (1 - beta[0]) * g / (1 - p1)
    return mean / (np.sqrt(v * beta[1] / (1 - p2)) + epsilon) * eta


def amsgrad(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-8):
    for key in "mvw":
        s.setdefault(key, epsilon)
    m, v, _, _ = moments(g, s, beta)
    s["w"] = np.maximum(s["w"], v)
    return eta * m / (np.sqrt(s["w"]) + epsilon)


def adabelief(x, g, s, eta=0.001, beta=(0.9, 0.999), epsilon=1e-16):
    m, _, p1, p2 = moments(g, s, beta)
    s["s"] = beta[1] * s.get("s", 0) + (1 - beta[1]) * (g - m) ** 2 + epsilon
    return eta * m / (1 - p1) / (np.sqrt(s["s"] / (1 - p2)) + epsilon)


def adagrad(x, g, s, eta=0.1, epsilon=1e-8):
    s["a"] = s.get("a", epsilon) + g**2
    return g * eta / (np.sqrt(s["a"]) + epsilon)


def adadelta(x, g, s, rho=0.9, epsilon=1e-8):
    old = s.get("d", 0)
    s["a"] = rho * s.get("a", 0) + (1 - rho) * g**2
    d = g * np.sqrt(old + epsilon) / np.sqrt(s["a"] + epsilon)
    s["d"] = rho * old + (1 - rho) * d**2
    return d


def lion(x, g, s, eta=0.001, beta=(0.9, 0.999)):
    """Chen et al. (2023); Optimisers.jl turns the weights of m round and moves by the new m."""
    old = s.get("m", 0)
    s["m"] = beta[1] * old + (1 - beta[1]) * g
    return eta * np.sign(beta[0] * old + (1 - beta[0]) * g)


def lamb(x, g, s, eta=0.001, beta=(0.9, 0.999), lambda_=0.0, epsilon=1e-6):
    """You et al. (2020), algorithm 2, with phi(z) = z."""
    m, v, p1, p2 = moments(g, s, beta)
    r = m / (1 - p1) / (np.sqrt(v / (1 - p2)) + epsilon) + lambda_ * x
    length, wanted = np.linalg.norm(x), np.linalg.norm(r)
    return eta * (length / wanted if length > 0 and wanted > 0 else 1.0) * r


def adafactor(x, g, s, eta=0.01, decay=-0.8, epsilon=1e-3, clip=1.0, lambda_=0.0, least=2.0**-52):
    s["t"] = s.get("t", 0) + 1
    kept = 1 - s["t"] ** decay
    if x.ndim < 2:
        v = s["v"] = kept * s.get("v", 0) + (1 - kept) * g**2
    else:
        s["r"] = kept * s.get("r", 0) + (1 - kept) * (g**2).mean(1, keepdims=True)
        s["c"] = kept * s.get("c", 0) + (1 - kept) * (g**2).mean(0, keepdims=True)
        v = s["r"] * s["c"] / np.maximum(s["r"].mean(0, keepdims=True), least)
    u = g / np.sqrt(np.maximum(v, least**2))
    size = max(epsilon, np.sqrt((x**2).mean())) * min(eta, s["t"] ** -0.5)
    return size * u / max(1, np.sqrt((u**2).mean()) / clip) + lambda_ * eta * x


def muon(x, g, s, eta=0.001, rho=0.95, lambda_=0.1, nesterov=True, iterations=5):
    if x.ndim < 2:
        return adamw(x, g, s, eta, lambda_=lambda_)
    s["m"] = rho * s.get("m", 0) + (1 - rho) * g
    a = (rho * s["m"] + (1 - rho) * g if nesterov else s["m"]).reshape(-1, x.shape[-1], order="F")
    rows, columns = a.shape
    a = a.T if rows > columns else a
    a = a / max(np.linalg.norm(a), 1e-7)
    for _ in range(iterations):
        square = a @ a.T
        a = 3.4445 * a + (-4.7750 * square + 2.0315 * square @ square) @ a
    a = a.T if rows > columns else a
    return eta * (max(1, rows / columns) ** 0.5 * a.reshape(x.shape, order="F") + lambda_ * x)


def clip_grad(x, g, s, delta=10.0):
    return np.clip(g, -delta, delta)


def clip_norm(x, g, s, omega=10.0, p=2.0):
    return g * min(omega / np.linalg.norm(g.ravel(), p), 1)


def weight_decay(x, g, s, lambda_=5e-4):
    return g + lambda_ * x


def sign_decay(x, g, s, lambda_=1e-3):
    return g + lambda_ * np.sign(x)


RULES = {  # row of the golden table: (rule, options)
    "Descent": [(descent, {})],
    "Momentum": [(momentum, {})],
    "Nesterov": [(nesterov, {})],
    "RMSProp": [(rmsprop, {}), (rmsprop, {"centred": True})],
    "Rprop": [(rprop, {})],
    "Adam": [(adam, {})],
    "AdamW": [(adamw, {"lambda": 0.01}), (adamw, {"lambda": 0.01, "couple": False})],
    "RAdam": [(radam, {})],
    "AdaMax": [(adamax, {})],
    "OAdam": [(oadam, {})],
    "NAdam": [(nadam, {})],
    "AMSGrad": [(amsgrad, {})],
    "AdaBelief": [(adabelief, {})],
    "AdaGrad": [(adagrad, {})],
    "AdaDelta": [(adadelta, {})],
    "Lion": [(lion, {})],
}
X0 = np.array([1.0, 2.0, 3.0])
GRADIENTS = [np.array(g) for g in ([0.1, -0.2, 0.3], [-0.05, 0.4, 0.0], [1.0, 1.0, -1.0])]
GOLDEN = """
Descent   0.9900000000 2.0200000000 2.9700000000 0.8950000000 1.8800000000 3.0700000000
Momentum  0.9990000000 2.0020000000 2.9970000000 0.9882400000 1.9878200000 3.0018700000
Nesterov  0.9998100000 2.0003800000 2.9994300000 0.9978916000 1.9977038000 3.0008683000
RMSProp   0.9968377233 2.0031622772 2.9968377227 0.9951661037 1.9973895712 2.9998906774
RMSProp   0.9966666678 2.0033333328 2.9966666670 0.9948236981 1.9973287079 2.9998045713
Rprop     0.9990000000 2.0010000000 2.9990000000 0.9985000000 2.0005000000 3.0000000000
Adam      0.9990000001 2.0009999999 2.9990000000 0.9980759429 1.9999352077 2.9987931675
AdamW     0.9989900001 2.0009800000 2.9989700000 0.9980459658 1.9998751919 2.9987031951
AdamW     0.9890000001 1.9810000000 2.9690000000 0.9683975062 1.9405169687 2.9097167681
RAdam     0.9999000000 2.0002000000 2.9997000000 0.9994966595 1.9996421441 2.9998372305
AdaMax    0.9990000001 2.0009999999 2.9990000000 0.9984069752 2.0002684599 2.9988051775
OAdam     0.9980000002 2.0019999999 2.9980000001 0.9971282810 1.9983825113 3.0001957917
NAdam     0.9985255785 2.0014744215 2.9985255784 0.9975886415 1.9994980452 2.9990434840
AMSGrad   0.9968393079 2.0031618764 2.9968379002 0.9924520838 1.9981474665 2.9962850751
AdaBelief 0.9988888889 2.0011111111 2.9988888889 0.9978718903 1.9999347993 2.9986501200
AdaGrad   0.9000000600 2.0999999825 2.9000000089 0.8453406001 1.9192701759 2.9957826361
AdaDelta  0.9996837738 2.0003162274 2.9996837724 0.9994115738 1.9993641767 3.0001045931
Lion      0.9990000000 2.0010000000 2.9990000000 0.9990000000 1.9990000000 2.9990000000
"""


def run(rules, x, gradients):
    """x after each step; rules is a list of (rule, options), applied from left to right."""
    states, points = [{} for _ in rules], []
    for g in gradients:
        for (rule, options), state in zip(rules, states):
            g = rule(x, g, state, **{k.replace("lambda", "lambda_"): v for k, v in options.items()})
        x = x - g
        points.append(x)
    return points


def torch_rule(name, options, x):
    """The same rule of torch.optim, or None where its definition differs."""
    optim = torch.optim
    makers = {
        "Descent": lambda: optim.SGD([x], 0.1),
        "Momentum": lambda: optim.SGD([x], 0.01, 0.9),
        "Nesterov": lambda: optim.SGD([x], 0.001, 0.9, nesterov=True),
        "RMSProp": lambda: optim.RMSprop([x], 0.001, 0.9, 1e-8, centered=options.get("centred", False)),
        "Rprop": lambda: optim.Rprop([x], 1e-3),
        "Adam": lambda: optim.Adam([x]),
        "AdamW": lambda: optim.AdamW([x], weight_decay=0.01),
        "AdaMax": lambda: optim.Adamax([x], 0.001),
        "AdaGrad": lambda: optim.Adagrad([x], 0.1, initial_accumulator_value=1e-8, eps=1e-8),
        "AdaDelta": lambda: optim.Adadelta([x], 1.0, 0.9, 1e-8),
    }
    return None if name not in makers or options.get("couple") is False else makers[name]()


def check_with_torch(name, options, x, gradients, points):
    parameter = torch.tensor(x.copy())
    rule = torch_rule(name, options, parameter)
    if rule is None:
        return
    for g, expected in zip(gradients, points):
        parameter.grad = torch.tensor(g.copy())
        rule.step()
        assert np.allclose(parameter.detach().numpy(), expected, rtol=1e-8, atol=1e-8), name


def write_rules(file, rng):
    golden = iter(GOLDEN.strip().splitlines())
    for name, variants in RULES.items():
        for rule, options in variants:
            points = run([(rule, options)], X0, GRADIENTS)
            row = next(golden).split()
            assert row[0] == name and np.allclose(
                np.concatenate([points[0], points[2]]), [float(v) for v in row[1:]], atol=1e-8
            )
            check_with_torch(name, options, X0, GRADIENTS, points)
            text.case(
                file, name, "Float64", [X0, *GRADIENTS], points, TOLERANCES["Float64"], samples="golden", **options
            )
            write_longer(file, rng, name, rule, options)


def write_longer(file, rng, name, rule, options):
    for dtype, tol in TOLERANCES.items():
        x = text.dyadic(rng, (3, 2))
        gradients = [text.dyadic(rng, (3, 2), -1.0, 1.0) + 0.0625 for _ in range(8)]
        points = run([(rule, options)], x, gradients)
        check_with_torch(name, options, x, gradients, points)
        text.case(file, name, dtype, [x, *gradients], [text.rounded(p, dtype) for p in points], tol, **options)


ARRAY_RULES = {  # name: (rule, options of each variant, the same in torch.optim and how near it comes)
    "Lamb": (lamb, [{}, {"lambda": 0.1}], None, 0),
    "Adafactor": (
        adafactor,
        [{}, {"lambda": 0.1}],
        lambda x, o: torch.optim.Adafactor([x], weight_decay=o.get("lambda", 0)),
        1e-8,
    ),
    "Muon": (  # torch.optim.Muon takes matrices alone, and turns them in BFloat16
        muon,
        [{}, {"nesterov": False, "lambda": 0.0}],
        lambda x, o: torch.optim.Muon(
            [x], weight_decay=o.get("lambda", 0.1), nesterov=o.get("nesterov", True), adjust_lr_fn="original"
        ),
        2e-4,
    ),
}


def write_array_rules(file, rng):
    for name, (rule, variants, peer, distance) in ARRAY_RULES.items():
        for options in variants:
            for shape in ((4, 3), (2, 5), (6,), (2, 2, 3)):
                x = text.dyadic(rng, shape) + 0.03125
                gradients = [text.dyadic(rng, shape, -1.0, 1.0) + 0.0625 for _ in range(4)]
                points = run([(rule, options)], x, gradients)
                if peer and len(shape) == 2:
                    parameter = torch.tensor(x.copy())
                    check_with_peer(peer(parameter, options), parameter, gradients, points, distance)
                for dtype, tol in TOLERANCES.items():
                    least = {"least": 2.0 ** (1 - text.FORMATS[dtype][0])} if rule is adafactor else {}
                    points = run([(rule, options | least)], x, gradients)
                    rounded = [text.rounded(p, dtype) for p in points]
                    text.case(file, name, dtype, [x, *gradients], rounded, tol, **options)


def check_with_peer(optimiser, parameter, gradients, points, distance):
    for g, expected in zip(gradients, points):
        parameter.grad = torch.tensor(g.copy())
        optimiser.step()
        assert np.allclose(parameter.numpy(), expected, rtol=distance, atol=distance), (parameter, expected)


def write_chains(file, rng):
    x, g = np.array([1.0, 10.0, 100.0]), np.array([1.0, 2.0, 3.0])
    cases = [  # rules and what Optimisers.jl's tests state
        ([("WeightDecay", weight_decay, {"lambda": 0.1})], [-0.1, 7, 87]),
        ([("SignDecay", sign_decay, {"lambda": 0.1})], [-0.1, 7.9, 96.9]),
        ([("ClipGrad", clip_grad, {"delta": 2.0})], [0, 8, 98]),
        ([("ClipGrad", clip_grad, {"delta": 2.0}), ("WeightDecay", weight_decay, {"lambda": 0.1})], [-0.1, 7, 88]),
        ([("Descent", descent, {"eta": 0.1})], [0.9, 9.8, 99.7]),
        ([], [0, 8, 97]),
    ]
    for rules, expected in cases:
        points = run([(rule, options) for _, rule, options in rules], x, [g])
        assert np.allclose(points[0], expected)
        write_chain(file, rules, x, [g], points)
    rules = [("WeightDecay", weight_decay, {"lambda": 0.1}), ("ClipGrad", clip_grad, {"delta": 2.0})]
    write_chain(file, rules, x, [g], run([(rule, options) for _, rule, options in rules], x, [g]))
    rules = [("ClipNorm", clip_norm, {"omega": 1.0}), ("Adam", adam, {"eta": 0.01})]
    gradients = [text.dyadic(rng, (3,)) + 0.0625 for _ in range(4)]
    write_chain(file, rules, X0, gradients, run([(rule, options) for _, rule, options in rules], X0, gradients))
    for name, rule, options in (
        ("ClipNorm", clip_norm, {"omega": 10.0}),
        ("ClipNorm", clip_norm, {"omega": 2.0, "p": 1.0}),
        ("ClipGrad", clip_grad, {"delta": 13.0}),
    ):
        g = np.array([1.0, 10.0, 100.0])
        text.case(file, name, "Float64", [X0, g], run([(rule, options)], X0, [g]), TOLERANCES["Float64"], **options)


def write_chain(file, rules, x, gradients, points):
    words = ",".join(f"{name}({text.attribute_text(next(iter(options.values())))})" for name, _, options in rules)
    text.case(file, "OptimiserChain", "Float64", [x, *gradients], points, TOLERANCES["Float64"], rules=words or "none")


def write_accumulation(file):
    """AccumGrad(3) then Descent(0.01): nothing for two steps, then the mean."""
    gradients = [np.array([1.0, -2.0, 4.0]) * k for k in range(1, 7)]
    points, x = [], X0
    for k in range(6):
        if k % 3 == 2:
            x = x - 0.01 * sum(gradients[k - 2 : k + 1]) / 3
        points.append(x)
    text.case(
        file,
        "OptimiserChain",
        "Float64",
        [X0, *gradients],
        points,
        TOLERANCES["Float64"],
        rules="AccumGrad(3),Descent(0.01)",
    )


def write_half(file):
    """Optimisers.jl's own case: in Float16 the mean square vanishes and epsilon (1e-7 at least) takes over."""
    x, g = text.rounded([0.579, -0.729, 0.5493], "Float16"), text.rounded([-0.001497, 0.0001875, -0.013176], "Float16")
    text.case(
        file,
        "Adam",
        "Float16",
        [x, g],
        [text.rounded([1.835, -0.886, 0.5493], "Float16")],
        "rtol=1e-03",
        eta=1e-4,
        samples="golden",
    )


def write(file):
    rng = np.random.default_rng(12)
    write_rules(file, rng)
    write_chains(file, rng)
    write_accumulation(file)
    write_half(file)
    write_array_rules(file, np.random.default_rng(13))
