#!/usr/bin/env python3
"""Reads the rollouts of a run with stock clients: one JSON object per rollout on standard output.

    apt-get install python3-confluent-kafka python3-avro
    ./millrace train --metrics-port 9464 &
    /usr/bin/python3 infra/examples/python/read_rollouts.py \\
        --bootstrap-servers 127.0.0.1:9092 --registry http://127.0.0.1:9464 --topic millrace.rollouts --limit 5

Works with confluent-kafka 1.7 and avro 1.11 (Debian 12). Schemas come from the registry's HTTP address: Millrace's
own port, or any registry that speaks Confluent's protocol. Only committed records are shown. Exit status: 0 if
--limit rollouts were read, 3 if the topic had fewer of them within --timeout seconds, 1 on an error.
"""

import argparse
import json
import struct
import sys
import time

from confluent_kafka import Consumer, KafkaError
from confluent_kafka.avro import CachedSchemaRegistryClient
from confluent_kafka.avro.serializer import SerializerError
from confluent_kafka.avro.serializer.message_serializer import MessageSerializer


def int32(packed):
    """A packed-int32 field as a list; numpy.frombuffer(packed, '<i4') does the same without copying."""
    return list(struct.unpack("<%di" % (len(packed) // 4), packed))


def float32(packed):
    """A packed-float32 field as a list."""
    return list(struct.unpack("<%df" % (len(packed) // 4), packed))


def summary(rollout):
    return {
        "rollout_id": rollout["rollout_id"],
        "run_id": rollout["run_id"],
        "reward": rollout["reward"],
        "prompt_tokens": int32(rollout["prompt_tokens"]),
        "response_tokens": int32(rollout["response_tokens"]),
        "mask": list(rollout["mask"]),
        "behavior_log_probs": float32(rollout["behavior_log_probs"]),
        "versions": [span["version"] for span in rollout["version_spans"]],
        "finish_reason": rollout["finish_reason"],
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--registry", required=True, help="address of the schema registry, http://host:port")
    parser.add_argument("--topic", default="millrace.rollouts")
    parser.add_argument("--limit", type=int, default=10, help="rollouts to read")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to wait for them")
    return parser.parse_args()


def main():
    args = arguments()
    # MessageSerializer and not AvroConsumer: the latter takes keys for Avro too, ours are plain text
    decoder = MessageSerializer(CachedSchemaRegistryClient({"url": args.registry}))
    consumer = Consumer({
        "bootstrap.servers": args.bootstrap_servers,
        "group.id": "millrace-example-%d" % time.time_ns(),
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    })
    consumer.subscribe([args.topic])
    seen = 0
    deadline = time.monotonic() + args.timeout
    try:
        while seen < args.limit and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    continue
                sys.exit("cannot read %s: %s" % (args.topic, message.error()))
            try:
                rollout = decoder.decode_message(message.value())
            except SerializerError as malformed:  # such records are on the dead-letter topic as well
                print("%s[%d]@%d is no rollout: %s" % (
                    message.topic(), message.partition(), message.offset(), malformed), file=sys.stderr)
                continue
            print(json.dumps(summary(rollout)))
            seen += 1
    finally:
        consumer.close()
    sys.exit(0 if seen == args.limit else 3)


if __name__ == "__main__":
    main()
