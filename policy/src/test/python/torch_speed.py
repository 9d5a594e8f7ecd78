"""Times forward and backward pass of a decoder in eager PyTorch on the CPU, for comparison with Millrace's gradient graph.

    CLASSPATH=... java dev.millrace.benchmarks.learner.StepSpeed forward-backward      (learner-streams/README.md has the class path)
    LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-pthread python3 policy/src/test/python/torch_speed.py

The same model (4 layers of 128, 4 heads, SwiGLU of 352, 512 tokens, untied head), the same batches (32 sequences of 8 + 56 tokens, 8 of
64 + 448), float32, one thread: the gradient by every weight of the sum of the log-probs of all response tokens; only their rows reach the
head, on both sides. Needs torch (1.13 is enough); Debian's wants OpenBLAS in front of the reference BLAS.
"""
import math
import statistics
import sys
import time

import torch

VOCAB, HIDDEN, LAYERS, HEADS, SIZE, INTERMEDIATE, THETA, EPS = 512, 128, 4, 4, 32, 352, 10_000.0, 1e-6
WARM_UP, ROUNDS = 3, 21


def parameters():
    generator = torch.Generator().manual_seed(2)

    def matrix(out, into):
        return (torch.randn(out, into, generator=generator) * 0.02).requires_grad_()

    layer = lambda: {
        "norm": torch.ones(HIDDEN, requires_grad=True), "q": matrix(HIDDEN, HIDDEN), "k": matrix(HIDDEN, HIDDEN),
        "v": matrix(HIDDEN, HIDDEN), "o": matrix(HIDDEN, HIDDEN), "post": torch.ones(HIDDEN, requires_grad=True),
        "gate": matrix(INTERMEDIATE, HIDDEN), "up": matrix(INTERMEDIATE, HIDDEN), "down": matrix(HIDDEN, INTERMEDIATE)}
    return {"embedding": matrix(VOCAB, HIDDEN), "layers": [layer() for _ in range(LAYERS)],
            "final": torch.ones(HIDDEN, requires_grad=True), "head": matrix(VOCAB, HIDDEN)}


def flat(weights):
    return [weights["embedding"], weights["final"], weights["head"]] + [w for layer in weights["layers"] for w in layer.values()]


def rms_norm(x, scale):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * scale


def rotate(x, cos, sin):
    first, second = x[..., :SIZE // 2], x[..., SIZE // 2:]
    return x * cos + torch.cat([-second, first], -1) * sin


def log_probs(weights, tokens, first, tables):
    cos, sin, future = tables
    batch, length = tokens.shape[0], tokens.shape[1] - 1
    x = torch.nn.functional.embedding(tokens[:, :-1], weights["embedding"])
    linear = torch.nn.functional.linear
    for layer in weights["layers"]:
        h = rms_norm(x, layer["norm"])
        q, k, v = (linear(h, layer[name]).view(batch, length, HEADS, SIZE).transpose(1, 2) for name in "qkv")
        scores = rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(2, 3) / math.sqrt(SIZE) + future
        mixed = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, HIDDEN)
        x = x + linear(mixed, layer["o"])
        h = rms_norm(x, layer["post"])
        x = x + linear(torch.nn.functional.silu(linear(h, layer["gate"])) * linear(h, layer["up"]), layer["down"])
    hidden = rms_norm(x, weights["final"])[:, first - 1:]
    rows = torch.log_softmax(linear(hidden, weights["head"]), -1)
    return rows.gather(2, tokens[:, first:, None])[..., 0]


def measure(sequences, prompt, response):
    weights = parameters()
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCAB, (sequences, prompt + response), generator=generator)
    length = prompt + response - 1
    angle = torch.arange(length)[:, None] * (THETA ** (-torch.arange(0, SIZE, 2) / SIZE))[None, :]
    tables = (torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1),
              torch.full((length, length), -math.inf).triu(1))
    seconds = []
    for turn in range(WARM_UP + ROUNDS):
        for weight in flat(weights):
            weight.grad = None
        start = time.perf_counter()
        log_probs(weights, tokens, prompt, tables).sum().backward()
        if turn >= WARM_UP:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"4 layers of 128, {sequences} sequences of {prompt} + {response}, {torch.get_num_threads()} thread: forward and backward "
          f"{median * 1e3:.1f} ms median of {ROUNDS}, {min(seconds) * 1e3:.1f} least, {max(seconds) * 1e3:.1f} most; "
          f"{sequences * (prompt + response) / median:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}")
    measure(32, 8, 56)
    measure(8, 64, 448)
