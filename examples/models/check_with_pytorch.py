"""The example models against torchvision and transformers: python3 check_with_pytorch.py PROGRAM [NAME...]

Each model gets random weights in PyTorch, which go to the program as a file. PyTorch and the program compute in Float64
and in Float32. In Float64, output, loss, gradients and everything after one step of gradient descent (running
statistics too) must be equal to 1e-4 of the largest element of their array; in Float32 output and loss must. Gradients
of deep networks are too sensitive for that in Float32, in PyTorch too: where they miss it, they must be as near to
PyTorch's of Float64 as the worst of PyTorch's own of Float32 is, up to a factor. And where an input of a ReLU or two of
a pool are equal but for rounding, either side may be taken, which changes gradients by far more than rounding does (in
PyTorch, too: its Float32 and its Float64 differ by 1e-2 then). A draw that misses the bound is therefore followed by
others; one of them must keep it. Sizes are small; no file is fetched.
"""

import copy
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn.functional import cross_entropy, mse_loss  # noqa: E402

BOUND = 1e-4
FACTOR = 2  # of PyTorch's own error in Float32; both are rounding, in other orders of adding
DRAWS = 4
ZERO = 1e-10  # but for rounding, in Float64
RATE = 0.1


def backwards(x):
    """Dims in the order in which rosin has them."""
    return x.permute(*reversed(range(x.ndim))).contiguous()


def randomise(model):
    """Values as training would leave them: no bias 0, no scale 1."""
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if not value.is_floating_point():
            continue
        spread = torch.randn(value.shape)
        with torch.no_grad():
            if name.endswith("running_var"):
                value.copy_(1 + 0.2 * spread.abs())
            elif value.ndim == 1:
                value.copy_((0 if "bias" in name or "mean" in name else 1) + 0.1 * spread)
            else:
                value.copy_(spread / (value[0].numel() ** 0.5))


def images(size, count=2, classes=10):
    return {"x": torch.randn(count, 3, size, size), "y": torch.randint(classes, (count,))}


def classify(model, batch):
    output = model(batch["x"])
    return output, cross_entropy(output, batch["y"])


def resnet18():
    from torchvision.models import resnet18 as make
    return make(num_classes=10), images(64), classify, {"classes": 10}


def resnet50():
    from torchvision.models.resnet import Bottleneck, ResNet
    return ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10), images(64), classify, {"classes": 10, "blocks": 1}


def small_vgg(norm):
    from torchvision.models import vgg
    with torch.device("meta"):  # its classifier has 120 million weights
        model = vgg.VGG(vgg.make_layers(vgg.cfgs["A"], batch_norm=norm), num_classes=10, init_weights=False, dropout=0)
        for place, (features, out) in {0: (512 * 49, 32), 3: (32, 32), 6: (32, 10)}.items():
            model.classifier[place] = torch.nn.Linear(features, out)
    model = model.to_empty(device="cpu")
    for name, value in model.named_buffers():
        if name.endswith("num_batches_tracked"):
            value.zero_()
    return model, images(64), classify, {"classes": 10, "hidden": 32, "dropout": 0}


def vgg11():
    return small_vgg(False)


def vgg11_bn():
    return small_vgg(True)


def mobilenet_v2():
    from torchvision.models import mobilenet_v2 as make
    options = {"classes": 10, "dropout": 0, "width": 0.5}
    return make(num_classes=10, dropout=0, width_mult=0.5), images(64), classify, options


def vit():
    from torchvision.models import VisionTransformer
    model = VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48,
                              num_classes=10)
    options = {"image": 32, "patch": 8, "layers": 2, "heads": 4, "width": 32, "hidden": 48, "classes": 10, "dropout": 0}
    return model, images(32), classify, options


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(vocab_size=61, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0,
                                       embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))
    batch = {"x": torch.randint(61, (3, 12)), "y": torch.randint(61, (3, 12))}

    def step(model, batch):
        output = model(batch["x"]).logits
        return output, cross_entropy(output.flatten(0, 1), batch["y"].flatten())

    options = {"vocabulary": 61, "positions": 16, "width": 32, "layers": 2, "heads": 4, "dropout": 0}
    return model, batch, step, options


def bert():
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(vocab_size=61, max_position_embeddings=16, hidden_size=32, num_hidden_layers=2,
                                 num_attention_heads=4, intermediate_size=48, hidden_dropout_prob=0,
                                 attention_probs_dropout_prob=0))
    present = torch.arange(12)[None] < torch.tensor([[12], [7], [9]])
    batch = {"x": torch.randint(61, (3, 12)), "kinds": torch.randint(2, (3, 12)), "present": present,
             "y": torch.randn(3, 12, 32)}

    def step(model, batch):
        result = model(batch["x"], attention_mask=batch["present"].long(), token_type_ids=batch["kinds"])
        return result.last_hidden_state, mse_loss(result.last_hidden_state, batch["y"]) + (
            result.pooler_output ** 2).mean()

    options = {"vocabulary": 61, "positions": 16, "width": 32, "layers": 2, "heads": 4, "hidden": 48, "dropout": 0}
    return model, batch, step, options


MODELS = [resnet18, resnet50, vgg11, vgg11_bn, mobilenet_v2, vit, gpt2, bert]


def weights(model):
    """What a file of the model holds: tied weights once, under the name that stands first."""
    found = {}
    for name, value in model.state_dict().items():
        if not any(value.data_ptr() == other.data_ptr() and value.ndim for other in found.values()):
            found[name] = value.detach().clone() if value.ndim == 0 else value.detach()
    return found


def in_type(batch, dtype):
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}


def expected(model, batch, step, dtype):
    """Name and value of everything that the program writes, as PyTorch has it in this type."""
    model, batch = copy.deepcopy(model).to(dtype), in_type(batch, dtype)
    model.eval()
    with torch.no_grad():
        found = {"output": step(model, batch)[0]}
    model.train()
    loss = step(model, batch)[1]
    loss.backward()
    found["loss"] = loss.detach()
    tied = weights(model)
    for name, value in model.named_parameters():
        found["grad." + name] = value.grad
    torch.optim.SGD(model.parameters(), lr=RATE).step()
    for name, value in model.state_dict().items():
        if name in tied and value.is_floating_point():
            found["after." + name] = value.detach()
    return found


def difference(got, wanted):
    """The largest one, relative to the largest element of the array."""
    largest = max(wanted.abs().max().item(), 1e-6)  # below that, rounding is all there is
    return (got.double() - wanted).abs().max().item() / largest


def worst_difference(got, wanted, names):
    return max((difference(got[name], wanted[name]), name) for name in names)


def worst_beside(got, peer, wanted):
    """The worst differences of the program and of PyTorch in Float32, and the former as a multiple of what is allowed.

    Gradients that are zero, such as that of a bias before a BatchNorm, are left out: what is there is rounding alone.
    """
    names = [name for name, value in wanted.items() if value.abs().max() > ZERO]
    ours, name = worst_difference(got, wanted, names)
    theirs, _ = worst_difference(peer, wanted, names)
    return ours / max(BOUND, FACTOR * theirs), name, ours, theirs


def computed(program, name, options, files):
    """What the program writes."""
    arguments = [f"{key}={value}" for key, value in options.items()]
    done = subprocess.run([program, name, *arguments, *files], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    got = load_file(files[2])
    got["output"] = backwards(got["output"])
    return got


def check(program, make, seed, folder):
    """The worst differences in Float64, and in Float32 those of output and loss, and of all beside PyTorch's."""
    torch.manual_seed(seed)
    model, batch, step, options = make()
    randomise(model)
    files = [folder / name for name in ("weights.safetensors", "batch.safetensors", "out.safetensors")]
    save_file(weights(model), files[0])
    save_file({name: backwards(value) for name, value in batch.items()}, files[1])
    wanted, results = expected(model, batch, step, torch.float64), []
    for precise in (1, 0):
        got = computed(program, make.__name__, {**options, "float64": precise}, files)
        if got.keys() != wanted.keys():
            raise SystemExit(f"{make.__name__}: names differ: {sorted(got.keys() ^ wanted.keys())}")
        for name, value in wanted.items():
            if got[name].shape != value.shape:
                raise SystemExit(f"{name} has shape {tuple(got[name].shape)}, not {tuple(value.shape)}")
        results.append(got)
    peer = expected(model, batch, step, torch.float32)
    return (worst_difference(results[0], wanted, wanted), worst_difference(results[1], wanted, ("output", "loss")),
            worst_beside(results[1], peer, wanted))


def is_right(program, make):
    """Whether Float64, and output and loss in Float32, are right in each draw, and all in Float32 in the last."""
    for seed in range(1, DRAWS + 1):
        with tempfile.TemporaryDirectory() as folder:
            precise, forward, (share, name, ours, theirs) = check(program, make, seed, pathlib.Path(folder))
        print(f"{make.__name__}: Float64 {precise[0]:.1e} in {precise[1]}, Float32 {forward[0]:.1e} in {forward[1]}, "
              f"{ours:.1e} in {name} (PyTorch: {theirs:.1e})", flush=True)
        if max(precise[0], forward[0]) > BOUND:
            return False
        if share <= 1:
            return True
    return False


def main(program, names):
    return not all([is_right(program, make) for make in MODELS if not names or make.__name__ in names])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
