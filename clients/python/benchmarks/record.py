"""How many sequences a second a `Recorder` takes, and how long `step()` blocks a trainer. Fails below --at-least or above --step-ms.

    PYTHONPATH=clients/python python3 clients/python/benchmarks/record.py --directory /tmp/recorded
    PYTHONPATH=clients/python python3 clients/python/benchmarks/record.py --bootstrap-servers kafka:9092 --run bench

Use a separate run, as in docs/how-to/records.md. A rate of processor time counts all threads of this process, those of
librdkafka too, and not the broker's.
"""

import argparse
import statistics
import sys
import time

import numpy as np

from millrace_rl import Recorder


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--directory")
    parser.add_argument("--bootstrap-servers", default="")
    parser.add_argument("--run")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--sequences", type=int, default=256, help="of a step")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="version of the first step; above those recorded before")
    parser.add_argument("--at-least", type=float, default=0, help="sequences a second of processor time")
    parser.add_argument("--step-ms", type=float, default=float("inf"), help="median of the time that step() may take")
    args = parser.parse_args()
    random, shape = np.random.default_rng(1), (args.sequences, args.tokens)
    batch = {"mask": np.ones(shape, np.int64), "response_tokens": random.integers(0, 150_000, shape), "advantage": random.normal(size=args.sequences),
             "behavior_log_probs": -random.exponential(size=shape).astype(np.float32), "reward": random.random(args.sequences),
             "proximal_log_probs": -random.exponential(size=shape).astype(np.float32),
             "prompt_tokens": random.integers(0, 150_000, (args.sequences, 64)),
             "group": [f"prompt-{i // 8}" for i in range(args.sequences)]}
    with Recorder(args.bootstrap_servers, args.run, directory=args.directory, timeout_s=600, max_pending_mb=1 << 12) as recorder:
        recorder.step(batch, version=args.first)  # connects
        while recorder.recorded + recorder.dropped + recorder.repeated == 0:
            time.sleep(0.01)
        begun, worked, held = time.perf_counter(), time.process_time(), []
        for step in range(1, args.steps + 1):
            at = time.perf_counter()
            recorder.step(batch, version=args.first + step)
            held.append((time.perf_counter() - at) * 1000)
            time.sleep(0.001)
            while recorder._pending and len(recorder._pending) > 3:  # a trainer is slower than this
                time.sleep(0.001)
    took, cpu, count = time.perf_counter() - begun, time.process_time() - worked, args.steps * args.sequences
    if recorder.recorded != args.steps + 1:
        sys.exit(f"recorded {recorder.recorded} of {args.steps + 1} steps: {recorder.last_error or 'the others were there; give --first'}")
    rate, median = count / cpu, statistics.median(held)
    print(f"{args.tokens} tokens: {count / took:,.0f} sequences/s, {rate:,.0f} a second of processor time; step() of {args.sequences}: "
          f"median {median:.1f} ms, longest {max(held):.1f} ms")
    if rate < args.at_least or median > args.step_ms:
        sys.exit(f"expected at least {args.at_least:,.0f} sequences a second of processor time, and step() within {args.step_ms} ms")


main()
