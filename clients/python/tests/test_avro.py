"""Bytes that Java wrote are read, and written again as they were: every record, in every version that its schema has had."""

import json
import struct
import unittest
from pathlib import Path

import numpy as np

from millrace_rl.avro import PACKED, Schema, compiled_reader
from millrace_rl.avro_writer import compiled_writer, packed_bytes
from millrace_rl.errors import Malformed, Refused

ROOT = Path(__file__).resolve().parents[3]
HISTORY = ROOT / "schemas/src/test/resources/history"
AVRO = ROOT / "schemas/src/main/avro"


def pinned():
    return [(path, Schema(path.read_text()), bytes.fromhex(path.with_suffix(".hex").read_text().replace("\n", "")))
            for path in sorted(HISTORY.glob("*/*.avsc"))]


def newest(name):
    path = max(HISTORY.glob(f"{name}/v*.avsc"), key=lambda p: int(p.stem[1:]))
    return Schema(path.read_text()), bytes.fromhex(path.with_suffix(".hex").read_text().replace("\n", ""))


def plain(value):
    """As the JSON next to the bytes has it: bytes as the characters of their numbers."""
    if isinstance(value, (np.ndarray, memoryview)):
        return bytes(value).decode("latin-1")
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


class PinnedRecordsTest(unittest.TestCase):
    def test_should_read_what_java_wrote_in_every_version_of_every_schema(self):
        self.assertGreaterEqual(len(pinned()), 42)
        for path, schema, data in pinned():
            with self.subTest(str(path.relative_to(HISTORY))):
                record = plain(compiled_reader(schema)(data, 5))
                self.assertEqual(record, without_branches(json.loads(path.with_suffix(".json").read_text()), record))

    def test_should_write_it_again_byte_for_byte(self):
        for path, schema, data in pinned():
            with self.subTest(str(path.relative_to(HISTORY))):
                self.assertEqual(data[5:], compiled_writer(schema)(compiled_reader(schema)(data, 5)))

    def test_should_find_the_same_types_in_the_files_that_the_schemas_are_made_of(self):
        known = {}
        files = [*sorted(AVRO.glob("parts/*.avsc")), *sorted(AVRO.glob("*.avsc"))]
        schemas = {path.stem: Schema(path.read_text(), known) for path in files}
        for name in ("Rollout", "Trajectory", "LearnerBatch", "PolicyVersion", "Score", "TrainingStep"):
            with self.subTest(name):
                _, data = newest(name)
                record = compiled_reader(schemas[name])(data, 5)
                self.assertEqual(data[5:], compiled_writer(schemas[name])(record))

    def test_should_give_vectors_as_views_of_the_records_bytes(self):
        schema, data = newest("Rollout")
        record = compiled_reader(schema)(data, 5)
        tokens = record["response_tokens"]
        self.assertEqual(tokens.dtype, np.dtype("<i4"))
        self.assertFalse(tokens.flags.owndata)
        self.assertTrue(np.shares_memory(tokens, np.frombuffer(data, np.uint8)))
        self.assertFalse(tokens.flags.writeable)

    def test_should_pass_over_the_fields_that_are_not_wanted_and_say_none_for_those_that_are_not_there(self):
        schema, data = newest("Trajectory")
        record = compiled_reader(schema, ("mask", "reward", "of_tomorrow"))(data, 5)
        whole = compiled_reader(schema)(data, 5)
        self.assertEqual(set(record), {"mask", "reward", "of_tomorrow"})
        self.assertEqual(record["reward"], whole["reward"])
        self.assertIsNone(record["of_tomorrow"])


def without_branches(value, like):
    """The JSON names the branch of a union where it is not null; the record does not."""
    if isinstance(value, dict) and len(value) == 1 and not (isinstance(like, dict) and set(value) == set(like)):
        return without_branches(next(iter(value.values())), like)
    if isinstance(value, dict) and isinstance(like, dict):
        return {key: without_branches(each, like.get(key)) for key, each in value.items()}
    if isinstance(value, list) and isinstance(like, list) and len(value) == len(like):
        return [without_branches(each, of) for each, of in zip(value, like)]
    return value


class MalformedRecordsTest(unittest.TestCase):
    def test_should_refuse_a_record_that_is_cut_off_anywhere(self):
        for name in ("Rollout", "Trajectory", "LearnerBatch", "PolicyVersion"):
            schema, data = newest(name)
            read = compiled_reader(schema)
            for end in range(5, len(data)):
                with self.assertRaises(Malformed, msg=f"{name} cut at {end}"):
                    read(data[:end], 5)

    def test_should_refuse_bytes_that_are_left_over(self):
        schema, data = newest("Outcome")
        with self.assertRaisesRegex(Malformed, "no Outcome: it ends at byte"):
            compiled_reader(schema)(data + b"\0", 5)

    def test_should_end_on_any_byte_that_was_changed(self):
        random = np.random.default_rng(7)
        for name in ("Rollout", "Trajectory", "LearnerBatch"):
            schema, data = newest(name)
            read = compiled_reader(schema)
            for _ in range(500):
                spoilt = bytearray(data)
                spoilt[random.integers(5, len(data))] = random.integers(0, 256)
                try:
                    read(bytes(spoilt), 5)
                except Malformed:
                    pass  # the one error there is; what is still a record is read

    def test_should_not_believe_a_length_beyond_the_end(self):
        schema = Schema({"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "long"}}]})
        with self.assertRaisesRegex(Malformed, "no R"):
            compiled_reader(schema)(b"\xfe\xff\xff\xff\x0f\x02")


class WriterTest(unittest.TestCase):
    schema = Schema({"type": "record", "name": "R", "fields": [
        {"name": "count", "type": "int"},
        {"name": "tokens", "type": {"type": "bytes", "logicalType": "packed-int32"}},
        {"name": "log_probs", "type": ["null", {"type": "bytes", "logicalType": "packed-float32"}], "default": None},
        {"name": "why", "type": {"type": "enum", "name": "Why", "symbols": ["STOP", "LENGTH"]}, "default": "STOP"},
    ]})

    def refused(self, sentence, **record):
        with self.assertRaisesRegex(Refused, sentence):
            compiled_writer(self.schema)({"count": 1, "tokens": [1], **record})

    def test_should_pack_lists_arrays_and_what_is_packed_already(self):
        expected = struct.pack("<2i", 4, 70_000)
        for value in ([4, 70_000], np.array([4, 70_000]), np.array([4, 70_000], ">i4"), expected, memoryview(expected)):
            self.assertEqual(packed_bytes(value, "packed-int32", "tokens"), expected)
        self.assertEqual(packed_bytes([], "packed-float32", "x"), b"")

    def test_should_name_what_it_refuses(self):
        self.refused(r"count must be a whole number from -2147483648 to 2147483647, not 1\.5", count=1.5)
        self.refused("count must be a whole number .* not 2147483648", count=1 << 31)
        self.refused("count must be .* not True", count=True)
        self.refused("tokens holds whole numbers, and this is of float64", tokens=[1.5])
        self.refused("tokens holds numbers from -2147483648 to 2147483647", tokens=[1 << 40])
        self.refused(r"tokens is a vector, one number for each token, and this has the shape \(2, 1\)", tokens=[[1], [2]])
        self.refused("why must be one of STOP, LENGTH, not 'STOPPED'", why="STOPPED")
        self.refused("a R has no field wy; its fields are count", wy="STOP")
        with self.assertRaisesRegex(Refused, "a R needs the field tokens"):
            compiled_writer(self.schema)({"count": 1})

    def test_should_fill_in_defaults(self):
        read = compiled_reader(self.schema)(compiled_writer(self.schema)({"count": -3, "tokens": [5]}))
        self.assertEqual((read["count"], list(read["tokens"]), read["log_probs"], read["why"]), (-3, [5], None, "STOP"))

    def test_should_write_numbers_to_the_ends_of_their_range(self):
        schema = Schema({"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]})
        for n in (0, -1, 1, 63, 64, -64, -65, (1 << 63) - 1, -(1 << 63)):
            self.assertEqual(compiled_reader(schema)(compiled_writer(schema)({"n": n}))["n"], n)

    def test_should_know_every_packed_type_that_the_schemas_have(self):
        used = {part.split('"')[1] for path in AVRO.rglob("*.avsc") for part in path.read_text().split('"logicalType": ')[1:]}
        self.assertEqual(used, set(PACKED))


if __name__ == "__main__":
    unittest.main()
