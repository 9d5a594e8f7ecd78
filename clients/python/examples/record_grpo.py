"""GRPO in NumPy alone, without Millrace in the loop, recorded step by step.

    python3 clients/python/examples/record_grpo.py --directory recorded
    ./millrace import --records 'recorded/*.jsonl' --archive recorded.archive
    ./millrace doctor --archive recorded.archive

The policy learns to answer three digits with each one's successor. From step --stale-from on it samples with weights that are --lag
versions old, as an asynchronous trainer does; before, with the newest.
"""

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: more threads do not help small matrices
import numpy as np

from millrace_rl import MillraceError, Recorder
from numpy_decoder import Decoder, tensors
from train_numpy import AdamW

BEGIN, SEPARATOR, DIGITS = 10, 11, 3
SHAPE = dict(vocab_size=12, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=16, intermediate_size=64,
             rope_theta=100.0, rms_norm_eps=1e-6, tie_word_embeddings=True, attention_bias=False)

#: weights of tokens by their ratios of proximal to behavior policy
CORRECTIONS = {"none": np.ones_like, "truncated": lambda ratios: np.minimum(ratios, 2),
               "band": lambda ratios: np.where((ratios >= 0.5) & (ratios <= 5), ratios, 0)}


def sampled(decoder, prompts, random):
    """Answers [B, DIGITS] and the log-probs of their tokens."""
    tokens, log_probs = prompts, []
    for _ in range(DIGITS):
        logits = decoder(tokens).logits[:, -1]
        all_of = logits - logits.max(1, keepdims=True)
        all_of -= np.log(np.exp(all_of).sum(1, keepdims=True))
        token = (all_of + random.gumbel(size=all_of.shape)).argmax(1)
        log_probs.append(np.take_along_axis(all_of, token[:, None], 1)[:, 0])
        tokens = np.column_stack([tokens, token])
    return tokens[:, -DIGITS:], np.stack(log_probs, 1)


def first_weights(random):
    return {name: (random.normal(size=dims) * 0.1 if len(dims) > 1 else np.ones(dims)) for name, dims in tensors(SHAPE)}


def questions(random, groups, samples):
    """Prompts and right answers, one row per sample of a group."""
    digits = np.repeat(random.integers(0, 10, (groups, DIGITS)), samples, 0)
    return np.column_stack([np.full(len(digits), BEGIN), digits, np.full(len(digits), SEPARATOR)]), (digits + 1) % 10


def train(recorder, steps, lag, rate=3e-3, seed=1, stale_from=0, correction="truncated", groups=16, samples=8):
    """Mean reward of each step. In float64, so that the order in which a processor sums shows only after some 200 steps."""
    random = np.random.default_rng(seed)
    weights = first_weights(random)
    decoder, optimizer, versions, means = Decoder(SHAPE), AdamW(weights, {}, 0), [], []
    for step in range(steps):
        versions = [*versions, {name: w.copy() for name, w in weights.items()}][-1 - lag:]
        prompts, right = questions(random, groups, samples)
        count = len(prompts)
        behind = min(step, lag if step >= stale_from else 0)
        answers, behavior = sampled(decoder.load(versions[-1 - behind]), prompts, random)
        rewards = (answers == right).mean(1)
        advantages = (rewards - rewards.reshape(groups, samples).mean(1).repeat(samples))
        sequences = np.column_stack([prompts, answers[:, :-1]])
        width = sequences.shape[1]
        rows = (np.arange(count)[:, None] * width + np.arange(width - DIGITS, width)).reshape(-1)
        given = weights, sequences, rows, answers.reshape(-1), np.ones(rows.size)

        def coefficients(log_probs):
            corrected = CORRECTIONS[correction](np.exp(log_probs - behavior.reshape(-1)))
            return -corrected * advantages.repeat(DIGITS) / rows.size

        proximal, gradients = decoder.gradient(*given, coefficients)
        norm = optimizer.step(weights, gradients, rate)
        recorder.step(
            {"group": [f"{step}-{i // samples}" for i in range(count)], "mask": np.ones_like(answers), "prompt_tokens": prompts,
             "response_tokens": answers, "behavior_log_probs": behavior, "proximal_log_probs": proximal.reshape(count, DIGITS),
             "reward": rewards, "advantage": advantages, "version": np.full(count, step - behind)},
            version=step, figures={"grad_norm": float(norm), "learning_rate": rate})
        means.append(rewards.mean())
    return means


def main(train, doc, add_options=lambda parser: None, **defaults):
    """Runs an example by its options.

    :param train: called with a recorder, the number of steps, the lag, and the other options by name
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--directory", help="folder for the records")
    parser.add_argument("--bootstrap-servers", default="", help="cluster of a run, in place of a folder")
    parser.add_argument("--run", help="id of the run")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--lag", type=int, help="lag of the sampler, in versions")
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    parser.set_defaults(**defaults)
    options = vars(parser.parse_args())
    steps = options.pop("steps")
    try:
        with Recorder(options.pop("bootstrap_servers"), options.pop("run"), directory=options.pop("directory")) as recorder:
            means = train(recorder, steps, **options)
    except MillraceError as e:
        sys.exit(f"{type(e).__name__}: {e}")
    for start in range(0, steps, 20):
        print(f"steps {start:3} to {min(start + 20, steps) - 1:3}  reward {np.mean(means[start:start + 20]):.2f}")
    print(f"{recorder.recorded} steps recorded, {recorder.repeated} repeated, {recorder.dropped} dropped")


def add_options(parser):
    parser.add_argument("--stale-from", type=int, default=0, help="step from which on the sampler lags")
    parser.add_argument("--correction", choices=CORRECTIONS, default="truncated")


if __name__ == "__main__":
    main(train, __doc__, add_options, steps=60, lag=1)
