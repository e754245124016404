"""The workloads: one table of sizes, and their prime variants. Standard library only. Read next: inputs.py (what every
side starts from), bench.py (runs them), peer.py (how a peer is asked)."""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    kind: str  # a key of inputs.KINDS; where it is "op", `op` names a function that every side has
    sizes: dict
    steps: int  # in one repeat
    activation: str = ""  # of the mlp's hidden layers
    loss: str = ""  # mse | logitcrossentropy | labels; empty: forward only
    op: str = ""
    threads: tuple = (1, 2)
    peers: tuple = ("torch", "jax", "mlx")
    layouts: tuple = ("",)  # memory orders of images that the peers try
    modes: tuple = ()  # of the peers, where not all are tried: torch.compile takes minutes for a large network
    compared: int = 20  # steps whose losses are compared; a network with statistics of batches soon magnifies rounding
    tolerance: float = 1e-4  # of them, relative; more where runs part that differ in the order of sums alone
    alike: bool = True  # the results are those of the peers; not so for random numbers
    prime: bool = True  # prime sizes are tried too
    program: str = ""  # ours is bench_<program>; empty: the name
    autocast: bool = False  # matrix products and convolutions compute in BFloat16
    needs: tuple = ()  # flags of /proc/cpuinfo, of which the processor has to have one
    first_step: bool = False  # what counts is the first step of a fresh process
    about: str = ""
    ratios: tuple = ()  # goals: the least ratio with one thread and with two, or one number for both
    most: tuple = ()  # what one thread may take: (" ms" | " ns an op" | " ns an element", most)
    scaling: float = 0  # how many times as fast two threads are to be as one
    reason: str = ""  # why the goal may be missed, and the profile that shows it (perf record; shares of samples)


IMAGES = dict(batch=128, image=28, channels=1, conv1=6, conv2=16, dense1=120, dense2=84, classes=10)
DIGITS = dict(batch=128, inputs=784, hidden=256, outputs=10)
ONE = dict(batch=1)
CHARACTERS = dict(vocabulary=65, width=128, layers=4, heads=4)
BUSY = ("Two threads take 1.07 to 1.14 times the processor's time of one; on the same machine, hours before, they were "
        "1.85 to 1.94 times as fast.")
WITHOUT_MLX = ("torch", "jax")  # it takes seconds for a step, or has no such op


def op(name, function, sizes, steps, about, goal=1, **more):
    return Workload(name, "op", sizes, steps, op=function, program="ops", about=about, ratios=(goal,), **more)


def rows(features, columns):
    return dict(features=features, columns=columns)


TABLE = {w.name: w for w in [
    Workload("C1", "mlp", dict(batch=200, inputs=24, hidden=8, outputs=2), 3000, "tanh", "mse", about="MLP 24-8-2",
             ratios=(6,),
             reason="Half of the samples are in recording the step, walking back through it and finding its plan; "
                    "25 % in its products, whose columns have 8 and 2 rows, a tenth in fused kernels. The peers' "
                    "fastest step is compiled beforehand and records nothing."),
    Workload("C2", "deep", dict(batch=10_000, inputs=4, hidden1=32, hidden2=16, outputs=4), 50, "tanh", "mse",
             about="MLP 4-32-16-4 b10000", ratios=(2.5,),
             reason="Half of the samples are in products whose sides are 4, 16 and 32, a seventh in tanh of 480,000 "
                    "elements, a fifth in fused kernels."),
    Workload("C3", "lenet", IMAGES, 40, loss="logitcrossentropy", layouts=("nchw", "nhwc"), about="LeNet-5 b128",
             ratios=(3.5,), scaling=1.8,
             reason="The step is arithmetic: 59 % of the samples are in products and convolutions by tiles, 16 % in "
                    "oneDNN and fused kernels, 13 % in pools, 2 % in recording. Its 6 channels fill 6 of 8 or 16 "
                    "lanes."),
    Workload("C4", "mlp", DIGITS, 200, "relu", "logitcrossentropy", about="MLP 784-256-10 b128",
             ratios=(1.4, 1.6), scaling=1.8,
             reason="A third of the samples each are in products by panels and by tiles, 4 % in what panels copy, the "
                    "rest in fused kernels with Adam's sweep. On a Zen 4 two threads are 1.87 as fast."),
    Workload("C5", "deep", dict(batch=512, inputs=784, hidden1=512, hidden2=512, outputs=10), 10, "relu",
             "logitcrossentropy", program="c2", tolerance=1e-3, about="MLP 784-512-512-10 b512", ratios=(1.05, 1.1),
             scaling=1.8,
             reason="The step is products. On a Zen 4 oneDNN and our tiles compute each of them at 96 to 107 "
                    "GFLOP/s, where a core gives 115."),
    Workload("C6", "resnet", dict(batch=8, image=224, channels=3, classes=1000), 2, loss="logitcrossentropy",
             layouts=("nhwc",), modes=("eager", "compile", "jit"), compared=2, tolerance=4e-3, prime=False,
             peers=WITHOUT_MLX, about="ResNet-18 b8", ratios=(1.1,), scaling=1.8,
             reason="With one thread 41 % of the samples are in products by tiles and Winograd's weights, 34 % in "
                    "machine code (oneDNN's and that of kernels), 15 % in turning images for Winograd's filters, 7 "
                    "% in the system, which clears pages."),
    Workload("C6-bf16", "resnet", dict(batch=8, image=224, channels=3, classes=1000), 2, loss="logitcrossentropy",
             layouts=("nchw", "nhwc"), modes=("eager", "compile"), compared=2, tolerance=2e-2, prime=False,
             program="c6", peers=("torch",), autocast=True, needs=("avx512_bf16", "amx_bf16"),
             about="the same with autocast to BFloat16", ratios=(1.05,),
             reason="On a Zen 4 40 % of the samples are in products by tiles, of Float32, 18 % in turning images "
                    "and weights for Winograd's filters, 13 % in machine code (oneDNN's convolutions of BFloat16 "
                    "and kernels)."),
    Workload("resnet-frozen", "resnet", dict(batch=8, image=224, channels=3, classes=1000), 3,
             layouts=("nchw", "nhwc"), modes=("eager", "compile", "jit"), prime=False, program="c6",
             peers=WITHOUT_MLX, about="ResNet-18 b8, inference with frozen statistics", ratios=(1,)),
    Workload("C7", "gpt", CHARACTERS | dict(batch=12, tokens=64), 10, loss="labels",
             modes=("eager", "compile", "jit"), prime=False, about="char-GPT 4L d128 T64 b12", ratios=(1.3,),
             scaling=1.8,
             reason="41 % of the samples are in products by panels, 19 % in those by tiles, a quarter in machine "
                    "code of kernels, 3 % in attention. " + BUSY),
    *(Workload(f"C7-{tokens}", "gpt", CHARACTERS | dict(batch=batch, tokens=tokens), steps, loss="labels",
               modes=("eager", "compile", "jit"), prime=False, program="c7", peers=WITHOUT_MLX,
               about=f"the same, T{tokens} b{batch}", ratios=(1.3,), scaling=1.8, reason=BUSY)
      for tokens, batch, steps in ((128, 8, 8), (256, 6, 6))),
    Workload("C7-long", "gpt", CHARACTERS | dict(batch=4, tokens=512), 4, loss="labels",
             modes=("eager", "compile", "jit"), prime=False, program="c7", peers=WITHOUT_MLX,
             about="the same, T512 b4", ratios=(1.3,), scaling=1.8, reason=BUSY),
    Workload("C8", "chain", dict(elements=1_000_000), 200, about="gelu(x + b), 10 ops, 1 M elements",
             ratios=(1.3,), most=(" ns an element", 0.45),
             reason="All samples are in one loop of machine code, of about 30 instructions and a division for "
                    "sixteen elements."),
    Workload("C9", "tiny", dict(elements=8, ops=100), 10_000, threads=(1,), about="100 dependent ops on 8 elements",
             most=(" ns an op", 35),
             reason="On a Zen 4 recording takes 16 ns an op, computing 8 elements and looking for the plan the rest."),
    Workload("tiny-1000", "tiny", dict(elements=8, ops=1000), 1000, threads=(1,), program="c9",
             modes=("eager", "compile", "jit"), about="1000 dependent ops on 8 elements", ratios=(1,),
             reason="88 % of the samples are in recording and finding the plan, which JAX does once, beforehand."),
    Workload("C10", "mlp", DIGITS, 1, "relu", "logitcrossentropy", threads=(1,), first_step=True,
             about="first step of C4", most=(" ms", 2),
             reason="On a Zen 5 it takes 1.6 ms, on a Zen 4 2.7; where slower cores spend the rest was not looked "
                    "into."),
    Workload("LSTM", "lstm", dict(batch=32, tokens=50, inputs=128, hidden=128, outputs=10), 10,
             loss="logitcrossentropy", modes=("eager", "jit"), peers=WITHOUT_MLX, about="two layers of 128, T50 b32",
             ratios=(1.3,),
             reason="On a Zen 4 61 % of the samples are in products by tiles, half of those of 32 columns, of which "
                    "each step of time waits for the one before; a fifth in oneDNN's, 7 % in gates, 4 % in fetching "
                    "what the inputs give to each step. Products alone would take 20 of the 25 ms at what a core "
                    "gives at most."),
    Workload("CNN", "cnn", dict(batch=32, image=32, channels=3, conv=32, classes=10), 10, loss="logitcrossentropy",
             layouts=("nchw", "nhwc"), modes=("eager", "compile", "jit"), compared=3,
             peers=WITHOUT_MLX, about="six 3x3 convolutions with BatchNorm, 32x32, b32", ratios=(1.3,)),
    Workload("one-digit", "mlp", DIGITS | ONE, 3000, "relu", program="c4", about="C4's model, inference of one",
             ratios=(5,),
             reason="80 % of the samples are in the product of 256 x 784 weights by one column, 0.8 MB from the "
                    "second cache of which nothing is used twice; 6 % in recording."),
    Workload("one-image", "lenet", IMAGES | ONE, 1000, layouts=("nchw", "nhwc"), program="c3",
             about="C3's model, inference of one", ratios=(5,),
             reason="65 % of the samples are in products and convolutions of a few microseconds and what they copy, "
                    "12 % in recording a dozen ops and finding their plan, 6 % in pools."),
    op("softmax", "softmax_gradient", rows(37, 20_000), 50, "forward and backward, 37 x 20000", 1.3,
       reason="On a Zen 4 94 % of the samples are in four loops of machine code over rows of 37: 38 % in that of "
              "the exponential, 21 % in that of the largest, 19 % in that of the gradient's sums. A row fills two "
              "and a quarter vectors, so that the last one is mostly empty."),
    op("softmax-large", "softmax_gradient", rows(4096, 4096), 5, "the same, 4096 x 4096", 1.3),
    op("softmax-half", "half_softmax", rows(1000, 1000), 50, "of columns of 1000, 1 M Float16"),
    op("layernorm", "layernorm_gradient", rows(129, 8_000), 50, "forward and backward, 129 x 8000", 1.3,
       reason="On a Zen 4, one kernel: 34 % of the samples are in its first loop, which fetches 8 MB, 19 % in that "
              "which writes 4 MB, 14 % in adding up two gradients of 129 elements, 12 % between the loops of 900 "
              "elements."),
    op("layernorm-large", "layernorm_gradient", rows(4096, 4096), 5, "the same, 4096 x 4096", 1.3),
    op("axpb", "axpb", rows(1000, 1000), 100, "2 x + 1, 1 M elements"),
    op("multiply-add", "multiply_add", rows(1000, 1000), 100, "x y + z, 1 M elements",
       reason="On a Zen 4 two threads together read and write 16 MB at 72 GB/s, one alone at 64."),
    op("half-add", "half_add", rows(1000, 1000), 50, "x + y of Float16, 1 M elements"),
    op("tanh-large", "tanh", rows(5000, 6000), 3, "tanh, 30 M elements"),
    op("gelu-large", "gelu", rows(5000, 6000), 3, "gelu by tanh, 30 M elements"),
    Workload("depthwise", "depthwise", dict(batch=8, channels=64, image=56, kernel=3), 50, layouts=("nchw", "nhwc"),
             about="3x3 convolution of each of 64 channels, 56x56, b8, forward", ratios=(1,)),
    op("sum-within", "sum_within", rows(1000, 1000), 100, "sums of columns of 1000, 1 M elements"),
    op("sum-across", "sum_across", rows(1000, 1000), 100, "sums over 1000 columns, 1 M elements",
       reason="On a Zen 4 70 % of the samples are in one loop of machine code, 11 % in adding up its parts, 5 % in "
              "clearing them."),
    op("logsumexp", "logsumexp", rows(1000, 1000), 50, "of columns of 1000, 1 M elements"),
    op("argmax", "argmax", rows(1000, 1000), 50, "of columns of 1000, 1 M elements"),
    op("cumsum", "cumsum", rows(1000, 1000), 50, "within columns of 1000, 1 M elements"),
    op("cumsum-across", "cumsum_across", rows(1000, 1000), 50, "over 1000 columns, 1 M elements"),
    op("transpose", "transposed", rows(1000, 1000), 50, "a copy, 1 M elements",
       reason="On a Zen 4 52 % of the samples are in turning squares, 37 % in copying them out of the buffer in "
              "which they stand, so that each line of the cache is written once."),
    op("transpose-large", "transposed", rows(5000, 6000), 3, "a copy, 30 M elements"),
    op("sort", "sorted", rows(1_000_000, 1), 5, "1 M elements"),
    op("top-10", "top", rows(1_000_000, 1), 20, "of 1 M elements"),
    op("int-matmul", "int_matmul", rows(256, 256), 20, "Int32, 256 x 256", peers=WITHOUT_MLX,
       reason="94 % of the samples are in one loop, whose multiplications of 32 bits are two instructions each to "
              "the processor."),
    op("gather", "gathered", dict(features=256, columns=30_000, indices=8192), 20, "8192 columns of 256"),
    op("embedding-gradient", "gather_gradient", dict(features=256, columns=30_000, indices=8192), 10,
       "8192 columns of 256 added into 30000",
       reason="On a Zen 4 half of the samples are in writing 31 MB of zeros, the rest in adding columns."),
    op("normal", "normal", rows(1000, 1000), 50, "1 M random numbers", alike=False,
       reason="43 % of the samples are in the generator, the rest in one loop of machine code."),
    op("uniform", "uniform", rows(1000, 1000), 50, "1 M random numbers", alike=False),
    op("epoch", "epoch", dict(features=784, columns=10_000, size=128), 5, "10000 images in shuffled batches of 128",
       alike=False, modes=("eager", "jit"), peers=WITHOUT_MLX),
]}


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def nearest_prime(n):
    """The prime nearest to n, the greater of two; 1 stays 1 (a size-1 dimension is a case of its own)."""
    if n == 1:
        return 1
    return next(p for distance in range(n) for p in (n + distance, n - distance) if is_prime(p))


def prime_variant(sizes):
    return {name: nearest_prime(n) for name, n in sizes.items()}
