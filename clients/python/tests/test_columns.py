"""Records read side by side are the records read one by one."""

import unittest

import numpy as np

from millrace_rl.avro import Schema, compiled_reader
from millrace_rl.avro_writer import compiled_writer
from millrace_rl.batch_log import _COLUMNS_OF_ENTRY, _COLUMNS_OF_TRAJECTORY, _OF_TRAJECTORY
from millrace_rl.columns import ColumnReader
from millrace_rl.rows import ABSENT, ALL_FIT, JoinedRows, NotSideBySide, SingleRows, same_texts
from test_avro import HISTORY, newest

#: texts are looked into when they are asked for
_WITHOUT_TEXTS = tuple(name for name in _OF_TRAJECTORY if not name.endswith("_id"))


def some(random, of):
    return None if random.random() < 0.5 else of()


def trajectory(random):
    """A record of random lengths, with optional fields present or absent."""
    tokens, prompt = int(random.integers(0, 200)), int(random.integers(0, 40))

    def floats(n=tokens):
        return random.random(n, np.float32)

    def whole(n, most=1 << 31):
        return random.integers(0, most, n)

    def coordinates():
        return dict(topic="t" * int(random.integers(0, 200)), partition=int(random.integers(0, 300)), offset=int(random.integers(0, 1 << 50)))

    def usage():
        return dict(prompt_tokens=int(random.integers(0, 1 << 20)), completion_tokens=3, cached_tokens=some(random, lambda: 70))

    def details():
        return dict(finish_reason=some(random, lambda: "STOP"), tool_name=some(random, lambda: "ü"), error=None,
                    started_at_ms=some(random, lambda: 1 << 40), first_token_at_ms=None, finished_at_ms=None, usage=some(random, usage))

    cuts = np.unique(random.integers(0, tokens + 1, int(random.integers(0, 4)))).tolist()
    edges = sorted({0, tokens, *cuts})
    spans = [dict(version=int(random.integers(0, 1 << 20)), start=a, end=b) for a, b in zip(edges, edges[1:])]
    support = dict(counts=whole(tokens, 9), token_ids=whole(9))
    return dict(
        run_id="r", epoch=int(random.integers(0, 3)), policy_id="policy", rollout_id=f"g-{random.integers(0, 1 << 30)}/ü", group_id="g",
        ordinal=int(random.integers(0, 1 << 40)), sample_index=1, group_size=8, rollout_source=coordinates(), score_source=coordinates(),
        prompt_tokens=whole(prompt), response_tokens=whole(tokens), mask=random.integers(0, 2, tokens), temperature=float(random.random()),
        version_spans=spans, behavior_log_probs=floats(), old_log_probs=some(random, floats), proximal_log_probs=floats(),
        proximal_version=int(random.integers(-5, 1 << 62)), reward=0.5, finish_reason="STOP", finished_at_ms=1 << 41, scored_at_ms=0,
        reference_log_probs=some(random, floats), teacher_log_probs=some(random, floats),
        reward_components={str(i): 0.5 for i in range(int(random.integers(0, 5)))}, reward_source=some(random, coordinates),
        credit=some(random, lambda: dict(token_level_advantages=some(random, floats), greedy_reward=some(random, lambda: 1.5))),
        turns=some(random, lambda: [dict(speaker="POLICY", start=i, end=i + 1, details=some(random, details))
                                    for i in range(int(random.integers(0, 4)))]),
        task_key=some(random, lambda: "k"), kept_tokens=some(random, lambda: support), proximal_entropies=some(random, floats))


def entry(random):
    tokens = int(random.integers(0, 100))
    return dict(
        rollout_id=f"g/{random.integers(0, 1 << 40)}", group_id="g", partition=int(random.integers(0, 300)), offset=int(random.integers(0, 1 << 50)),
        rollout_partition=0, rollout_offset=int(random.integers(0, 1 << 20)), reward=float(random.random()), advantage=-0.25, oldest_version=7,
        trained_tokens=tokens, mask=some(random, lambda: random.integers(0, 2, tokens)), masked_by=some(random, lambda: "staleness"),
        credit=some(random, lambda: dict(token_level_advantages=some(random, lambda: random.random(tokens, np.float32)))),
        weights=some(random, lambda: random.random(tokens, np.float32)))


class SideBySideTest(unittest.TestCase):
    reader = ColumnReader

    def side_by_side(self, schema, values, wanted):
        data = b"".join(values)
        ends = np.cumsum([len(value) for value in values])
        return self.reader(schema, schema.root, wanted).read(data, np.concatenate([[0], ends[:-1]]), ends)

    def assert_equal_rows(self, one, other, numbers, vectors):
        self.assertEqual(len(one), len(other))
        for name in numbers:
            self.assertEqual(one.numbers(name).tolist(), other.numbers(name).tolist(), name)
        for name in vectors:
            self.assertEqual(list(map(bytes_of, one.vectors(name))), list(map(bytes_of, other.vectors(name))), name)
            self.assertEqual(one.lengths(name).tolist(), other.lengths(name).tolist(), name)
            self.assertEqual(one.there(name).tolist(), other.there(name).tolist(), name)
            lengths = np.maximum(one.lengths(name), 0)
            expected = ABSENT if (one.lengths(name) < 0).any() else ALL_FIT
            self.assertEqual((one.unlike(name, lengths, 0), other.unlike(name, lengths, 0)), (expected, expected), name)
            for row in range(0, len(one), 97):
                wrong = lengths.copy()
                wrong[row::2] += 1
                expected = ABSENT if expected == ABSENT else row
                self.assertEqual((one.unlike(name, wrong, 0), other.unlike(name, wrong, 0)), (expected, expected), name)

    trajectory_numbers = [name for name in _COLUMNS_OF_TRAJECTORY
                          if name in ("epoch", "temperature", "proximal_version") or name.startswith("version_spans")]
    trajectory_vectors = [name for name in _COLUMNS_OF_TRAJECTORY if name.endswith(("tokens", "probs", "mask", "entropies")) and name != "kept_tokens"]

    def test_should_give_what_one_by_one_gives_of_trajectories_of_any_kind(self):
        schema, _ = newest("Trajectory")
        write, read, random = compiled_writer(schema), compiled_reader(schema, _OF_TRAJECTORY), np.random.default_rng(5)
        for count in (1, 2, 300):
            values = [write(trajectory(random)) for _ in range(count)]
            columns, single = self.side_by_side(schema, values, _COLUMNS_OF_TRAJECTORY), SingleRows([read(value, 0, False) for value in values])
            self.assert_equal_rows(columns, single, self.trajectory_numbers, self.trajectory_vectors)
            self.assertEqual(columns.there("kept_tokens").tolist(), single.there("kept_tokens").tolist())
            self.assertEqual(columns.texts("rollout_id"), single.texts("rollout_id"))
            for one, other in zip(columns.packed_texts("rollout_id"), single.packed_texts("rollout_id")):
                self.assertEqual(one.tolist(), other.tolist())
            both = "prompt_tokens", "response_tokens"
            self.assertEqual(columns.joined(both, "<i4").tolist(), single.joined(both, "<i4").tolist())
            self.assertTrue(columns.joined(both, "<i4").flags.writeable)
            rows = random.permutation(count)[:7]
            self.assert_equal_rows(columns.of(rows), single.of(rows), self.trajectory_numbers, self.trajectory_vectors)
            joined = JoinedRows([columns, single]).of(rows + rows % 2 * count)
            self.assert_equal_rows(joined, single.of(rows), self.trajectory_numbers, self.trajectory_vectors)
            self.assertEqual((columns.all_are("run_id", b"r"), columns.all_are("run_id", b"q"), columns.all_are("run_id", b"rr")), (True, False, False))
            self.assertEqual(joined.all_are("policy_id", b"policy"), True)
            self.assertTrue(same_texts(columns, columns, "rollout_id") and same_texts(columns, single, "rollout_id"))
            others = np.roll(np.arange(count), 1)
            self.assertEqual(same_texts(columns, columns.of(others), "rollout_id"), count == 1)
            self.assertEqual(same_texts(single, columns.of(others), "rollout_id"), count == 1)
            self.assertFalse(same_texts(columns, columns.of(rows[1:]), "rollout_id") and count > 1)
            self.assertEqual(columns.unlike("response_tokens", columns.lengths("response_tokens") >> 2, 2), ALL_FIT)
            self.assertEqual(columns.unlike("response_tokens", columns.lengths("response_tokens") >> 1, 1), ALL_FIT)

    def test_should_give_what_one_by_one_gives_of_every_version_that_the_schema_has_had(self):
        for path in sorted(HISTORY.glob("Trajectory/*.avsc")):
            with self.subTest(path.stem):
                schema = Schema(path.read_text())
                data = bytes.fromhex(path.with_suffix(".hex").read_text().replace("\n", ""))[5:]
                single = SingleRows([compiled_reader(schema, _OF_TRAJECTORY)(data, 0, False)] * 40)
                self.assert_equal_rows(self.side_by_side(schema, [data] * 40, _COLUMNS_OF_TRAJECTORY), single, self.trajectory_numbers,
                                       self.trajectory_vectors)

    def test_should_find_the_entries_of_a_batch(self):
        schema, _ = newest("LearnerBatch")
        random = np.random.default_rng(6)
        entries = [entry(random) for _ in range(100)]
        value = compiled_writer(schema)(dict(
            run_id="r", epoch=0, policy_id="p", batch_id=3, assembled_version=0, entries=entries, stages=[], trained_tokens=1, step_scale=1.0,
            staleness_mean=0.0, staleness_max=0, assembled_at_ms=0))
        whole, placed = compiled_reader(schema)(value, 0, False), compiled_reader(schema, placed=("LearnerBatch.entries",))(value, 0, False)
        places = np.array(placed.pop("entries"))
        single = SingleRows(whole.pop("entries"))
        self.assertEqual(placed, whole)
        columns = self.reader(schema, schema.named["BatchEntry"], _COLUMNS_OF_ENTRY).read(value, places[:-1], places[1:])
        self.assert_equal_rows(columns, single, ("partition", "offset", "reward", "advantage"), ("mask", "weights", "credit.token_level_advantages"))
        self.assertEqual((columns.texts("rollout_id"), columns.texts("group_id")), (single.texts("rollout_id"), single.texts("group_id")))

    def test_should_leave_what_is_no_record_to_the_reader_of_single_ones(self):
        schema, _ = newest("Trajectory")
        write, read, random = compiled_writer(schema), compiled_reader(schema, _WITHOUT_TEXTS), np.random.default_rng(7)
        values = [write(trajectory(random)) for _ in range(8)]
        refused = 0
        for _ in range(1500):
            spoilt = bytearray(values[0])
            spoilt[random.integers(0, len(spoilt))] = random.integers(0, 256)
            try:
                columns = self.side_by_side(schema, [*values[1:], bytes(spoilt)], _COLUMNS_OF_TRAJECTORY)
            except NotSideBySide:
                refused += 1
                continue
            # what is read side by side is a record, and the same one
            single = SingleRows([read(value, 0, False) for value in [*values[1:], bytes(spoilt)]])
            self.assert_equal_rows(columns, single, self.trajectory_numbers, self.trajectory_vectors)
        self.assertGreater(refused, 10)
        with self.assertRaises(NotSideBySide):
            self.side_by_side(schema, [*values[1:], values[0][:-1]], _COLUMNS_OF_TRAJECTORY)

    def test_should_read_numbers_to_the_ends_of_their_range(self):
        schema = Schema({"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]})
        numbers = [0, -1, 1, 63, 64, -64, -65, 8191, -8193, 1 << 20, (1 << 62) - 1, -(1 << 62)]
        values = [compiled_writer(schema)({"n": n}) for n in numbers]
        self.assertEqual(self.side_by_side(schema, values, ("n",)).numbers("n").tolist(), numbers)


def bytes_of(value):
    return None if value is None else bytes(value)


if __name__ == "__main__":
    unittest.main()
