#!/usr/bin/env python3
"""A learner in another language: trains a run's policy with numpy, in the place of `millrace learn`. See README.md.

    apt-get install python3-confluent-kafka python3-avro python3-requests python3-numpy
    ./millrace learn --first-version --bootstrap-servers kafka:9092 --set run.id=my-run
    /usr/bin/python3 infra/examples/trainer/train.py --bootstrap-servers kafka:9092 \\
        --registry http://127.0.0.1:9404 --prefix millrace.my-run. --run my-run

Works with confluent-kafka 1.7, avro 1.11 and numpy 1.24 (Debian 12). Ends after --steps versions, or when it is stopped; run
again, it goes on where it was. Exit status: 0 after --steps, 1 with a sentence on standard error.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: sums in one order, and small matrices gain nothing from more
import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.avro import CachedSchemaRegistryClient
from confluent_kafka.avro.serializer import SerializerError
from confluent_kafka.avro.serializer.message_serializer import MessageSerializer

from decoder import Decoder, tensors

warnings.filterwarnings("ignore", "Unknown packed-")  # packed arrays are bytes to the Avro library, and numpy's to read
CHUNK_BYTES = 512 * 1024
TIMEOUT = 30.0


class Log:
    """The topics of a run: records in and out, in Confluent's wire format."""

    def __init__(self, args):
        self.args = args
        self.registry = CachedSchemaRegistryClient({"url": args.registry})
        self.codec = MessageSerializer(self.registry)
        self.schemas = {}
        # the same transactional id as every other learner of the run: starting fences whoever is still there
        self.producer = Producer({
            "bootstrap.servers": args.bootstrap_servers,
            "transactional.id": args.prefix + "learner",
            "transaction.timeout.ms": 60000,
            "message.max.bytes": 1 << 20,
        })
        self.producer.init_transactions(TIMEOUT)
        self.reader = self.consumer({"enable.partition.eof": True})
        self.batches = self.consumer({})

    def consumer(self, more):
        return Consumer({
            **more,
            "bootstrap.servers": self.args.bootstrap_servers,
            "group.id": self.args.prefix + "learner",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
        })

    def topic(self, name):
        return self.args.prefix + name

    def encode(self, name, record):
        """Record to bytes, with the fields that have a default filled in where they are missing."""
        if name not in self.schemas:
            schema_id, schema, _ = self.registry.get_latest_schema(self.topic(name) + "-value")
            if schema is None:
                sys.exit("the registry has no schema for %s" % self.topic(name))
            self.schemas[name] = (schema_id, json.loads(str(schema)))
        schema_id, schema = self.schemas[name]
        for field in schema["fields"]:
            if field["name"] not in record and "default" in field:
                record[field["name"]] = field["default"]
        return self.codec.encode_record_with_schema_id(schema_id, record)

    def range(self, name, first, last):
        """Committed messages of a topic's one partition from offset first to last."""
        self.reader.assign([TopicPartition(self.topic(name), 0, first)])
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            message = self.reader.poll(0.2)
            if message is None:
                continue
            if message.error() and message.error().code() != KafkaError._PARTITION_EOF:
                sys.exit("cannot read %s: %s" % (self.topic(name), message.error()))
            if not message.error() and message.offset() <= last:
                deadline = time.monotonic() + TIMEOUT
                yield message
            # the last offsets may be ends of transactions, which are no messages: then the end of the partition comes
            if message.offset() >= (last + 1 if message.error() else last):
                return
        sys.exit("%s@%d did not come within %g s" % (self.topic(name), last, TIMEOUT))

    def ends(self, name):
        return self.reader.get_watermark_offsets(TopicPartition(self.topic(name), 0), TIMEOUT)

    def decode(self, message):
        """None for what is no record of this run."""
        try:
            record = self.codec.decode_message(message.value())
        except SerializerError:
            return None
        mine = record and record["run_id"] == self.args.run and record["epoch"] == self.args.epoch
        return record if mine and record.get("policy_id", self.args.policy) == self.args.policy else None

    def newest_version(self):
        low, high = self.ends("policy-versions")
        newest = None
        for message in self.range("policy-versions", low, high - 1) if high > low else []:
            record = self.decode(message)
            if record and (newest is None or record["version"] > newest["version"]):
                newest = record
        if newest is None:
            sys.exit("run %s has no version yet; './millrace learn --first-version' publishes the initial weights" % self.args.run)
        return newest

    def load(self, manifest, location):
        """The tensors of a location by name, each checked against its hash."""
        if location["uri"] is not None or any(entry["encoding"] != "RAW" for entry in location["tensors"]):
            sys.exit("version %d is not written whole to the log; run with weights.store=kafka and weights.anchor_every=1"
                     % manifest["version"])
        data = {entry["name"]: bytearray() for entry in location["tensors"]}
        name = location["topic"][len(self.args.prefix):]
        for message in self.range(name, location["first_offset"], location["last_offset"]):
            chunk = self.decode(message)
            if chunk and chunk["version"] == manifest["version"]:
                data[chunk["tensor"]] += chunk["data"]
        found = {}
        for entry in location["tensors"]:
            if entry["dtype"] != "F32":
                sys.exit("version %d has %s as %s, and this trainer makes versions of F32; begin the run with weights.dtype=f32"
                         % (manifest["version"], entry["name"], entry["dtype"]))
            if hashlib.sha256(data[entry["name"]]).hexdigest() != entry["sha256"]:
                sys.exit("version %d has other bytes in %s than its manifest says" % (manifest["version"], entry["name"]))
            found[entry["name"]] = np.frombuffer(data[entry["name"]], "<f4").reshape(entry["dims"]).copy()
        return found

    def write_tensors(self, name, version, arrays):
        """Sends the chunks; returns a function that, after a flush, gives the manifest's location of them."""
        offsets, failures, entries, whole = [], [], [], hashlib.sha256()

        def delivered(error, message):
            failures.append(error) if error else offsets.append(message.offset())

        for tensor, array in arrays:
            data = np.ascontiguousarray(array, "<f4").tobytes()
            pieces = range(0, len(data), CHUNK_BYTES)
            for chunk, start in enumerate(pieces):
                self.producer.produce(
                    self.topic(name), partition=0, key="%s/%s/%d" % (self.key(version), tensor, chunk),
                    value=self.encode(name, dict(self.identity(), version=version, tensor=tensor, chunk=chunk, start=start,
                                                 data=data[start:start + CHUNK_BYTES])),
                    on_delivery=delivered)
                self.producer.poll(0)
            whole.update(data)
            entries.append(dict(name=tensor, dtype="F32", dims=list(array.shape), bytes=len(data), chunks=len(pieces),
                                sha256=hashlib.sha256(data).hexdigest(), encoding="RAW", encoded_bytes=None))

        def location():
            if failures:
                raise KafkaException(failures[0])
            return dict(topic=self.topic(name), partition=0, first_offset=min(offsets), last_offset=max(offsets),
                        tensors=entries, sha256=whole.hexdigest(), base_version=None, base_sha256=None, anchor_version=None,
                        uri=None)

        return location

    def key(self, version):
        """Of a manifest; a chunk's begins with it."""
        return "%s/%d/%d" % (self.args.policy, self.args.epoch, version)

    def identity(self):
        return dict(run_id=self.args.run, epoch=self.args.epoch, policy_id=self.args.policy)

    def publish(self, manifest, weights, moments, step, batch_message):
        """Weights, optimiser state, manifest, training-log record and the batch's offset: one transaction."""
        version = manifest["version"]
        self.producer.begin_transaction()
        try:
            weight_location = self.write_tensors("weights", version, weights)
            moment_location = self.write_tensors("optimizer-state", version, moments)
            self.producer.flush(TIMEOUT)
            manifest = dict(manifest, weights=weight_location(), optimizer=moment_location())
            self.producer.produce(self.topic("policy-versions"), partition=0, key=self.key(version),
                                  value=self.encode("policy-versions", manifest))
            step["weights_sha256"] = manifest["weights"]["sha256"]
            self.producer.produce(self.topic("training-log"), partition=0, key=self.args.policy,
                                  value=self.encode("training-log", step))
            self.producer.send_offsets_to_transaction(
                [TopicPartition(self.topic("batches"), 0, batch_message.offset() + 1)],
                self.batches.consumer_group_metadata(), TIMEOUT)
            self.producer.commit_transaction(TIMEOUT)
        except KafkaException:
            if not self.producer_is_lost():
                self.producer.abort_transaction(TIMEOUT)
            raise
        return manifest

    def producer_is_lost(self):
        error = sys.exc_info()[1].args[0]
        return error.fatal()  # fenced by another learner: there is nothing left to abort

    def next_batch(self, last):
        """The batch after `last` and its message; waits for it."""
        while True:
            message = self.batches.poll(1.0)
            if message is None:
                continue
            if message.error():
                sys.exit("cannot read %s: %s" % (self.topic("batches"), message.error()))
            batch = self.decode(message)
            if batch is None or batch["batch_id"] <= last:
                continue
            if batch["batch_id"] != last + 1:
                sys.exit("batch %d is missing: after %d comes %d" % (last + 1, last, batch["batch_id"]))
            return batch, message

    def start_batches(self):
        partition = TopicPartition(self.topic("batches"), 0)
        committed = self.batches.committed([partition], TIMEOUT)[0].offset
        low, _ = self.ends("batches")
        self.batches.assign([TopicPartition(self.topic("batches"), 0, max(committed, low))])

    def trajectories(self, batch):
        """The trajectories of a batch, in its order. They lie close together on one partition."""
        wanted = {entry["offset"] for entry in batch["entries"]}
        found = {}
        for message in self.range("trajectories", min(wanted), max(wanted)) if wanted else []:
            if message.offset() in wanted:
                found[message.offset()] = self.decode(message)
        return [found[entry["offset"]] for entry in batch["entries"]]


class AdamW:
    """As in PyTorch, without weight decay; its state travels with the versions."""

    def __init__(self, rate, steps, first, second):
        self.rate, self.steps, self.first, self.second = rate, steps, first, second

    def step(self, weights, grads, scale):
        self.steps += 1
        norm = np.sqrt(sum(float((g * g).sum()) for g in grads.values()))
        clip = min(1.0, 1.0 / max(norm, 1e-12))
        for name, g in grads.items():
            g = g * np.float32(clip)
            m, v = self.first[name], self.second[name]
            m += np.float32(0.1) * (g - m)
            v += np.float32(0.001) * (g * g - v)
            weights[name] -= np.float32(self.rate * scale / (1 - 0.9 ** self.steps)) * m / (
                np.sqrt(v / np.float32(1 - 0.999 ** self.steps)) + np.float32(1e-8))
        return norm, clip < 1


def padded(trajectories, masks):
    """Tokens [B, L], and for every trained token its row, target, temperature, sequence and position in the response."""
    prompts = [np.frombuffer(t["prompt_tokens"], "<i4") for t in trajectories]
    responses = [np.frombuffer(t["response_tokens"], "<i4") for t in trajectories]
    length = max(len(p) + len(r) for p, r in zip(prompts, responses))
    tokens = np.zeros((len(trajectories), length), np.int64)
    rows, targets, temperature, sequence, position = [], [], [], [], []
    for s, (prompt, response) in enumerate(zip(prompts, responses)):
        tokens[s, :len(prompt)] = prompt
        tokens[s, len(prompt):len(prompt) + len(response)] = response
        for t in np.flatnonzero(masks[s]):
            rows.append(s * length + len(prompt) + t - 1)
            targets.append(response[t])
            temperature.append(trajectories[s]["temperature"])
            sequence.append(s)
            position.append(t)
    return tokens, np.array(rows), np.array(targets), np.array(temperature, np.float32), np.array(sequence), np.array(position)


def loss_gradient(decoder, weights, batch, trajectories):
    """Policy gradient: - sum over tokens of weight * advantage * log-prob, over their number."""
    masks = [np.frombuffer(entry["mask"] if entry["mask"] is not None else t["mask"], np.int8)
             for entry, t in zip(batch["entries"], trajectories)]
    trained = int(sum((mask != 0).sum() for mask in masks))
    if trained == 0:
        return 0, 0.0, {}
    tokens, rows, targets, temperature, sequence, position = padded(trajectories, masks)
    bare = next((entry["rollout_id"] for entry in batch["entries"] if entry["weights"] is None), None)
    if bare is not None:
        sys.exit(f"the entry of rollout {bare} has no importance weights, and this trainer does not make them; "
                 "run the topology with topology.batch.record_weights=true")
    importance = np.array([np.frombuffer(batch["entries"][s]["weights"], "<f4")[t] for s, t in zip(sequence, position)])
    advantage = np.array([batch["entries"][s]["advantage"] for s in sequence], np.float32)
    coefficients = -importance * advantage / np.float32(trained)
    log_probs, grads = decoder.gradient(weights, tokens, rows, targets, temperature, coefficients)
    return trained, float((coefficients * log_probs).sum()), grads


def staleness(version, entries, trajectories):
    """Version at the start of the step less the version that sampled, over the tokens trained on, and its two parts."""
    behind, queued = [], []
    for entry, t in zip(entries, trajectories):
        mask = np.frombuffer(entry["mask"] if entry["mask"] is not None else t["mask"], np.int8)
        for span in t["version_spans"]:
            trained = int((mask[span["start"]:span["end"]] != 0).sum())
            behind += [version - span["version"]] * trained
            queued += [version - t["proximal_version"]] * trained
    if not behind:
        return dict(staleness_mean=None, staleness_max=None, staleness_in_flight_mean=None, staleness_in_queue_mean=None)
    return dict(staleness_mean=float(np.mean(behind)), staleness_max=max(behind),
                staleness_in_flight_mean=float(np.mean(behind) - np.mean(queued)), staleness_in_queue_mean=float(np.mean(queued)))


def train(args):
    log = Log(args)
    manifest = log.newest_version()
    shape = json.loads(manifest["shape"])
    names = [name for name, _ in tensors(shape)]
    weights = log.load(manifest, manifest["weights"])
    if manifest["optimizer"] is not None:
        state = log.load(manifest, manifest["optimizer"])
        first = {name: state["exp_avg." + name] for name in names}
        second = {name: state["exp_avg_sq." + name] for name in names}
    else:
        first, second = ({name: np.zeros_like(weights[name]) for name in names} for _ in range(2))
    optimizer = AdamW(args.learning_rate, manifest["optimizer_steps"], first, second)
    decoder = Decoder(shape)
    log.start_batches()
    print("goes on from version %d" % manifest["version"], flush=True)
    while manifest["version"] < args.steps or args.steps == 0:
        batch, message = log.next_batch(manifest["batch_id"])
        started = int(time.time() * 1000)
        begun = time.monotonic()
        trajectories = log.trajectories(batch)
        fetched = time.monotonic()
        trained, loss, grads = loss_gradient(decoder, weights, batch, trajectories)
        norm, clipped = optimizer.step(weights, grads, batch["step_scale"]) if trained else (0.0, False)
        finished = int(time.time() * 1000)
        computed = time.monotonic()
        entries = batch["entries"]
        reward = sum(entry["reward"] for entry in entries) / max(1, len(entries))
        version = manifest["version"] + 1
        step = dict(log.identity(), batch_id=batch["batch_id"], version=version, weights_sha256="",
                    rollouts_trained=sum(entry["trained_tokens"] > 0 for entry in entries),
                    rollouts_masked=sum(entry["trained_tokens"] == 0 for entry in entries), tokens_trained=trained,
                    reward_mean=reward, **staleness(manifest["version"], batch["entries"], trajectories),
                    ess_ratio=batch["ess_ratio"], learning_rate=args.learning_rate * batch["step_scale"],
                    metrics=dict(seconds_fetch=fetched - begun, seconds_step=computed - fetched, loss=loss, grad_norm=norm, grad_clipped=float(clipped)),
                    started_at_ms=started, finished_at_ms=finished, entries=None,
                    ess_ratio_truncated=batch["ess_ratio_truncated"], second_moment=batch["second_moment"],
                    second_moment_trained=None, starved=False,  # this trainer makes a version of every batch
                    tokens_trainable=sum(int(np.frombuffer(t["mask"], np.int8).sum()) for t in trajectories),
                    rollouts_consumed=manifest["rollouts_consumed"] + len(entries))
        manifest = log.publish(
            dict(log.identity(), version=version, parent_version=version - 1, batch_id=batch["batch_id"],
                 shape=manifest["shape"], tokenizer_hash=manifest["tokenizer_hash"], optimizer_steps=optimizer.steps,
                 rollouts_consumed=manifest["rollouts_consumed"] + len(entries),
                 tokens_trained=manifest["tokens_trained"] + trained, published_at_ms=finished),
            [(name, weights[name]) for name in names],
            [("exp_avg." + name, first[name]) for name in names] + [("exp_avg_sq." + name, second[name]) for name in names],
            step, message)
        print("version %d  reward %.3f  tokens %d  seconds: fetch %.2f, step %.2f, commit %.2f  %s" % (
            version, reward, trained, fetched - begun, computed - fetched, time.monotonic() - computed,
            manifest["weights"]["sha256"][:12]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--registry", required=True, help="address of the schema registry, http://host:port")
    parser.add_argument("--prefix", default="millrace.", help="topic prefix of the run")
    parser.add_argument("--run", required=True, help="id of the run")
    parser.add_argument("--epoch", type=int, default=0)
    parser.add_argument("--policy", default="policy")
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--steps", type=int, default=0, help="end with this version; 0 for no end")
    try:
        train(parser.parse_args())
    except KafkaException as e:
        sys.exit("the log: %s" % e)


if __name__ == "__main__":
    main()
