#!/usr/bin/env python3
"""The work of `millrace bench engine` in eager PyTorch on the same device, as one JSON.

A decoder as Llama's and Qwen2's, written as they are in eager code: RMSNorm, rotary positions, grouped heads, SwiGLU, keys and values
in tensors of fixed size, a Python loop over the sampled tokens. Random weights; float32, the same with products in TF32, and bfloat16. Shapes, sequences and
tokens are those of `bench engine`; scoring and gradients run in micro-batches of as many tokens, with only the sampled tokens' rows through
the head.
"""
import argparse
import json
import math
import statistics
import sys
import time

import torch
from torch.nn import functional

# vocabulary, hidden, layers, heads, key and value heads, head size, intermediate, rotary base, epsilon, bias on queries, keys and values
SHAPES = {
    "tiny": (256, 32, 2, 4, 2, 8, 64, 10_000, 1e-5, True),
    "15m": (32_000, 288, 6, 6, 6, 48, 768, 10_000, 1e-5, False),
    "110m": (32_000, 768, 12, 12, 12, 64, 2048, 10_000, 1e-5, False),
    "494m": (151_936, 896, 24, 14, 2, 64, 4864, 1_000_000, 1e-6, True),
    "1.5b": (151_936, 1536, 28, 12, 2, 128, 8960, 1_000_000, 1e-6, True)}
FUSED = hasattr(functional, "scaled_dot_product_attention")


class Decoder:
    def __init__(self, shape, dtype, device, sequences, prompt, sampled):
        (self.vocabulary, self.hidden, layers, self.heads, self.shared_heads, self.size, self.intermediate, theta, self.epsilon,
         bias) = shape
        self.dtype, self.device, self.sequences, self.prompt, self.length = dtype, device, sequences, prompt, prompt + sampled
        torch.manual_seed(2)
        self.embedding = self.matrix(self.vocabulary, self.hidden)
        self.layers = [self.layer(bias) for _ in range(layers)]
        self.final = self.vector(1)
        self.parameters = [self.embedding, self.final, *(w for layer in self.layers for w in layer.values())]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-6, weight_decay=0)
        angle = torch.arange(self.length)[:, None] * (theta ** (-torch.arange(0, self.size, 2) / self.size))[None, :]
        self.cos, self.sin = (torch.cat([f(angle)] * 2, -1).to(device, dtype) for f in (torch.cos, torch.sin))
        self.future = torch.full((self.length, self.length), -math.inf).triu(1).to(device, dtype)
        self.tokens = torch.randint(self.vocabulary, (sequences, self.length), device=device)
        cache = (sequences, self.shared_heads, self.length, self.size)
        self.keys, self.values = ([torch.zeros(cache, dtype=dtype, device=device) for _ in self.layers] for _ in range(2))

    def matrix(self, out, into):
        return (torch.randn(out, into, device=self.device) * 0.02).to(self.dtype).requires_grad_()

    def vector(self, value, size=None):
        return torch.full((size or self.hidden,), float(value), dtype=self.dtype, device=self.device).requires_grad_()

    def layer(self, bias):
        own, shared = self.heads * self.size, self.shared_heads * self.size
        weights = {
            "norm": self.vector(1), "q": self.matrix(own, self.hidden), "k": self.matrix(shared, self.hidden),
            "v": self.matrix(shared, self.hidden), "o": self.matrix(self.hidden, own), "post": self.vector(1),
            "gate": self.matrix(self.intermediate, self.hidden), "up": self.matrix(self.intermediate, self.hidden),
            "down": self.matrix(self.hidden, self.intermediate)}
        if bias:
            weights.update({name + "_bias": self.vector(0, weights[name].shape[0]) for name in "qkv"})
        return weights

    def norm(self, x, scale):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)).to(x.dtype) * scale

    def rotate(self, x, begin, end):
        first, second = x[..., :self.size // 2], x[..., self.size // 2:]
        return x * self.cos[begin:end] + torch.cat([-second, first], -1) * self.sin[begin:end]

    def repeat(self, x):
        if self.heads == self.shared_heads:
            return x
        batch, _, length, _ = x.shape
        wide = x[:, :, None].expand(-1, -1, self.heads // self.shared_heads, -1, -1)
        return wide.reshape(batch, self.heads, length, self.size)

    def attend(self, q, k, v):
        k, v = self.repeat(k), self.repeat(v)
        causal = q.shape[2] > 1 # all passes of more than one token begin at position 0
        if FUSED:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.size)
        if causal:
            scores = scores + self.future[:q.shape[2], :k.shape[2]]
        return torch.softmax(scores, -1) @ v

    def forward(self, ids, begin, cached):
        batch, length = ids.shape
        end = begin + length
        x = functional.embedding(ids, self.embedding)
        for number, w in enumerate(self.layers):
            h = self.norm(x, w["norm"])
            q, k, v = (functional.linear(h, w[n], w.get(n + "_bias")).view(batch, length, -1, self.size).transpose(1, 2) for n in "qkv")
            q, k = self.rotate(q, begin, end), self.rotate(k, begin, end)
            if cached:
                self.keys[number][:, :, begin:end], self.values[number][:, :, begin:end] = k, v
                k, v = self.keys[number][:, :, :end], self.values[number][:, :, :end]
            mixed = self.attend(q, k, v).transpose(1, 2).reshape(batch, length, self.heads * self.size)
            x = x + functional.linear(mixed, w["o"])
            h = self.norm(x, w["post"])
            x = x + functional.linear(functional.silu(functional.linear(h, w["gate"])) * functional.linear(h, w["up"]), w["down"])
        return self.norm(x, self.final)

    def head(self, hidden):
        return torch.log_softmax(functional.linear(hidden, self.embedding).float(), -1)

    def log_probs(self, tokens):
        hidden = self.forward(tokens[:, :-1], 0, False)[:, self.prompt - 1:]
        return self.head(hidden).gather(2, tokens[:, self.prompt:, None])[..., 0]

    def prefill(self):
        with torch.inference_mode():
            self.head(self.forward(self.tokens[:, :self.prompt], 0, True)[:, -1])

    def decode(self):
        with torch.inference_mode():
            for at in range(self.prompt, self.length):
                rows = self.head(self.forward(self.tokens[:, at - 1:at], at - 1, True)[:, 0])
                drawn = torch.multinomial(rows.exp(), 1)
                rows.gather(1, drawn)
                self.tokens[:, at] = drawn[:, 0]

    def micro_batches(self, budget):
        return self.tokens.split(max(1, budget // self.length))

    def score(self, budget):
        with torch.no_grad():
            for batch in self.micro_batches(budget):
                self.log_probs(batch)

    def gradient(self, budget):
        for parameter in self.parameters:
            parameter.grad = None
        for batch in self.micro_batches(budget):
            self.log_probs(batch).sum().backward()


def measure(model, sequences, dtype, options):
    device = torch.device(options.device)
    decoder = Decoder(SHAPES[model], dtype, device, sequences, options.prompt_tokens, options.tokens)

    def seconds(work):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    work = {"prefill": decoder.prefill, "decode": decoder.decode, "score": lambda: decoder.score(options.token_budget),
            "gradient": lambda: decoder.gradient(options.token_budget), "update": decoder.optimizer.step}
    rounds = [{name: seconds(piece) for name, piece in work.items()} for _ in range(options.rounds + 1)][1:]
    result = {name: statistics.median(r[name] for r in rounds) for name in work}
    whole = sequences * (options.prompt_tokens + options.tokens)
    tokens = {"prefill": sequences * options.prompt_tokens, "decode": sequences * options.tokens, "score": whole, "gradient": whole}
    result["tokens_per_second"] = {name: tokens[name] / result[name] for name in tokens}
    result["parameters"] = sum(p.numel() for p in decoder.parameters)
    if device.type == "cuda":
        result["device_bytes"] = torch.cuda.max_memory_allocated(device)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="cuda:N or cpu (default: cuda:0)")
    parser.add_argument("--models", default="15m:8", help=f"SIZE:SEQUENCES with commas; sizes are {', '.join(SHAPES)} (default: 15m:8)")
    parser.add_argument("--dtypes", default="float32,tf32,bfloat16", help="default: float32,tf32,bfloat16")
    parser.add_argument("--prompt-tokens", type=int, default=128, help="tokens of each prompt (default: 128)")
    parser.add_argument("--tokens", type=int, default=64, help="sampled tokens of each sequence (default: 64)")
    parser.add_argument("--token-budget", type=int, default=4096, help="tokens of a micro-batch of scoring and gradient (default: 4096)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds after a warm-up round (default: 5)")
    parser.add_argument("--out", help="write the JSON here, after each model, and not to stdout alone")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    report = {"torch": torch.__version__, "device": options.device, "sequence": [options.prompt_tokens, options.tokens],
              "fused_attention": FUSED, "results": []}
    if options.device.startswith("cuda"):
        report["card"] = torch.cuda.get_device_name(torch.device(options.device))
    for model in options.models.split(","):
        name, _, sequences = model.partition(":")
        for dtype in options.dtypes.split(","):
            result = {"model": name, "dtype": dtype, "sequences": int(sequences or 8)}
            torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
            try:
                of = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
                result.update(measure(name, result["sequences"], of, options))
            except RuntimeError as e: # out of the device's memory
                result["error"] = str(e).splitlines()[0]
            if options.device.startswith("cuda"):
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            report["results"].append(result)
            if options.out:
                with open(options.out, "w") as out:
                    json.dump(report, out, indent=2)
            print(json.dumps(result), file=sys.stderr, flush=True)
    print(json.dumps(report))
    sys.exit(1 if any("error" in r for r in report["results"]) else 0)


if __name__ == "__main__":
    main()
