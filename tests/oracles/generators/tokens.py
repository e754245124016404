"""tokens.txt, with bpe_vocab.json and bpe_merges.txt: texts and their tokens by the packages tokenizers and regex.

Cases:
  gpt2_bpe: in the bytes of a text, out the tokens of tokenizers' byte-level BPE with the two files. What is no UTF-8 is
    cut by GPT-2's expression in the package regex, each bad byte as a surrogate, and joined by tokenizers' BPE model.
  words: in the bytes, out where each word ends, by regex.
  characters: in two texts, out the places of the second's characters among the sorted ones of the first (Python).
The files are trained here, on the texts below; they are small, and made as GPT-2's are.
"""

import json
import pathlib

import numpy as np

from . import text

FOLDER = pathlib.Path(__file__).resolve().parents[1]
PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TEXTS = [
    "Hello world", " Hello  world ", "", " ", "   ", "\n\n\n", "a",
    "It's we've you're I'm they'll he'd don't can''t 'S 'LL",
    "the quick brown fox jumps over the lazy dog; THE QUICK BROWN FOX.", "1234567890 12 345,678.90 x1y2z3 ½ ² ٣٤٥ Ⅷ 〇",
    "tabs\tand\r\nlines \n indented\n    four spaces\n\tone tab  \n",
    "no\u00a0break\u2003em\u3000ideographic\u0085next\u2028line",
    "Grüße aus Köln, naïve café, Ærøskøbing, İstanbul, ſtraße", "Привет, как дела? Всё хорошо.", "Γειά σου Κόσμε",
    "日本語のテキスト。東京は12月です", "你好,世界!这是一个测试。", "안녕하세요 세계", "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया",
    "สวัสดีชาวโลก", "🙂🙃 👩‍👩‍👧‍👦 🇩🇪 ❤️ ok👍🏽", "e\u0301 combining, zero\u200bwidth, \ufeffbom, \u200d joiner",
    "<|endoftext|> is text here", "#include <vector>\nint main() { return x[0] += 1; } // $%^&*()_+",
    "''' \"quoted\" --- ... ???!!!",
    "ab" * 40, "a" * 100, "lowlowerlowest" * 5, " leading and trailing   ", "\x00\x01\x1c\x1d\x1e\x1f\x7f control",
    "\U00010400\U0001d400\U00020000 beyond the plane \U0001f600", "x" * 31 + "y", "x" * 32 + "y", "the " * 50,
]
BROKEN = [b"\xff\xfe", b"caf\xe9 au lait", b"\xc3(", b"ok \xe2\x82 cut",
          b"\xed\xa0\x80 surrogate", b"\xc0\xaf overlong",
          b"\xf4\x90\x80\x80", b"tail \xf0\x9f\x99", b" \x80's \x80\x81 \xc3\xa9"]


def train(tokenizers):
    corpus = [line for line in TEXTS for _ in range(3)] + (FOLDER.parents[1] / "LICENSE").read_text().split("\n")
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.train_from_iterator(corpus, trainer)
    state = json.loads(made.to_str())["model"]
    vocab = dict(sorted(state["vocab"].items(), key=lambda entry: entry[1]))
    (FOLDER / "bpe_vocab.json").write_text(json.dumps(vocab) + "\n", encoding="ascii")
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in state["merges"]]
    (FOLDER / "bpe_merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")


def byte_characters():
    """GPT-2's visible character of each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + n) for n, b in enumerate(hidden)}}


def bytes_array(data):
    return "UInt8", np.array(list(data), dtype=np.int64)


def write(file):
    import regex
    import tokenizers

    train(tokenizers)
    model = tokenizers.models.BPE.from_file(str(FOLDER / "bpe_vocab.json"), str(FOLDER / "bpe_merges.txt"))
    ours = tokenizers.Tokenizer(model)
    ours.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    shown = byte_characters()
    for data in [entry.encode() for entry in TEXTS] + BROKEN:
        plain = data.decode("utf-8", "surrogateescape")
        words = [word.encode("utf-8", "surrogateescape") for word in regex.findall(PATTERN, plain)]
        tokens = [t.id for word in words for t in model.tokenize("".join(shown[b] for b in word))]
        if data not in BROKEN:
            assert tokens == ours.encode(plain).ids, plain
        text.case(file, "gpt2_bpe", "Int32", [bytes_array(data)], [np.array(tokens, dtype=np.int64)], "exact")
        ends = np.cumsum([len(word) for word in words], dtype=np.int64)
        text.case(file, "words", "Int32", [bytes_array(data)], [ends], "exact")
    for known, other in [("hello world", "low or hero"), ("Grüße, 日本 🙂", "üß🙂本")]:
        places = np.array([sorted(set(known)).index(c) for c in other], dtype=np.int64)
        arrays = [bytes_array(known.encode()), bytes_array(other.encode())]
        text.case(file, "characters", "Int32", arrays, [places], "exact")
