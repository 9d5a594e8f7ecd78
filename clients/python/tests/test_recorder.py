"""What a recorder writes, drops and counts."""

import functools
import hashlib
import json
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from millrace_rl import NotCommitted, Recorder, Refused, TakenOver
from millrace_rl.avro import Schema, compiled_reader
from millrace_rl.avro_writer import PartialWriter, compiled_writer
from millrace_rl.log import partition_of
from millrace_rl.versions import Identity

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas/src/main/avro"

ROW = {"mask": [1, 0, 1], "behavior_log_probs": [-0.5, None, -1.0], "proximal_log_probs": [-0.25, float("nan"), -2.0], "reward": 1.0}


class RecorderTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name, "recorded")

    def recorder(self, **options):
        recorder = Recorder(directory=self.folder, **options)
        self.addCleanup(recorder.close)
        return recorder

    def lines(self, version):
        return [json.loads(line) for line in (self.folder / f"{version}.jsonl").read_text().splitlines()]

    def test_should_write_the_lines_that_import_takes_and_leave_absent_fields_out(self):
        with self.recorder() as recorder:
            recorder.step([{**ROW, "group": "a", "version": 2, "old_log_probs": None}, {**ROW, "id": "mine"}], version=3, figures={"loss": 0.5})
        self.assertEqual(self.lines(3), [
            {"step": 3, "mask": [1, 0, 1], "behavior_log_probs": [-0.5, None, -1.0], "proximal_log_probs": [-0.25, None, -2.0], "reward": 1.0,
             "group": "a", "version": 2, "id": "3-0"},
            {"step": 3, "mask": [1, 0, 1], "behavior_log_probs": [-0.5, None, -1.0], "proximal_log_probs": [-0.25, None, -2.0], "reward": 1.0,
             "id": "mine"}])
        self.assertEqual(json.loads((self.folder / "3.figures.json").read_text()), {"loss": 0.5})
        self.assertEqual((recorder.recorded, recorder.repeated, recorder.dropped), (1, 0, 0))

    def test_should_cut_padding_off_columns(self):
        with self.recorder(strict=True) as recorder:
            recorder.step({"mask": np.array([[1, 1, 0], [0, 1, 1]]), "behavior_log_probs": np.full((2, 3), -1.0), "reward": np.array([0.0, 2.0]),
                           "proximal_log_probs": np.full((2, 3), -1.0), "prompt_tokens": np.array([[0, 7], [8, 9]]),
                           "prompt_mask": np.array([[0, 1], [1, 1]]), "response_tokens": np.array([[3, 4, 0], [5, 6, 7]]), "group": ["x", "x"]},
                          version=0)
        first, second = self.lines(0)
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["reward"]), ([1, 1], [7], [3, 4], 0.0))
        self.assertEqual((second["mask"], second["prompt_tokens"], second["response_tokens"], second["reward"]), ([0, 1, 1], [8, 9], [5, 6, 7], 2.0))

    def test_should_write_numbers_that_read_as_they_were(self):
        of = np.random.default_rng(1)
        numbers = np.concatenate([-of.exponential(size=2000), 10.0 ** of.uniform(-44, 38, 2000), [0, -0.0, 1e-45, 3.4028235e38,
                                                                                                    9.9999999e9, 0.001, np.nan, np.inf]])
        numbers = numbers.astype(np.float32)
        tokens = np.concatenate([of.integers(0, 2 ** 31, numbers.size - 3), [0, 9, 10]])
        turns = np.where(np.arange(numbers.size) % 3 == 0, -1, np.arange(numbers.size))
        mask = np.isfinite(numbers).astype(np.int64)
        with self.recorder(strict=True) as recorder:
            recorder.step([{"mask": mask, "behavior_log_probs": -mask, "proximal_log_probs": -mask, "reward": 0, "values": numbers,
                            "response_tokens": tokens, "turns": turns}, ROW], version=0)
        line = self.lines(0)[0]
        read = np.array([np.nan if each is None else each for each in line["values"]], np.float32)
        np.testing.assert_array_equal(read, np.where(np.isfinite(numbers), numbers, np.nan))
        self.assertEqual((line["response_tokens"], line["turns"], line["mask"]), (tokens.tolist(), turns.tolist(), mask.tolist()))
        self.assertNotIn("values", self.lines(0)[1])

    def test_should_record_a_repeated_step_once(self):
        with self.recorder() as recorder:
            recorder.step([ROW], version=0)
        with self.recorder() as again:
            again.step([{**ROW, "reward": 9.0}], version=0)
            again.step([ROW], version=1)
        self.assertEqual(self.lines(0)[0]["reward"], 1.0)
        self.assertEqual((again.recorded, again.repeated, again.dropped), (1, 1, 0))

    def test_should_copy_what_the_trainer_overwrites(self):
        mask, log_probs = np.ones(2, np.int8), np.full(2, -1.0, np.float32)
        recorder = self.recorder()
        with mock.patch.object(recorder, "_write", side_effect=threading.Event().wait):  # never written
            recorder.step([{"mask": mask, "behavior_log_probs": log_probs, "proximal_log_probs": log_probs, "reward": 0.0}], version=0)
            log_probs[:] = -9
            self.assertEqual(recorder._pending[0].batch[0]["behavior_log_probs"].tolist(), [-1.0, -1.0])
            recorder._timeout_s = 0
            recorder.close()

    def test_should_drop_count_and_warn_once_instead_of_raising(self):
        for bad, of in (({"behaviour_log_probs": [0]}, "unknown field behaviour_log_probs"), ({"mask": [1, 2, 1]}, "mask must be 0 or 1"),
                        ({"behavior_log_probs": [-1.0, 0.0, float("nan")]}, r"behavior_log_probs\[2\] is nan"),
                        ({"behavior_log_probs": [0.5, 0, 0]}, r"behavior_log_probs\[0\] is 0.5"),
                        ({"entropies": [1.0]}, "entropies has the shape"), ({"reward": float("nan")}, "reward must be finite"),
                        ({"version": 8}, "sampled by version 8, and the step starts at version 7"), ({"reward": None}, "reward is missing"),
                        ({"response_tokens": [0.5, 1, 2]}, "whole numbers"), ({"response_tokens": [1 << 40, 1, 2]}, "from -2147483648 to 2147483647"),
                        ({"group": 3}, "group must be a text")):
            with self.subTest(of), self.recorder() as recorder, self.assertLogs("millrace", "WARNING") as logs:
                recorder.step([{**ROW, **bad}], version=7)
                recorder.step([], version=7)
                recorder.close()
            self.assertEqual((recorder.recorded, recorder.dropped), (0, 2))
            self.assertRegex(logs.output[0], of)
            self.assertEqual(len(logs.output), 2)  # the first one, and the total
            with self.assertRaisesRegex(Refused, of):
                self.recorder(strict=True).step([{**ROW, **bad}], version=7)
        self.assertFalse(self.folder.exists())

    def test_should_not_wait_for_a_slow_disk_and_bound_its_memory(self):
        may_write, recorder = threading.Event(), self.recorder(max_pending_mb=1)
        row = {"mask": np.ones(40_000, np.int8), "behavior_log_probs": np.zeros(40_000), "proximal_log_probs": np.zeros(40_000), "reward": 0}
        write = recorder._sink.write
        with mock.patch.object(recorder._sink, "write", side_effect=lambda *step: may_write.wait(30) and write(*step)), \
                self.assertLogs("millrace", "WARNING") as logs:
            for version in range(5):  # of 360 kB each
                recorder.step([row], version=version)
            self.assertEqual(recorder.dropped, 3)
            may_write.set()
            recorder.close()
        self.assertIn("max_pending_mb allows 1048576", logs.output[0])
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()), ["0.jsonl", "1.jsonl"])

    def test_should_survive_a_disk_that_cannot_be_written(self):
        self.folder.parent.joinpath("recorded").write_text("a file")
        with self.recorder() as recorder, self.assertLogs("millrace", "WARNING"):
            recorder.step([ROW], version=0)
            recorder.close()
        self.assertEqual(recorder.dropped, 1)
        self.assertIsInstance(recorder.last_error, OSError)

    def test_should_give_up_at_close_what_is_not_written_in_time(self):
        recorder = self.recorder(timeout_s=0.05)
        with mock.patch.object(recorder._sink, "write", side_effect=lambda *step: threading.Event().wait(1)), \
                self.assertLogs("millrace", "WARNING") as logs:
            recorder.step([ROW], version=0)
            recorder.close()
        self.assertEqual(recorder.dropped, 1)
        self.assertIn("not written within 0.05 s", logs.output[0])

    def test_should_record_the_example(self):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
        self.addCleanup(sys.path.pop, 0)
        import record_grpo
        with self.recorder(strict=True) as recorder:
            means = record_grpo.train(recorder, steps=4, lag=2, stale_from=3, correction="none", groups=2, samples=2)
        self.assertEqual(([line["version"] for line in self.lines(2)], [line["version"] for line in self.lines(3)]), ([2] * 4, [1] * 4))
        self.assertAlmostEqual(means[3], np.mean([line["reward"] for line in self.lines(3)]))
        for line in self.lines(0):  # on policy, so the engines agree
            np.testing.assert_allclose(line["behavior_log_probs"], line["proximal_log_probs"], atol=1e-5)

    def test_should_record_the_example_in_torch(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("torch is not installed")
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
        self.addCleanup(sys.path.pop, 0)
        import record_grpo_torch
        with self.recorder(strict=True) as recorder:
            means = record_grpo_torch.train(recorder, steps=12, lag=1)
        self.assertGreater(np.mean(means[-4:]), 1.5 * np.mean(means[:2]))
        self.assertEqual([line["version"] for line in self.lines(11)], [10] * 128)
        for line in self.lines(0):
            np.testing.assert_allclose(line["behavior_log_probs"], line["proximal_log_probs"], atol=1e-5)


@functools.lru_cache(None)
def schema(record):
    """A record's schema with the types that it names."""
    seen = set()

    def whole(node):
        if isinstance(node, str) and node.startswith("dev.millrace.schemas.") and node not in seen:
            seen.add(node)
            return whole(json.loads((SCHEMAS / "parts" / f"{node.rpartition('.')[2]}.avsc").read_text()))
        if isinstance(node, list):
            return [whole(each) for each in node]
        if isinstance(node, dict):
            return {key: whole(value) if key in ("type", "items", "values", "fields") else value for key, value in node.items()}
        return node

    return Schema(json.dumps(whole(json.loads((SCHEMAS / f"{record}.avsc").read_text()))))


class Cluster:
    """A run's topics as the recorder uses them: records go through the project's own schemas, and a transaction is whole or not at all."""

    NAMES = {"rollouts": "Rollout", "scores": "Score", "trajectories": "Trajectory", "batches": "LearnerBatch", "training-log": "TrainingStep"}

    def __init__(self):
        self.topics = {name: [[] for _ in range(4 if name in ("rollouts", "scores") else 1)] for name in self.NAMES}
        self.committed_offsets, self.failures, self.connections = {}, [], 0
        self._identity = Identity("millrace.r.", "r", 0, "policy")
        self._partitions = {self._identity.topic(name): len(partitions) for name, partitions in self.topics.items()}
        self._writers = {name: compiled_writer(schema(record)) for name, record in self.NAMES.items()}
        self._kafka, self._schemas = mock.Mock(timeout_s=1), mock.Mock()
        self._schemas.encode = lambda topic, record: self._writers[topic[len("millrace.r."):]](record)
        self._schemas.writer = lambda topic, *of: PartialWriter(schema(self.NAMES[topic[len("millrace.r."):]]), *of)
        self._kafka.consumer.return_value.committed = lambda at, timeout_s: [
            mock.Mock(offset=self.committed_offsets.get(each, -1001)) for each in at]
        self._kafka.ends = lambda consumer, topic, partition: (0, len(self.topics["batches"][0]))

    def _partition(self, name):
        return 0

    def transactions(self, *_):
        self.connections += 1
        return self

    def write(self, what, work, offsets):
        self._open = []
        work()
        if self.failures:
            raise self.failures.pop(0)
        for name, partition, value, _ in self._open:
            self.topics[name][partition].append(value)
        self.committed_offsets.update({(topic, partition): offset for topic, partition, offset in offsets()[0]})

    def send(self, topic, value, key, partition=None, written=None):
        name = topic[len("millrace.r."):]
        offset = len(self.topics[name][partition]) + sum(each[:2] == (name, partition) for each in self._open)
        self._open.append((name, partition, value, offset))
        if written is not None:
            written(offset)

    def flush(self):
        pass

    def close(self):
        pass

    def read(self, name, partition=0):
        read = compiled_reader(schema(self.NAMES[name]))
        return [read(value, 0, True) for value in self.topics[name][partition]]


def rich_rows(version):
    """Sequences with every field, each on some of them."""
    of, rows = np.random.default_rng(1), []
    for i in range(12):
        count = int(of.integers(1, 200))
        mask = (of.random(count) < 0.8).astype(np.int8)

        def numbers(count=count):
            return -of.exponential(size=count).astype(np.float32)

        row = {"mask": mask, "behavior_log_probs": numbers(), "proximal_log_probs": numbers(), "reward": float(of.normal()), "group": f"g{i // 3}",
               "response_tokens": of.integers(0, 100_000, count), "prompt_tokens": of.integers(0, 100_000, i)}
        row["behavior_log_probs"][mask == 0] = np.nan
        row.update({"advantage": 0.25} if i % 2 else {"advantages": numbers()})
        if i % 3 == 0:
            row.update(versions=np.sort(of.integers(0, 6, count)), turns=np.repeat([0, -1, 1], count)[:count], entropies=numbers(),
                       squared_probabilities=numbers(), old_log_probs=numbers(), reward_components={"a": 1.0, "b": -2.5}, finish_reason="stop",
                       turn_rewards=[0.5, 1.5])
        if i % 4 == 0:
            row.update(reference_log_probs=numbers(), teacher_log_probs=numbers(), values=numbers(), token_rewards=numbers(), temperature=0.7,
                       greedy_reward=1.0, age_ms=250, version=None if "versions" in row else 4, id=f"mine-{i}{version}")
        rows.append(row)
    return rows


class ClusterTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        for name, value in (("Run", lambda *_, **__: self.cluster), ("Transactions", self.cluster.transactions), ("TopicPartition", lambda *at: at)):
            patch = mock.patch(f"millrace_rl.recorder.{name}", value)
            patch.start()
            self.addCleanup(patch.stop)

    def recorder(self, **options):
        recorder = Recorder("kafka:9092", "r", **options)
        self.addCleanup(recorder.close)
        return recorder

    ROWS = [{**ROW, "group": "g", "advantage": 0.5, "versions": [3, 3, 4], "response_tokens": [7, 8, 9], "turns": [0, -1, 1],
             "entropies": [1, None, 2]},
            {**ROW, "group": "g", "advantages": [1.0, 0.0, 2.0], "mask": [0, 0, 1], "finish_reason": "length"},
            {**ROW, "group": "h", "advantage": 0.0, "mask": [0, 0, 0]}]

    def test_should_write_records_that_point_at_each_other(self):
        with self.recorder(strict=True) as recorder:
            recorder.step(self.ROWS, version=5, figures={"loss": 0.25, "learning_rate": 0.125})
        batch, = self.cluster.read("batches")
        self.assertEqual((batch["batch_id"], batch["assembled_version"], batch["trained_tokens"]), (0, 5, 3))
        self.assertEqual((batch["staleness_mean"], batch["staleness_max"]), (1.0, 2))  # of tokens by versions 3, 4 and 5
        for entry, (advantage, tokens, by) in zip(batch["entries"], ((0.5, 2, None), (2.0, 1, None), (0.0, 0, "records"))):
            trajectory = self.cluster.read("trajectories", entry["partition"])[entry["offset"]]
            rollout = self.cluster.read("rollouts", entry["rollout_partition"])[entry["rollout_offset"]]
            at = trajectory["score_source"]
            score = self.cluster.read("scores", at["partition"])[at["offset"]]
            for record in (trajectory, rollout, score):
                self.assertEqual((record["rollout_id"], record["group_id"]), (entry["rollout_id"], entry["group_id"]))
            self.assertEqual(entry["rollout_partition"], partition_of(entry["group_id"], 4))
            self.assertEqual(score["rollout_source"], trajectory["rollout_source"])
            self.assertEqual((entry["advantage"], entry["trained_tokens"], entry["masked_by"]), (advantage, tokens, by))
            self.assertEqual(trajectory["proximal_version"], 5)
        first = self.cluster.read("trajectories")[0]
        self.assertEqual([(span["version"], span["start"], span["end"]) for span in first["version_spans"]], [(3, 0, 2), (4, 2, 3)])
        self.assertEqual([(turn["speaker"], turn["start"]) for turn in first["turns"]], [("POLICY", 0), ("ENVIRONMENT", 1), ("POLICY", 2)])
        self.assertEqual(list(first["proximal_entropies"]), [1, 0, 2])
        self.assertIsNone(first["old_log_probs"])
        step, = self.cluster.read("training-log")
        self.assertEqual((step["version"], step["rollouts_trained"], step["rollouts_masked"], step["tokens_trained"]), (6, 2, 1, 3))
        self.assertEqual((step["learning_rate"], step["metrics"]["loss"], step["reward_mean"], step["weights_sha256"]), (0.125, 0.25, 1.0, ""))
        self.assertEqual(step["metrics"]["response_tokens_mean"], 3)

    def test_should_write_the_bytes_that_the_plain_writer_makes(self):
        with mock.patch("time.time", lambda: 1.7e9), self.recorder(strict=True) as recorder:
            for version in (6, 7):
                recorder.step(rich_rows(version), version=version, figures={"loss": 0.5, "learning_rate": 1e-6})
        for name, digest in (("rollouts", "9aa4b635329e5499"), ("scores", "9b21f452f65f6d98"), ("trajectories", "3d834e818bcf83a6"),
                             ("batches", "8d3a24879b16c9a1"), ("training-log", "5dc2e7cefab67523")):
            values, whole = sum(self.cluster.topics[name], []), self.cluster._writers[name]
            self.assertEqual(hashlib.sha256(b"".join(b"%d:" % len(value) + value for value in values)).hexdigest()[:16], digest, name)
            for partition in range(len(self.cluster.topics[name])):
                for record, value in zip(self.cluster.read(name, partition), self.cluster.topics[name][partition]):
                    self.assertEqual(whole(record), value)

    def test_should_record_a_repeated_step_once_also_after_a_restart(self):
        with self.recorder(strict=True) as recorder:
            recorder.step(self.ROWS, version=5)
            recorder.step(self.ROWS, version=5)
        with self.recorder(strict=True) as again:
            again.step(self.ROWS, version=5)
            again.step(self.ROWS, version=7)
        self.assertEqual((recorder.repeated, again.repeated), (1, 1))
        self.assertEqual([(batch["batch_id"], batch["assembled_version"]) for batch in self.cluster.read("batches")], [(0, 5), (1, 7)])
        self.assertEqual([step["rollouts_consumed"] for step in self.cluster.read("training-log")], [3, 6])

    def test_should_try_once_more_and_then_drop(self):
        self.cluster.failures = [NotCommitted("given up")] * 3  # twice of the first step, once of the second
        with self.recorder() as recorder, self.assertLogs("millrace", "WARNING"):
            for version in range(5, 8):
                recorder.step(self.ROWS, version=version)
            recorder.close()
        self.assertEqual((recorder.recorded, recorder.dropped, self.cluster.connections), (2, 1, 4))
        self.assertEqual([batch["assembled_version"] for batch in self.cluster.read("batches")], [6, 7])

    def test_should_not_take_a_run_back_from_another_recorder(self):
        self.cluster.failures = [TakenOver("somebody else's by now")]
        with self.recorder() as recorder, self.assertLogs("millrace", "WARNING"):
            recorder.step(self.ROWS, version=5)
            recorder.step(self.ROWS, version=6)
            recorder.close()
        self.assertEqual((recorder.dropped, self.cluster.connections), (2, 1))

    def test_should_refuse_a_run_that_has_a_learner_and_a_row_without_an_advantage(self):
        with self.assertRaisesRegex(Refused, "has no advantage"):
            self.recorder(strict=True).step([ROW], version=0)
        self.cluster.topics["batches"][0].append(b"a learner's")
        with self.assertRaisesRegex(Refused, "run r has batches that no recorder wrote"):
            self.recorder(strict=True).step(self.ROWS, version=5)

    def test_should_want_one_place(self):
        for places in ({}, {"run_id": "r", "directory": "d"}):
            with self.assertRaisesRegex(Refused, "either bootstrap_servers and run_id, or directory"):
                Recorder(**places)


if __name__ == "__main__":
    unittest.main()
