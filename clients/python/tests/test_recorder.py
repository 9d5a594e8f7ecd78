"""What a recorder writes, drops and counts."""

import json
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import numpy as np

from millrace_rl import Recorder, Refused

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
            self.assertEqual(recorder._pending[0].rows[0]["behavior_log_probs"].tolist(), [-1.0, -1.0])
            recorder._timeout_s = 0
            recorder.close()

    def test_should_drop_count_and_warn_once_instead_of_raising(self):
        for bad, of in (({"behaviour_log_probs": [0]}, "unknown field behaviour_log_probs"), ({"mask": [1, 2, 1]}, "mask must be 0 or 1"),
                        ({"behavior_log_probs": [-1.0, 0.0, float("nan")]}, r"behavior_log_probs\[2\] is nan"),
                        ({"behavior_log_probs": [0.5, 0, 0]}, r"behavior_log_probs\[0\] is 0.5"),
                        ({"entropies": [1.0]}, "entropies has the shape"), ({"reward": float("nan")}, "reward must be finite"),
                        ({"version": 8}, "sampled by version 8, and the step starts at version 7"), ({"reward": None}, "reward is missing"),
                        ({"response_tokens": [0.5, 1, 2]}, "whole numbers"), ({"group": 3}, "group must be a text")):
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
        with mock.patch.object(recorder._sink, "write", side_effect=lambda step: may_write.wait(30) and write(step)), \
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
        with mock.patch.object(recorder._sink, "write", side_effect=lambda step: threading.Event().wait(1)), \
                self.assertLogs("millrace", "WARNING") as logs:
            recorder.step([ROW], version=0)
            recorder.close()
        self.assertEqual(recorder.dropped, 1)
        self.assertIn("not written within 0.05 s", logs.output[0])

    def test_should_record_the_example(self):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
        self.addCleanup(sys.path.pop, 0)
        import record_grpo
        with self.recorder(strict=True) as recorder, mock.patch("builtins.print"):
            record_grpo.train(recorder, steps=3, lag=1, groups=2, samples=2)
        self.assertEqual([line["version"] for line in self.lines(2)], [1] * 4)
        for line in self.lines(0):  # on policy, so the engines agree
            np.testing.assert_allclose(line["behavior_log_probs"], line["proximal_log_probs"], atol=1e-5)


if __name__ == "__main__":
    unittest.main()
