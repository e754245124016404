"""The network of example 21 in PyTorch: the same layers, first weights, rule, schedule and text, on one thread.

    python3 examples/char_gpt_with_pytorch.py INPUT.txt [SEED [STEPS]]

prints the loss over the validation text; that of `example_21_char_gpt INPUT.txt` is within 0.02 of it."""
import math
import sys

import torch
import torch.nn.functional as F

LENGTH, BATCH, WIDTH, LAYERS, HEADS = 64, 32, 128, 4, 4


class Gpt(torch.nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.tokens = torch.nn.Embedding(letters, WIDTH)
        self.places = torch.nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True, norm_first=True,
                                             activation=lambda x: F.gelu(x, approximate="tanh"))
            for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, letters, bias=False)
        for x in self.parameters():
            if x.dim() > 1:
                torch.nn.init.normal_(x, 0, 0.02)
        for name, x in self.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.zeros_(x)

    def forward(self, ids):
        x = self.tokens(ids) + self.places[:ids.shape[1]]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def rate(step, steps):
    warm = steps // 20
    if step < warm:
        return 1e-3 * (step + 1) / warm
    return 1e-4 + (1e-3 - 1e-4) * 0.5 * (1 + math.cos(math.pi * min(1, (step - warm) / steps)))


def loss(model, text, begins):
    places = begins[:, None] + torch.arange(LENGTH)[None]
    return F.cross_entropy(model(text[places]).flatten(0, 1), text[places + 1].flatten())


def main(path, seed=1, steps=2000):
    torch.manual_seed(int(seed))
    torch.set_num_threads(1)
    steps = int(steps)
    with open(path) as file:
        letters = file.read()
    vocabulary = sorted(set(letters))
    text = torch.tensor([vocabulary.index(letter) for letter in letters])
    split = len(text) * 9 // 10
    training, rest = text[:split], text[split:]
    model = Gpt(len(vocabulary))
    rule = torch.optim.AdamW(model.parameters(), weight_decay=0)
    for step in range(steps):
        rule.param_groups[0]["lr"] = rate(step, steps)
        value = loss(model, training, torch.randint(0, len(training) - LENGTH, (BATCH,)))
        rule.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rule.step()
        if step % (steps // 6) == 0:
            print(f"step {step}: {value.item():.4f}", flush=True)
    model.eval()
    batches = (len(rest) - 1) // (LENGTH * BATCH)
    with torch.no_grad():
        values = [loss(model, rest, torch.arange(BATCH) * LENGTH + i * LENGTH * BATCH).item() for i in range(batches)]
    print(f"validation loss {sum(values) / batches:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
