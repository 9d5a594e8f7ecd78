#!/usr/bin/env python3
"""A generator in another language: samples a run's prompts with numpy, in the place of `millrace generate`. See README.md.

    apt-get install python3-confluent-kafka python3-avro python3-requests python3-numpy
    /usr/bin/python3 infra/examples/generator/generate.py --bootstrap-servers kafka:9092 \\
        --registry http://127.0.0.1:9404 --prefix millrace.my-run. --run my-run --id python-1

Plays the environment fixed-answer, of the tasks inc and sort. Works with confluent-kafka 1.7, avro 1.11 and numpy 1.24
(Debian 12). Goes on until it is stopped; run again under the same id, it goes on where it was.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small matrices gain nothing from more
import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.avro import CachedSchemaRegistryClient
from confluent_kafka.avro.serializer.message_serializer import MessageSerializer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "trainer"))
from decoder import Decoder

warnings.filterwarnings("ignore", "Unknown packed-")  # packed arrays are bytes to the Avro library, and numpy's to read
TIMEOUT = 30.0
PROMPTS_AT_ONCE = 32
HEARTBEAT_S = 2.0
ZERO = 3  # token of the digit 0; the others follow


class Log:
    """The topics of a run: records in and out, in Confluent's wire format."""

    def __init__(self, args):
        self.args = args
        self.registry = CachedSchemaRegistryClient({"url": args.registry})
        self.codec = MessageSerializer(self.registry)
        self.schemas = {}

    def topic(self, name):
        return self.args.prefix + name

    def consumer(self, **more):
        return Consumer({"bootstrap.servers": self.args.bootstrap_servers, "isolation.level": "read_committed",
                         "enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 50, **more})

    def encode(self, name, record):
        """Record to bytes, with the fields that have a default filled in where they are missing."""
        if name not in self.schemas:
            schema_id, schema, _ = self.registry.get_latest_schema(self.topic(name) + "-value")
            self.schemas[name] = (schema_id, json.loads(str(schema)))
        schema_id, schema = self.schemas[name]
        defaults = {field["name"]: field["default"] for field in schema["fields"] if "default" in field}
        return self.codec.encode_record_with_schema_id(schema_id, {**defaults, **record})

    def decode(self, message):
        """None for what is not of this run."""
        record = self.codec.decode_message(message.value())
        mine = record["run_id"] == self.args.run and record["epoch"] == self.args.epoch
        return record if mine and record.get("policy_id", self.args.policy) == self.args.policy else None


class Policy:
    """The newest weights, read from the log as manifests come."""

    def __init__(self, log):
        self.log = log
        self.version, self.weights, self.decoder = -1, None, None
        self.chunks = log.consumer(**{"group.id": log.args.prefix + "unused", "enable.partition.eof": True})
        self.manifests = log.consumer(**{"group.id": log.args.prefix + "unused"})
        self.manifests.assign([TopicPartition(log.topic("policy-versions"), 0, 0)])

    def follow(self, wait):
        """Takes up the newest version that is committed by now."""
        newest = None
        for message in self.manifests.consume(100, wait):
            if message.error():
                raise KafkaException(message.error())
            manifest = self.log.decode(message)
            if manifest and manifest["version"] > self.version and (newest is None or manifest["version"] > newest["version"]):
                newest = manifest
        if newest:
            self.weights = self.load(newest)
            self.decoder = Decoder(json.loads(newest["shape"]))
            self.version, self.tokenizer_hash = newest["version"], newest["tokenizer_hash"]

    def load(self, manifest):
        location = manifest["weights"]
        if location["uri"] is not None or any(entry["encoding"] != "RAW" for entry in location["tensors"]):
            sys.exit("version %d is not written whole to the log; run with weights.store=kafka and weights.anchor_every=1"
                     % manifest["version"])
        data = {entry["name"]: bytearray() for entry in location["tensors"]}
        self.chunks.assign([TopicPartition(location["topic"], location["partition"], location["first_offset"])])
        while True:
            message = self.chunks.poll(TIMEOUT)
            if message is None:
                sys.exit("the weights of version %d did not come within %g s" % (manifest["version"], TIMEOUT))
            if message.error() and message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            if not message.error() and message.offset() <= location["last_offset"]:
                chunk = self.log.decode(message)
                if chunk and chunk["version"] == manifest["version"]:
                    data[chunk["tensor"]] += chunk["data"]
            # the last offsets may be ends of transactions, which are no messages: then the end of the partition comes
            if message.offset() >= (location["last_offset"] + 1 if message.error() else location["last_offset"]):
                break
        for entry in location["tensors"]:
            if hashlib.sha256(data[entry["name"]]).hexdigest() != entry["sha256"]:
                sys.exit("version %d has other bytes in %s than its manifest says" % (manifest["version"], entry["name"]))
        return {entry["name"]: values(entry["dtype"], data[entry["name"]]).reshape(entry["dims"])
                for entry in location["tensors"]}

    def sample(self, requests):
        """For each request a list of (response tokens, log-probs), one for each sample; all of one version."""
        random = np.random.default_rng([self.version + 1] + [request["ordinal"] for request in requests])
        prompts = [np.frombuffer(request["prompt_tokens"], "<i4") for request in requests for _ in range(request["samples"])]
        lengths = [answer_length(request) for request in requests for _ in range(request["samples"])]
        heat = np.repeat([request["sampling"]["temperature"] for request in requests],
                         [request["samples"] for request in requests]).astype(np.float32)
        width = max(len(prompt) + length for prompt, length in zip(prompts, lengths))
        tokens = np.zeros((len(prompts), width), np.int64)
        for row, prompt in zip(tokens, prompts):
            row[:len(prompt)] = prompt
        ends = np.array([len(prompt) for prompt in prompts])
        log_probs = np.zeros((len(prompts), max(lengths)), np.float32)
        for position in range(max(lengths)):
            at = ends + position
            going = np.flatnonzero(position < np.array(lengths))
            logits = self.decoder.logits(self.weights, tokens, going * width + at[going] - 1) / heat[going, None]
            logits -= logits.max(axis=1, keepdims=True)
            log_all = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            drawn = (log_all + random.gumbel(size=log_all.shape)).argmax(axis=1)
            tokens[going, at[going]] = drawn
            log_probs[going, position] = log_all[np.arange(len(going)), drawn]
        samples = iter([(tokens[i, ends[i]:ends[i] + length], log_probs[i, :length]) for i, length in enumerate(lengths)])
        return [[next(samples) for _ in range(request["samples"])] for request in requests]


def values(dtype, data):
    """A tensor's values as float32, which holds those of bfloat16 exactly."""
    if dtype == "F32":
        return np.frombuffer(data, "<f4")
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    sys.exit("a version is of %s, and this generator knows F32 and BF16" % dtype)


def answer_length(request):
    """A response of fixed-answer is over when it is as long as the right answer, which is the request's state."""
    sampling = request["sampling"]
    if request["environment"] != "fixed-answer":
        sys.exit("this generator plays fixed-answer, not %s" % request["environment"])
    if sampling["top_k"] != 0 or sampling["top_p"] != 1 or sampling.get("min_p", 0) != 0:
        sys.exit("this generator samples from the whole distribution; run with admission.sampling.top_k=0, top_p=1 and min_p=0")
    return min(len(request["environment_state"]), sampling["max_tokens"])


def rollout(args, request, index, tokens, log_probs, version, started):
    answer = [ZERO + int(digit) for digit in request["environment_state"]]
    right = sum(int(token == wanted) for token, wanted in zip(tokens, answer))
    return dict(
        run_id=request["run_id"], epoch=request["epoch"], rollout_id="%s/%d" % (request["group_id"], index),
        group_id=request["group_id"], ordinal=request["ordinal"], sample_index=index, group_size=request["samples"],
        generator_id=args.id, environment=request["environment"], tokenizer_hash=request["tokenizer_hash"],
        prompt_tokens=request["prompt_tokens"], response_tokens=tokens.astype("<i4").tobytes(),
        mask=np.ones(len(tokens), np.int8).tobytes(), behavior_log_probs=log_probs.astype("<f4").tobytes(),
        log_prob_distribution="RAW" if request["sampling"]["temperature"] == 1 else "TEMPERED",
        sampling=request["sampling"], turns=[dict(speaker="POLICY", start=0, end=len(tokens), details=None)],
        version_spans=[dict(version=version, start=0, end=len(tokens))], reward=right / len(answer),
        reward_components={"right": float(right)},
        finish_reason="ENVIRONMENT" if len(tokens) == len(answer) else "LENGTH",
        admitted_version=request["admitted_version"], started_at_ms=started, finished_at_ms=int(time.time() * 1000),
        task=request.get("task"))


def generate(args):
    log = Log(args)
    producer = Producer({
        "bootstrap.servers": args.bootstrap_servers,
        "transactional.id": args.prefix + "generator-" + args.id,  # fences an older process of this id
        "partitioner": "murmur2_random",  # as Java's clients: a group's records lie on partitions of one number
    })
    producer.init_transactions(TIMEOUT)
    prompts = log.consumer(**{"group.id": args.prefix + "generator"})  # shared with Millrace's own generators
    prompts.subscribe([log.topic("prompts")])
    policy = Policy(log)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    sampled, since, last_beat = 0, int(time.time() * 1000), 0.0
    print("%s samples" % args.id, flush=True)

    def commit(records, done, left=False):
        """Rollouts, heartbeat and the prompts' offsets: one transaction."""
        producer.begin_transaction()
        for record in records:
            producer.produce(log.topic("rollouts"), key=record["group_id"], value=log.encode("rollouts", record))
        producer.produce(log.topic("serving"), key="%s/%d" % (args.id, args.epoch), value=log.encode("serving", dict(
            run_id=args.run, epoch=args.epoch, server_id=args.id, role="GENERATOR", policy_id=args.policy,
            version=policy.version, since_ms=since, heartbeat_ms=int(time.time() * 1000), tokens=sampled, left=left)))
        if done:
            producer.send_offsets_to_transaction(
                [TopicPartition(m.topic(), m.partition(), m.offset() + 1) for m in done],
                prompts.consumer_group_metadata(), TIMEOUT)
        producer.commit_transaction(TIMEOUT)

    while not stopped:
        messages = prompts.consume(PROMPTS_AT_ONCE, 0.1)
        policy.follow(0.0 if messages else 0.1)
        if policy.version < 0 and not messages:
            continue
        requests = [request for request in map(log.decode, messages) if request]
        wanted = max([request["admitted_version"] for request in requests], default=0)
        while policy.version < wanted and not stopped:
            policy.follow(0.1)  # no prompt is begun with older weights than admission knew: that bounds staleness
        before, started = policy.version, int(time.time() * 1000)
        records = [rollout(args, request, index, tokens, log_probs, policy.version, started)
                   for request, samples in zip(requests, policy.sample(requests) if requests else [])
                   for index, (tokens, log_probs) in enumerate(samples)]
        sampled += sum(len(record["mask"]) for record in records)
        if messages or time.monotonic() - last_beat > HEARTBEAT_S:
            newest = {(m.topic(), m.partition()): m for m in messages}  # of each partition the last
            commit(records, list(newest.values()))
            last_beat = time.monotonic()
        if records:
            print("version %d  rollouts %d  reward %.3f" % (
                before, len(records), np.mean([record["reward"] for record in records])), flush=True)
    commit([], [], left=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--registry", required=True, help="address of the schema registry, http://host:port")
    parser.add_argument("--prefix", default="millrace.", help="topic prefix of the run")
    parser.add_argument("--run", required=True, help="id of the run")
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--policy", default="policy")
    parser.add_argument("--id", default="python", help="of this generator, unlike all others of the run")
    try:
        generate(parser.parse_args())
    except KafkaException as e:
        sys.exit("the log: %s" % e)


if __name__ == "__main__":
    main()
