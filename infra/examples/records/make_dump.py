#!/usr/bin/env python3
"""Samples from a small softmax policy and writes what a trainer would dump: python3 make_dump.py DIR [raw|sampled]

The policy is a table of logits, one row per position, which moves a little with every step. Tokens are sampled at a
temperature. "raw" writes as behavior log-probs those of the logits before the temperature, which is what an engine gives
that does not say otherwise; "sampled" writes those of the distribution that was sampled.
"""

import json
import math
import os
import random
import sys

STEPS, GROUPS, SAMPLES, TOKENS, VOCABULARY, TEMPERATURE = 8, 4, 4, 12, 16, 0.6


def log_softmax(logits, temperature):
    scaled = [logit / temperature for logit in logits]
    top = max(scaled)
    log_sum = top + math.log(sum(math.exp(value - top) for value in scaled))
    return [value - log_sum for value in scaled]


def main(folder, what):
    rng = random.Random(3)
    tables = [[[rng.gauss(0, 1.2) for _ in range(VOCABULARY)] for _ in range(TOKENS)]]
    for _ in range(STEPS):  # the version after each step
        tables.append([[logit + rng.gauss(0, 0.02) for logit in row] for row in tables[-1]])
    os.makedirs(folder, exist_ok=True)
    for step in range(STEPS):
        version = max(0, step - 1)  # sampled one version before the step
        with open(os.path.join(folder, f"step-{step}.jsonl"), "w") as out:
            for group in range(GROUPS):
                for _ in range(SAMPLES):
                    tokens, behavior, old, proximal = [], [], [], []
                    for position in range(TOKENS):
                        sampled = log_softmax(tables[version][position], TEMPERATURE)
                        raw = log_softmax(tables[version][position], 1.0)
                        now = log_softmax(tables[step][position], TEMPERATURE)
                        token = rng.choices(range(VOCABULARY), [math.exp(value) for value in sampled])[0]
                        tokens.append(token)
                        behavior.append(round((raw if what == "raw" else sampled)[token], 5))
                        old.append(round(sampled[token] + rng.gauss(0, 1e-4), 5))  # another engine's rounding
                        proximal.append(round(now[token], 5))
                    out.write(json.dumps({
                        "step": step,
                        "group": f"{step}-{group}",
                        "version": version,
                        "temperature": TEMPERATURE,
                        "mask": [1] * TOKENS,
                        "response_tokens": tokens,
                        "behavior_log_probs": [min(0.0, value) for value in behavior],
                        "old_log_probs": [min(0.0, value) for value in old],
                        "proximal_log_probs": [min(0.0, value) for value in proximal],
                        "reward": float(sum(token % 2 for token in tokens) > TOKENS // 2),
                    }) + "\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or len(sys.argv) == 3 and sys.argv[2] not in ("raw", "sampled"):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "raw")
