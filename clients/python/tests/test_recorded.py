"""Tables of a run, as a launcher or somebody else wrote them."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from millrace_rl import MillraceError, NoSuchRun, Refused, Run

try:
    import pyarrow
    from pyarrow import parquet
except ModuleNotFoundError:
    pyarrow = None

LAUNCHER = """#!{python}
import pathlib, shutil, sys
assert sys.argv[1:3] == ["export", "--archive"] and sys.argv[4:6] == ["--parquet", "--to"], sys.argv
if not pathlib.Path(sys.argv[3], "whole").exists():
    sys.exit("millrace: the archive is not as it was exported")
for file in pathlib.Path(sys.argv[3]).glob("*.parquet.written"):
    shutil.copy(file, pathlib.Path(sys.argv[6], file.stem))
"""


class RecordedTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def launcher(self):
        launcher = self.folder / "launcher"
        launcher.write_text(LAUNCHER.format(python=sys.executable))
        launcher.chmod(0o755)
        return launcher

    def tables(self, folder, suffix=""):
        folder.mkdir()
        rollouts = {"rollout_id": ["a/0", "a/1"], "reward": [0.1, 1.0], "batch_id": pyarrow.array([None, 3], pyarrow.int64()),
                    "response_tokens": pyarrow.array([[7, 8], []], pyarrow.list_(pyarrow.int32())), "reason": ["unscored", None],
                    "reward_components": pyarrow.array([[("right", 1.0)], None], pyarrow.map_(pyarrow.string(), pyarrow.float64()))}
        parquet.write_table(pyarrow.table(rollouts), folder / f"rollouts.parquet{suffix}")
        tokens = {"rollout_id": ["a/0", "a/0"], "behavior_log_prob": pyarrow.array([-0.1, None], pyarrow.float32())}
        parquet.write_table(pyarrow.table(tokens), folder / f"tokens.parquet{suffix}")
        parquet.write_table(pyarrow.table({"batch_id": [3], "version": [4]}), folder / f"steps.parquet{suffix}")

    def test_should_say_what_a_folder_must_hold(self):
        with self.assertRaisesRegex(NoSuchRun, "holds no run: it has no config.yaml .* give a folder such as runs/my-run"):
            Run.open(self.folder)

    @unittest.skipIf(pyarrow is None, "pyarrow is not installed")
    def test_should_read_tables_as_they_were_written(self):
        self.tables(self.folder / "tables")
        run = Run.open(self.folder / "tables")
        rollouts = run.rollouts()
        self.assertEqual((rollouts.rows, rollouts["rollout_id"].tolist(), rollouts["reward"].tolist()), (2, ["a/0", "a/1"], [0.1, 1.0]))
        np.testing.assert_array_equal(rollouts["batch_id"], [np.nan, 3])
        self.assertEqual([tokens.tolist() for tokens in rollouts["response_tokens"]], [[7, 8], []])
        self.assertEqual((rollouts["reason"].tolist(), rollouts["reward_components"].tolist()), (["unscored", None], [{"right": 1.0}, None]))
        self.assertEqual(run.tokens()["behavior_log_prob"].dtype, np.float32)
        np.testing.assert_array_equal(run.tokens()["behavior_log_prob"], np.array([-0.1, np.nan], np.float32))
        self.assertEqual(list(run.steps(fields=["version"])), ["version"])
        with self.assertRaisesRegex(Refused, "steps have no column loss; they have batch_id, version"):
            run.steps(fields=["version", "loss"])
        self.assertEqual(sorted(os.listdir(run.folder)), ["rollouts.parquet", "steps.parquet", "tokens.parquet"])

    @unittest.skipIf(pyarrow is None, "pyarrow is not installed")
    def test_should_export_an_archive_and_leave_nothing(self):
        archive = self.folder / "archive"
        self.tables(archive, ".written")
        (archive / "index.json").write_text("{}")
        with self.assertRaisesRegex(MillraceError, "cannot be read: millrace: the archive is not as it was exported"):
            Run.open(archive, millrace=self.launcher())
        (archive / "whole").touch()
        with mock.patch.dict(os.environ, {"MILLRACE": str(self.launcher())}):
            run = Run.open(archive)
        self.assertEqual(run.rollouts().rows, 2)
        tables = run.folder
        del run
        self.assertFalse(tables.exists())

    @unittest.skipIf(pyarrow is None, "pyarrow is not installed")
    def test_should_say_how_to_name_the_launcher(self):
        (self.folder / "config.yaml").touch()
        with self.assertRaisesRegex(MillraceError, "nowhere/millrace does not start .* with millrace= or MILLRACE"):
            Run.open(self.folder, millrace="nowhere/millrace")


if __name__ == "__main__":
    unittest.main()
