"""Compares Millrace's log-probs and gradients with PyTorch's autograd on the same weights and tokens.

    ./mvnw -q -pl policy -am test
    python3 policy/src/test/python/torch_check.py policy/target/torch-check/*

The decoder below is written from the model's definition and shares nothing with the graphs. Everything runs in float64 on the
float32 weights, so that the differences printed are the rounding of Millrace's float32. Needs torch (1.13 is enough) and nothing else; Debian's
torch wants OpenBLAS in front of the reference BLAS on LD_LIBRARY_PATH. Exits with 1 if a tensor is off by more than 1e-5 of its norm.
"""
import json
import math
import pathlib
import struct
import sys

import torch

TOLERANCE = 1e-5


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = bytearray(raw[8 + length + begin:8 + length + end])
        tensors[name] = torch.frombuffer(data, dtype=torch.float32).reshape(entry["shape"]).double()
    return tensors


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """x: [heads, length, head_dim]"""
    length, size = x.shape[1], x.shape[2]
    frequency = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency[None, :]
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    first, second = x[..., :size // 2], x[..., size // 2:]
    return x * cos + torch.cat([-second, first], -1) * sin


def log_softmax_of_sequence(weights, config, tokens, temperature):
    def linear(x, name):
        y = x @ weights[name + ".weight"].T
        bias = weights.get(name + ".bias")
        return y if bias is None else y + bias

    heads, kv_heads, size = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    eps, theta, length = config["rms_norm_eps"], config["rope_theta"], len(tokens)
    x = weights["model.embed_tokens.weight"][torch.tensor(tokens)]
    future = torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        h = rms_norm(x, weights[prefix + "input_layernorm.weight"], eps)
        q = rotate(linear(h, prefix + "self_attn.q_proj").reshape(length, heads, size).transpose(0, 1), theta)
        k = rotate(linear(h, prefix + "self_attn.k_proj").reshape(length, kv_heads, size).transpose(0, 1), theta)
        v = linear(h, prefix + "self_attn.v_proj").reshape(length, kv_heads, size).transpose(0, 1)
        k, v = (t.repeat_interleave(heads // kv_heads, 0) for t in (k, v))
        mixed = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(size) + future, -1) @ v
        x = x + linear(mixed.transpose(0, 1).reshape(length, heads * size), prefix + "self_attn.o_proj")
        h = rms_norm(x, weights[prefix + "post_attention_layernorm.weight"], eps)
        gated = torch.nn.functional.silu(linear(h, prefix + "mlp.gate_proj")) * linear(h, prefix + "mlp.up_proj")
        x = x + linear(gated, prefix + "mlp.down_proj")
    hidden = rms_norm(x, weights["model.norm.weight"], eps)
    head = weights["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    return torch.log_softmax(hidden @ head.T / temperature, -1)


def check(directory):
    config = json.loads((directory / "config.json").read_text())
    batch = json.loads((directory / "batch.json").read_text())
    weights = {name: t.requires_grad_() for name, t in read_safetensors(directory / "model.safetensors").items()}
    log_probs, entropies, squares = [], [], []
    for tokens, first, temperature in zip(batch["tokens"], batch["first_scored"], batch["temperatures"]):
        rows = log_softmax_of_sequence(weights, config, tokens, temperature)[first - 1:len(tokens) - 1]
        log_probs.append(rows.gather(1, torch.tensor(tokens[first:], dtype=torch.int64)[:, None])[:, 0])
        entropies.append(-(rows.exp() * rows).sum(-1))
        squares.append(rows.exp().pow(2).sum(-1))
    log_probs, entropies, squares = torch.cat(log_probs), torch.cat(entropies), torch.cat(squares)

    worst = 0.0
    for name, theirs in (("log_probs", log_probs), ("entropies", entropies), ("sum_squared_probs", squares)):
        difference = (theirs - torch.tensor(batch[name], dtype=torch.float64)).abs().max().item()
        print(f"  {name:50s} max abs {difference:.1e}")
        worst = max(worst, difference)

    c = torch.tensor(batch["log_prob_coefficients"], dtype=torch.float64)
    e = torch.tensor(batch["entropy_coefficients"], dtype=torch.float64)
    ((c * log_probs).sum() + (e * entropies).sum()).backward()
    for name, ours in read_safetensors(directory / "gradients" / "model.safetensors").items():
        theirs = weights[name].grad
        relative = ((ours - theirs).norm() / theirs.norm()).item()
        print(f"  {name:50s} relative L2 {relative:.1e}")
        worst = max(worst, relative)
    print(f"{directory.name}: worst {worst:.1e}, {'ok' if worst <= TOLERANCE else 'TOO FAR'}")
    return worst <= TOLERANCE


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(0 if all([check(pathlib.Path(argument)) for argument in sys.argv[1:]]) else 1)
