"""Compares log-probs of Millrace's with a forward pass in float64 that reads the file itself and shares nothing with the graphs.

    java -cp ... dev.millrace.benchmarks.engine.LargeEmbedding DIR > said.txt
    python3 large_embedding_check.py DIR said.txt

DIR is what large_embedding.py wrote, with one layer. Exits with 1 if a log-prob is off by more than 1e-4.
"""

import json
import sys

import numpy as np

TOKENS = [0, 76_031, 76_032, 152_063, 5, 100_000, 149_999, 75_000, 151_000, 3, 76_033, 76_030]
HEADS, KEY_HEADS, SIZE, ROWS_AT_ONCE = 28, 4, 128, 8192


class Checkpoint:
    def __init__(self, directory):
        path = directory + "/model.safetensors"
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            self.header = json.loads(file.read(length))
        self.data = np.memmap(path, "<u2", "r", 8 + length)
        with open(directory + "/config.json") as file:
            self.tied = json.load(file)["tie_word_embeddings"]

    def tensor(self, name, rows=slice(None)):
        entry = self.header[name]
        begin, dims = entry["data_offsets"][0] // 2, entry["shape"]
        bits = self.data[begin:begin + int(np.prod(dims, dtype=np.int64))].reshape(dims)[rows]
        return (bits.astype("<u4") << 16).view("<f4").astype(np.float64)

    def linear(self, x, name, biased=False):
        return x @ self.tensor(name + ".weight").T + (self.tensor(name + ".bias") if biased else 0)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * self.tensor(name)


def log_probs(model):
    count, layer = len(TOKENS), "model.layers.0."
    x = np.stack([model.tensor("model.embed_tokens.weight", [token])[0] for token in TOKENS])
    a = model.norm(x, layer + "input_layernorm.weight")
    q, k, v = (model.linear(a, f"{layer}self_attn.{each}_proj", True).reshape(count, -1, SIZE).transpose(1, 0, 2) for each in "qkv")
    angles = np.arange(count)[:, None] * 1e6 ** (-np.arange(SIZE // 2) / (SIZE // 2))
    cos, sin = np.cos(angles), np.sin(angles)

    def turned(y):
        first, second = y[..., :SIZE // 2], y[..., SIZE // 2:]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)

    q, k, v = turned(q), np.repeat(turned(k), HEADS // KEY_HEADS, 0), np.repeat(v, HEADS // KEY_HEADS, 0)
    scores = np.where(np.tri(count, dtype=bool), q @ k.transpose(0, 2, 1) / np.sqrt(SIZE), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (shares / shares.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(count, -1)
    x = x + model.linear(mixed, layer + "self_attn.o_proj")
    a = model.norm(x, layer + "post_attention_layernorm.weight")
    gate = model.linear(a, layer + "mlp.gate_proj")
    x = x + model.linear(gate / (1 + np.exp(-gate)) * model.linear(a, layer + "mlp.up_proj"), layer + "mlp.down_proj")
    x = model.norm(x, "model.norm.weight")[:-1]
    head = "model.embed_tokens.weight" if model.tied else "lm_head.weight"
    rows = model.header[head]["shape"][0]
    logits = np.concatenate([x @ model.tensor(head, slice(at, at + ROWS_AT_ONCE)).T for at in range(0, rows, ROWS_AT_ONCE)], 1)
    most = logits.max(1)
    return logits[np.arange(count - 1), TOKENS[1:]] - most - np.log(np.exp(logits - most[:, None]).sum(1))


def main():
    directory, said = sys.argv[1:]
    with open(said) as file:
        found = next(json.loads(line[len("log-probs "):]) for line in file if line.startswith("log-probs "))
    difference = np.abs(np.array(found) - log_probs(Checkpoint(directory))).max()
    print(f"largest difference {difference:.2g} nats")
    sys.exit(1 if difference > 1e-4 else 0)


main()
