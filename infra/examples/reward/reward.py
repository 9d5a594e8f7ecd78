#!/usr/bin/env python3
"""Rewards a run's rollouts from another process, in another language. See README.md.

    apt-get install python3-confluent-kafka python3-avro python3-requests
    /usr/bin/python3 infra/examples/reward/reward.py --bootstrap-servers kafka:9092 \\
        --registry http://127.0.0.1:9404 --prefix millrace.my-run. --run my-run

The judge of this example gives what the environment gave, and a tenth for every token that differs from its neighbour; put
yours in its place. Works with confluent-kafka 1.7 and avro 1.11 (Debian 12). Runs until it is stopped; run again under
the same id, it continues there.
"""

import argparse
import json
import signal
import struct
import sys
import time
import warnings

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.avro import CachedSchemaRegistryClient
from confluent_kafka.avro.serializer.message_serializer import MessageSerializer

warnings.filterwarnings("ignore", "Unknown packed-")  # packed arrays are bytes to the Avro library
TIMEOUT = 30.0


def judge(rollout):
    """What a rollout is worth, and what that consists of."""
    packed = rollout["response_tokens"]
    tokens = struct.unpack("<%di" % (len(packed) // 4), packed)
    variety = 0.1 * sum(one != other for one, other in zip(tokens, tokens[1:]))
    return rollout["reward"] + variety, {"environment": rollout["reward"], "variety": variety}


def serve(args):
    registry = CachedSchemaRegistryClient({"url": args.registry})
    codec = MessageSerializer(registry)
    schema_id, schema, _ = registry.get_latest_schema(args.prefix + "rewards-value")
    if schema is None:
        sys.exit("the registry has no schema of %srewards; the run's topology needs topology.join.reward=true" % args.prefix)
    defaults = {field["name"]: field["default"] for field in json.loads(str(schema))["fields"] if "default" in field}
    producer = Producer({
        "bootstrap.servers": args.bootstrap_servers,
        "transactional.id": args.prefix + "rewarder-" + args.id,  # fences an older process of this id
        "partitioner": "murmur2_random",  # as Java's clients: a reward must lie on the partition number of its rollout
    })
    producer.init_transactions(TIMEOUT)
    rollouts = Consumer({"bootstrap.servers": args.bootstrap_servers, "group.id": args.prefix + "rewarder",
                         "isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    rollouts.subscribe([args.prefix + "rollouts"])
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    print("%s rewards" % args.id, flush=True)
    while not stopped:
        messages = [message for message in rollouts.consume(500, 0.2) if not message.error()]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            rollout = codec.decode_message(message.value())
            if rollout["run_id"] != args.run or rollout["epoch"] != args.epoch:
                continue
            reward, components = judge(rollout)
            producer.produce(args.prefix + "rewards", key=rollout["group_id"], value=codec.encode_record_with_schema_id(
                schema_id, {**defaults, **dict(
                    run_id=args.run, epoch=args.epoch, rollout_id=rollout["rollout_id"], group_id=rollout["group_id"],
                    rewarder_id=args.id, reward=reward, reward_components=components,
                    rollout_source=dict(topic=message.topic(), partition=message.partition(), offset=message.offset()),
                    scored_at_ms=int(time.time() * 1000))}))
        last = {message.partition(): message for message in messages}
        producer.send_offsets_to_transaction(
            [TopicPartition(m.topic(), m.partition(), m.offset() + 1) for m in last.values()],
            rollouts.consumer_group_metadata(), TIMEOUT)
        producer.commit_transaction(TIMEOUT)
        print("rewards %d" % len(messages), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--registry", required=True, help="address of the schema registry, http://host:port")
    parser.add_argument("--prefix", default="millrace.", help="topic prefix of the run")
    parser.add_argument("--run", required=True, help="id of the run")
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--id", default="python", help="of this process, unlike all others that reward the run")
    try:
        serve(parser.parse_args())
    except KafkaException as e:
        sys.exit("the log: %s" % e)


if __name__ == "__main__":
    main()
