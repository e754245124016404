#!/usr/bin/env python3
"""Inference of whole models that others wrote, from the ONNX files that torch.onnx.export makes of them: ours beside
PyTorch eager and ONNX Runtime, on the same weights and inputs.
build/venv/bin/python bench/models.py [NAMES] [--repeats N] [--seconds S] [--results FILE]

Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime in that environment. Weights are random and one
input is a batch of one; times do not depend on values. The sides take turns, each repeat is a median of calls for some
time, and a number is the median of the repeats. Our results must be within 1e-4 of PyTorch's, of the largest.
Read first: models.cpp (our side).
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import sections
from bench import processor

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_models"
THREADS = (1, 2)


def vision(name, *sizes):
    def made():
        import torch
        import torchvision
        return getattr(torchvision.models, name)(weights=None), (torch.randn(1, *(sizes or (3, 224, 224))),)
    return made


def segmentation(name):
    def made():
        import torch
        import torchvision
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None)
        return First(model, "out"), (torch.randn(1, 3, 224, 224),)
    return made


def language(kind, length=128, **sizes):
    """A model of tokens, `length` of them, with a mask that leaves none out."""
    def made():
        import torch
        import transformers
        config = getattr(transformers, kind[1])(**sizes)
        model = getattr(transformers, kind[0])(config)
        ids = torch.randint(5, config.vocab_size, (1, length))
        return First(model, 0, return_dict=True), (ids, torch.ones(1, length, dtype=torch.int64))
    return made


def whisper():
    import torch
    import transformers
    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    return First(transformers.WhisperModel(transformers.WhisperConfig(**sizes)).encoder, 0), (torch.randn(1, 80, 3000),)


def First(model, key, **options):
    """The model with one of its results alone."""
    import torch

    class OneResult(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            names = ("input_ids", "attention_mask")
            if len(inputs) == 2:
                return self.model(**dict(zip(names, inputs)), **options)[key]
            return self.model(*inputs, **options)[key]
    return OneResult()


MODELS = {
    "ResNet-18": vision("resnet18"), "ResNet-50": vision("resnet50"), "ResNeXt-50": vision("resnext50_32x4d"),
    "DenseNet-121": vision("densenet121"), "SqueezeNet 1.1": vision("squeezenet1_1"),
    "Inception v3": vision("inception_v3", 3, 299, 299), "VGG-11": vision("vgg11"),
    "MobileNetV2": vision("mobilenet_v2"), "MobileNetV3": vision("mobilenet_v3_large"),
    "ShuffleNetV2": vision("shufflenet_v2_x1_0"), "EfficientNet-B0": vision("efficientnet_b0"),
    "RegNetY-400MF": vision("regnet_y_400mf"), "ConvNeXt-T": vision("convnext_tiny"), "Swin-T": vision("swin_t"),
    "ViT-B/16": vision("vit_b_16"), "DeepLabV3": segmentation("deeplabv3_mobilenet_v3_large"),
    "BERT, 6 layers": language(("BertModel", "BertConfig"), num_hidden_layers=6),
    "GPT-2, 6 layers": language(("GPT2LMHeadModel", "GPT2Config"), n_layer=6, use_cache=False),
    "Llama, 6 layers of 512": language(("LlamaForCausalLM", "LlamaConfig"), hidden_size=512, intermediate_size=1376,
                                       num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4,
                                       vocab_size=8000, use_cache=False),
    "Whisper tiny, encoder": whisper,
}


def export(name, folder):
    """The model and its inputs, and their files."""
    import numpy
    import torch
    torch.manual_seed(1)
    model, inputs = MODELS[name]()
    model.eval()
    for weights in model.parameters():  # a last layer that begins with zeros would show no difference
        if weights.dim() == 2 and not weights.any():
            torch.nn.init.normal_(weights, std=0.02)
    path = folder / "model.onnx"
    with torch.inference_mode():
        wanted = model(*inputs)
    torch.onnx.export(model, inputs, path, dynamo=False, opset_version=17)
    numpy.savez(folder / "inputs.npz", **{f"x{i}": x.numpy() for i, x in enumerate(inputs)}, y0=wanted.numpy())
    return model, inputs, path


def repeated(call, seconds):
    """The median of calls for about so long, in milliseconds."""
    for _ in range(2):
        call()
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def ours(path, threads, seconds):
    command = [str(PROGRAM), str(path), str(path.with_name("inputs.npz")), str(seconds)]
    done = subprocess.run(command, env={**os.environ, "ROSIN_NUM_THREADS": str(threads)}, check=True,
                          capture_output=True, text=True)
    off, _, ms = (float(word) for word in done.stdout.split())
    if not off < 1e-4:
        raise SystemExit(f"{path}: our result is off by {off} of the largest")
    return ms


def measured(name, repeats, seconds, folder):
    """{(side, threads): median ms}"""
    import onnxruntime
    import torch
    model, inputs, path = export(name, folder)
    found = {}
    for threads in THREADS:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feed = {port.name: x.numpy() for port, x in zip(session.get_inputs(), inputs)}
        torch.set_num_threads(threads)
        times = {"ours": [], "PyTorch": [], "ONNX Runtime": []}
        with torch.inference_mode():
            for _ in range(repeats):
                times["ours"].append(ours(path, threads, seconds))
                times["PyTorch"].append(repeated(lambda: model(*inputs), seconds))
                times["ONNX Runtime"].append(repeated(lambda: session.run(None, feed), seconds))
        found.update({(side, threads): statistics.median(list_) for side, list_ in times.items()})
    return found


def row(name, found):
    cells = [name]
    for threads in THREADS:
        own = found["ours", threads]
        cells.append(f"{own:.4g}")
        for side in ("PyTorch", "ONNX Runtime"):
            cells.append(f"{found[side, threads]:.4g} ({found[side, threads] / own:.2f})")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each side in each repeat")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE", help="write the section about models there")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    load, rows = os.getloadavg()[0], []
    for name in MODELS:
        if arguments.names and not any(word.lower() in name.lower() for word in arguments.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(name, measured(name, arguments.repeats, arguments.seconds, pathlib.Path(folder))))
        print(*rows[-1], sep="  ", file=sys.stderr)
    head = ["model"]
    for threads in THREADS:
        head += [f"ours, {threads} thread{'s' * (threads > 1)}", "PyTorch", "ONNX Runtime"]
    command = f"bench/models.py --repeats {arguments.repeats} --seconds {arguments.seconds}"
    text = (f"## Models\n\n`build/venv/bin/python {command}`, "
            f"{time.strftime('%Y-%m-%d')}: {processor()}, load {load:.1f} at the start. One input, Float32, from the "
            f"ONNX file that PyTorch exports; milliseconds, in brackets how many times as long as ours. Medians of "
            f"{arguments.repeats}.\n\n{sections.table(head, rows)}")
    print(text)
    if arguments.results:
        sections.write(arguments.results, text)


if __name__ == "__main__":
    main()
