"""A trainer in NumPy alone that replaces `millrace learn`.

    python3 clients/python/examples/train_numpy.py --bootstrap-servers kafka:9092 --run my-run

Ends after --steps versions, or when it is stopped; run again, it continues where it stopped. A step depends on nothing but the batch, the
weights and the optimizer's state, so the same batches make the same versions.
"""

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: sums in one order, and more threads do not help small matrices
import numpy as np

import millrace_rl
from millrace_rl.tensors import joined
from numpy_decoder import Decoder


class AdamW:
    """As in PyTorch, without weight decay; its state travels with the versions."""

    def __init__(self, weights, state, steps):
        self.steps = steps
        self.state = state or {f"{kind}.{name}": np.zeros_like(w) for kind in ("exp_avg", "exp_avg_sq") for name, w in weights.items()}

    def step(self, weights, grads, rate):
        self.steps += 1
        norm = np.sqrt(sum(float((g * g).sum()) for g in grads.values()))
        clip = np.float32(min(1.0, 1.0 / max(norm, 1e-12)))
        for name, g in grads.items():
            m, v = self.state["exp_avg." + name], self.state["exp_avg_sq." + name]
            m += np.float32(0.1) * (g * clip - m)
            v += np.float32(0.001) * ((g * clip) ** 2 - v)
            weights[name] -= np.float32(rate / (1 - 0.9 ** self.steps)) * m / (
                np.sqrt(v / np.float32(1 - 0.999 ** self.steps)) + np.float32(1e-8))
        return norm


def gradient(decoder, weights, batch):
    """Of the policy gradient: - sum over tokens of weight * advantage * log-prob, over their number."""
    x = batch.padded()
    sequence, column = np.nonzero(x.mask)
    coefficients = -(x.weights * x.advantages)[sequence, column] / np.float32(batch.trained_tokens)
    log_probs, grads = decoder.gradient(weights, x.input_ids, sequence * x.input_ids.shape[1] + column, x.targets[sequence, column],
                                        x.temperature[sequence, 0], coefficients)
    return float((coefficients * log_probs).sum()), grads


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--run", required=True, help="id of the run")
    parser.add_argument("--client", help="properties file with settings of Kafka's clients")
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--anchor-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="end with this version; 0 for no end")
    args = parser.parse_args()
    with millrace_rl.Run(args.bootstrap_servers, args.run, client=args.client).trainer(args.anchor_every) as trainer:
        print(f"continues from version {trainer.version}", flush=True)
        if 0 < args.steps <= trainer.version:
            return
        decoder, weights = Decoder(trainer.shape), joined(trainer.weights())  # publish() splits them again like the version
        optimizer = AdamW(weights, joined(trainer.state()), trainer.steps)
        for batch in trainer.batches():
            if batch.kept_tokens:
                sys.exit("the run compares policies over kept tokens (keep_sampling_mask), and this example does so over the whole vocabulary")
            rate = args.learning_rate * batch.step_scale
            loss, grads = gradient(decoder, weights, batch)
            norm = optimizer.step(weights, grads, rate)
            version = trainer.publish(weights, optimizer.state, rate, {"loss": loss, "grad_norm": norm})
            print(f"version {version}  reward {batch.rewards.mean():.3f}  tokens {batch.trained_tokens}", flush=True)
            if version == args.steps:
                return


if __name__ == "__main__":
    try:
        main()
    except millrace_rl.MillraceError as e:
        sys.exit(f"{type(e).__name__}: {e}")
