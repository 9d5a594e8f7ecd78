"""Records that compiled code walks are the records that Python reads."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from millrace_rl import rows
from millrace_rl.avro import Schema, compiled_reader
from millrace_rl.avro_writer import compiled_writer
from millrace_rl.columns import ColumnReader
from millrace_rl.rows import NotSideBySide
from millrace_rl.walker import NotCompiled, Walker, places_of
from test_avro import newest
from test_columns import SideBySideTest, entry

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def build(folder):
    """As pip does it."""
    copy = pathlib.Path(folder) / "source"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so", "__pycache__", "tests"))
    done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--build-lib", folder], cwd=copy, capture_output=True, text=True)
    found = list(pathlib.Path(folder).glob("millrace_rl/_records*"))
    if not found:
        raise unittest.SkipTest(f"the compiled reader cannot be built here: {done.stderr[-500:]}")
    spec = importlib.util.spec_from_file_location("millrace_rl._records", found[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WalkerTest(SideBySideTest):
    reader = Walker

    @classmethod
    def setUpClass(cls):
        cls.before = rows.compiled
        with tempfile.TemporaryDirectory() as folder:
            rows.compiled = build(folder)

    @classmethod
    def tearDownClass(cls):
        rows.compiled = cls.before

    def test_should_give_the_columns_that_numpy_gives_of_any_field_of_records_of_any_kind(self):
        schema = Schema({"type": "record", "name": "R", "fields": [
            {"name": "f", "type": ["null", "float"]}, {"name": "flag", "type": "boolean"},
            {"name": "m", "type": {"type": "map", "values": "string"}},
            {"name": "list", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
                {"name": "n", "type": "long"}, {"name": "inner", "type": {"type": "array", "items": "int"}}]}}},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}}]})
        random, write = np.random.default_rng(1), compiled_writer(schema)
        values = [write(dict(
            f=None if i % 3 else 1.5 * i, flag=bool(i % 2), m={str(k): "v" * k for k in range(i % 4)},
            list=[dict(n=int(random.integers(-9, 1 << 40)), inner=[1] * int(random.integers(0, 3))) for _ in range(i % 5)], e="XY"[i % 2]))
            for i in range(50)]
        data, ends = b"".join(values), np.cumsum(list(map(len, values)))
        begins = np.concatenate([[0], ends[:-1]])
        wanted = "f", "e", "list.n"
        walked, read = (kind(schema, schema.root, wanted).read(data, begins, ends) for kind in (Walker, ColumnReader))
        self.assertEqual(walked.numbers("f").tolist(), [0 if i % 3 else 1.5 * i for i in range(50)])
        for name in wanted:
            self.assertEqual(walked.numbers(name).tolist(), read.numbers(name).tolist(), name)
        for some in (slice(3, 9), [4, 1, 40]):
            at = np.arange(50)[some]
            self.assertEqual(walked.of(at).numbers("list.n").tolist(), read.of(at).numbers("list.n").tolist())
        for unlike in (("flag",), ("m",), ("list",), ("list.inner",)):
            with self.assertRaises(NotCompiled):
                Walker(schema, schema.root, unlike)

    def test_should_find_where_items_begin_and_leave_several_blocks_to_python(self):
        schema, _ = newest("LearnerBatch")
        random = np.random.default_rng(6)
        value = compiled_writer(schema)(dict(
            run_id="r", epoch=0, policy_id="p", batch_id=3, assembled_version=0, entries=[entry(random) for _ in range(100)], stages=[],
            trained_tokens=1, step_scale=1.0, staleness_mean=0.0, staleness_max=0, assembled_at_ms=0))
        placed = "LearnerBatch.entries",
        by_python, by_walker = compiled_reader(schema, placed=placed), compiled_reader(schema, placed=placed, places_of=places_of)
        one, other = by_python(value, 0, False), by_walker(value, 0, False)
        self.assertEqual(one.pop("entries"), other.pop("entries").tolist())
        self.assertEqual(one, other)
        numbers = Schema({"type": "record", "name": "R", "fields": [{"name": "n", "type": {"type": "array", "items": "long"}}]})
        by_python, by_walker = compiled_reader(numbers, placed=("R.n",)), compiled_reader(numbers, placed=("R.n",), places_of=places_of)
        for blocks in ("0402040200", "040204020200", "0302040200", "00", "0402", "04020402", "ff"):
            found = []
            for read in (by_python, by_walker):
                try:
                    found.append(list(read(bytes.fromhex(blocks))["n"]))
                except Exception as e:
                    found.append(str(e))
            self.assertEqual(found[0], found[1], blocks)

    def test_should_read_nothing_behind_a_records_end(self):
        schema = Schema({"type": "record", "name": "R", "fields": [{"name": "b", "type": "bytes"}]})
        walker = Walker(schema, schema.root, ("b",))
        two = b"\x04ab\x02c"
        self.assertEqual(walker.read(two, np.array([0, 3]), np.array([3, 5])).vectors("b"), [b"ab", b"c"])
        for begins, ends in (([0, 3], [2, 5]), ([0, 3], [3, 6]), ([0, 4], [3, 3]), ([-1, 3], [3, 5]), ([0, 2], [3, 5])):
            with self.assertRaises(NotSideBySide):
                walker.read(two, np.array(begins), np.array(ends))

    def test_should_gather_ranges_of_the_data_only(self):
        def gathered(*edges):
            return bytes(rows.compiled.gather(b"abcdef", *[np.array(each, np.int64) for each in edges]))

        self.assertEqual((gathered([1, -1, 4], [3, -1, 6]), gathered([0, 2], [1, 3], [3, 5], [5, 6])), (b"bcef", b"adecf"))
        for edges in (([0], [9]), ([0], [2, 3]), ([2], [1]), ([-2], [-2]), ([-1], [2]), ([0],), (), ([0], [1], [0])):
            with self.assertRaises(ValueError):
                gathered(*edges)


if __name__ == "__main__":
    unittest.main()
