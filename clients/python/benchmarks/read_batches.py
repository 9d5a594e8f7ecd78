"""How fast `Run.batches()` reads compared with a consumer that ignores its records, over the same records.

    ./millrace learn --first-version --bootstrap-servers kafka:9092 --set run.id=bench
    PYTHONPATH=clients/python python3 clients/python/benchmarks/read_batches.py kafka:9092 bench --tokens 5 64 512 4096 --megabytes 100

Writes batches of 256 trajectories with responses of the given lengths to a run used for nothing else, and reads them in turn raw and by the
package; prints the medians of the rounds.
"""

import argparse
import statistics
import time

import numpy as np

import millrace_rl
from millrace_rl.batch_log import BatchLog

PROMPT, ENTRIES = 32, 256


def write(run, first, tokens, megabytes):
    """The ranges of offsets on both topics, and the bytes written."""
    random = np.random.default_rng(tokens)
    producer, encode = run._kafka.producer(**{"queue.buffering.max.kbytes": 1 << 20, "message.max.bytes": 16 << 20}), run._schemas.encode
    of = dict(run_id=run.id, epoch=run.epoch, policy_id=run.policy)
    places, size, count = {}, 0, 0
    topics = run.prefix + "trajectories", run.prefix + "batches"

    def delivered(error, message):
        assert error is None, error
        places.setdefault(message.topic(), []).append(message.offset())

    def send(topic, record):
        nonlocal size
        value = encode(topic, record)
        size += len(value)
        while True:
            try:
                return producer.produce(topic, value=value, key=run.policy, partition=0, on_delivery=delivered)
            except BufferError:
                producer.poll(0.1)

    coordinates = dict(topic="t", partition=0, offset=0)
    while size < megabytes << 20:
        start = len(places.get(topics[0], []))
        ids = [f"{first + count}-{i // 8}/{i % 8}" for i in range(ENTRIES)]
        for i, rollout_id in enumerate(ids):
            floats = -random.random(tokens, np.float32)
            send(topics[0], dict(
                of, rollout_id=rollout_id, group_id=rollout_id.split("/")[0], ordinal=0, sample_index=i % 8, group_size=8,
                rollout_source=coordinates, score_source=coordinates, prompt_tokens=random.integers(0, 30_000, PROMPT),
                response_tokens=random.integers(0, 30_000, tokens), mask=np.ones(tokens, np.int8), temperature=1.0,
                version_spans=[dict(version=0, start=0, end=tokens)], behavior_log_probs=floats, old_log_probs=floats,
                proximal_log_probs=floats, proximal_version=0, reward=0.5, finish_reason="STOP", finished_at_ms=0, scored_at_ms=0))
        producer.flush()
        offsets = sorted(places[topics[0]])[start:]
        entries = [dict(rollout_id=rollout_id, group_id=rollout_id.split("/")[0], partition=0, offset=offset, rollout_partition=0,
                        rollout_offset=0, reward=0.5, advantage=0.1, oldest_version=0, trained_tokens=tokens,
                        weights=np.ones(tokens, np.float32)) for rollout_id, offset in zip(ids, offsets)]
        send(topics[1], dict(of, batch_id=first + count, assembled_version=0, entries=entries, stages=[], trained_tokens=tokens * ENTRIES,
                             step_scale=1.0, staleness_mean=0.0, staleness_max=0, assembled_at_ms=0))
        producer.flush()
        count += 1
    return {topic: (min(found), max(found) + 1) for topic, found in places.items()}, size, count


def raw(run, ranges):
    """Wall-clock seconds, processor seconds, and bytes received."""
    size, begun, worked = 0, time.perf_counter(), time.process_time()
    for topic, (start, end) in ranges.items():
        consumer = run._kafka.consumer()
        run._kafka.look_up(consumer, topic)
        for messages in run._kafka.read(consumer, {(topic, 0): (start, end)}):
            size += sum(len(message.value()) for message in messages)
        consumer.close()
    return time.perf_counter() - begun, time.process_time() - worked, size


def packed(run, ranges):
    """Wall-clock seconds, processor seconds, and tokens received by `Run.batches()` from an offset on."""
    tokens, begun, worked = 0, time.perf_counter(), time.process_time()
    log = BatchLog(run._kafka, run._schemas, run._identity, 0)
    log.position(ranges[run.prefix + "batches"][0])
    for record, offset in log.available():
        tokens += len(log.joined(record, offset).tokens)
    log.close()
    return time.perf_counter() - begun, time.process_time() - worked, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bootstrap")
    parser.add_argument("run")
    parser.add_argument("--tokens", type=int, nargs="+", default=[5, 64, 512, 4096])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    run = millrace_rl.Run(args.bootstrap, args.run)
    first = max((batch.batch_id for batch in run.batches()), default=-1) + 1
    print("| response tokens | bytes a trajectory | raw, MB/s | package, MB/s | share | of processor time | trajectories/s |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for tokens in args.tokens:
        ranges, size, count = write(run, first, tokens, args.megabytes)
        rounds = []
        for _ in range(args.rounds):
            (raw_s, raw_cpu, came), (packed_s, packed_cpu, read) = raw(run, ranges), packed(run, ranges)
            assert came == size and read == count * ENTRIES * (PROMPT + tokens), "both read everything"
            rounds.append((size / raw_s / 1e6, size / packed_s / 1e6, raw_s / packed_s, raw_cpu / packed_cpu, count * ENTRIES / packed_s))
        figures = [statistics.median(column) for column in zip(*rounds)]
        spread = [min(r[2] for r in rounds), max(r[2] for r in rounds)]
        print(f"| {tokens} | {size // (count * ENTRIES):,} | {figures[0]:.0f} | {figures[1]:.0f} | {figures[2]:.2f} "
              f"({spread[0]:.2f} to {spread[1]:.2f}) | {figures[3]:.2f} | {figures[4]:,.0f} |", flush=True)
        first += count


main()
