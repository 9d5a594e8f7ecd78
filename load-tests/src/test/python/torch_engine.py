"""The engine's work in eager PyTorch on one thread of the CPU, a piece whenever a line on stdin asks for it.

    java dev.millrace.benchmarks.engine.EngineBesideTorch 15m 5       starts this, takes turns with it and compares

Arguments: the decoder's sizes and the batch's, as NAME=VALUE. On stdin one of `prefill`, `decode`, `gradient`, `update`; on stdout the
seconds that it took. Float32, weights drawn at random, the whole batch at once: prompts in one pass with the head for the last row alone;
tokens sampled at temperature 1 with their log-probs, one step a token, from keys and values in tensors that were made beforehand; forward
and backward pass of the sum of the sampled tokens' log-probs, with only their rows through the head; one step of AdamW. Needs torch (1.13 is
enough); Debian's wants OpenBLAS in front of the reference BLAS on LD_LIBRARY_PATH.
"""
import math
import sys
import time

import torch

S = dict(argument.split("=") for argument in sys.argv[1:])
VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, SIZE, INTERMEDIATE = (
    int(S[k]) for k in ("vocab", "hidden", "layers", "heads", "kv_heads", "head_size", "intermediate"))
THETA, EPS, BIAS = float(S["theta"]), float(S["eps"]), S["bias"] == "true"
BATCH, PROMPT, SAMPLED = (int(S[k]) for k in ("sequences", "prompt", "sampled"))
LENGTH = PROMPT + SAMPLED

linear = torch.nn.functional.linear


def matrix(out, into):
    return (torch.randn(out, into) * 0.02).requires_grad_()


def layer():
    weights = {
        "norm": torch.ones(HIDDEN, requires_grad=True), "q": matrix(HEADS * SIZE, HIDDEN), "k": matrix(KV_HEADS * SIZE, HIDDEN),
        "v": matrix(KV_HEADS * SIZE, HIDDEN), "o": matrix(HIDDEN, HEADS * SIZE), "post": torch.ones(HIDDEN, requires_grad=True),
        "gate": matrix(INTERMEDIATE, HIDDEN), "up": matrix(INTERMEDIATE, HIDDEN), "down": matrix(HIDDEN, INTERMEDIATE)}
    if BIAS:
        weights.update({name + "_bias": torch.zeros(weights[name].shape[0], requires_grad=True) for name in "qkv"})
    return weights


torch.manual_seed(2)
torch.set_num_threads(1)
embedding, layers, final = matrix(VOCAB, HIDDEN), [layer() for _ in range(LAYERS)], torch.ones(HIDDEN, requires_grad=True)
parameters = [embedding, final] + [w for weights in layers for w in weights.values()]
optimizer = torch.optim.AdamW(parameters, lr=1e-6, weight_decay=0)

tokens = torch.randint(VOCAB, (BATCH, LENGTH))
angle = torch.arange(LENGTH)[:, None] * (THETA ** (-torch.arange(0, SIZE, 2) / SIZE))[None, :]
COS, SIN = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
FUTURE = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
keys = [torch.zeros(BATCH, KV_HEADS, LENGTH, SIZE) for _ in layers]
values = [torch.zeros(BATCH, KV_HEADS, LENGTH, SIZE) for _ in layers]


def rms_norm(x, scale):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * scale


def rotate(x, begin, end):
    first, second = x[..., :SIZE // 2], x[..., SIZE // 2:]
    return x * COS[begin:end] + torch.cat([-second, first], -1) * SIN[begin:end]


def shared(x):
    """Every key and value head for the query heads that share it."""
    return x if HEADS == KV_HEADS else x[:, :, None].expand(-1, -1, HEADS // KV_HEADS, -1, -1).reshape(BATCH, HEADS, x.shape[2], SIZE)


def decoder(ids, begin, cached):
    """Hidden states of ids, which begin at a position; with their keys and values kept, and those before them seen, if cached."""
    length = ids.shape[1]
    end = begin + length
    x = torch.nn.functional.embedding(ids, embedding)
    for number, weights in enumerate(layers):
        h = rms_norm(x, weights["norm"])
        q, k, v = (linear(h, weights[name], weights.get(name + "_bias")).view(BATCH, length, -1, SIZE).transpose(1, 2) for name in "qkv")
        q, k = rotate(q, begin, end), rotate(k, begin, end)
        if cached:
            keys[number][:, :, begin:end], values[number][:, :, begin:end] = k, v
            k, v = keys[number][:, :, :end], values[number][:, :, :end]
        scores = q @ shared(k).transpose(2, 3) / math.sqrt(SIZE)
        if length > 1:
            scores = scores + FUTURE[begin:end, :end]
        mixed = (torch.softmax(scores, -1) @ shared(v)).transpose(1, 2).reshape(BATCH, length, HEADS * SIZE)
        x = x + linear(mixed, weights["o"])
        h = rms_norm(x, weights["post"])
        x = x + linear(torch.nn.functional.silu(linear(h, weights["gate"])) * linear(h, weights["up"]), weights["down"])
    return x


def prefill():
    with torch.inference_mode():
        linear(rms_norm(decoder(tokens[:, :PROMPT], 0, True)[:, -1], final), embedding)


def decode():
    with torch.inference_mode():
        for at in range(PROMPT, LENGTH):
            rows = torch.log_softmax(linear(rms_norm(decoder(tokens[:, at - 1:at], at - 1, True)[:, 0], final), embedding), -1)
            drawn = torch.multinomial(rows.exp(), 1)
            rows.gather(1, drawn)
            tokens[:, at] = drawn[:, 0]


def gradient():
    for parameter in parameters:
        parameter.grad = None
    hidden = rms_norm(decoder(tokens[:, :-1], 0, False), final)[:, PROMPT - 1:]
    torch.log_softmax(linear(hidden, embedding), -1).gather(2, tokens[:, PROMPT:, None]).sum().backward()


WORK = {"prefill": prefill, "decode": decode, "gradient": gradient, "update": lambda: optimizer.step(), "prepare": lambda: None}
print(f"PyTorch {torch.__version__}, {sum(p.numel() for p in parameters)} parameters", flush=True)
for line in sys.stdin:
    start = time.perf_counter()
    WORK[line.strip()]()
    print(time.perf_counter() - start, flush=True)
