"""The hooks for other trainers, with doubles of exactly the fields that they use."""

import json
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numpy as np

from millrace_rl import Recorder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import recorder_hooks


class Strict(dict):
    """Has no field that nobody reads."""

    def __init__(self, **fields):
        super().__init__(fields)
        self.unread = set(fields)

    def __getitem__(self, name):
        self.unread.discard(name)
        return super().__getitem__(name)


class HooksTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)
        self.recorder = Recorder(directory=self.folder, strict=True)
        self.addCleanup(self.recorder.close)

    def lines(self, version):
        return [json.loads(line) for line in (self.folder / f"{version}.jsonl").read_text().splitlines()]

    def test_should_record_an_update_of_verl(self):
        given = Strict(response_mask=np.array([[1, 1, 0], [1, 0, 1]]), responses=np.array([[5, 6, 0], [7, 8, 9]]), prompts=np.array([[0, 3], [1, 2]]),
                       attention_mask=np.array([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]), token_level_scores=np.array([[0, 1.5, 0], [0, 0, -1.0]]),
                       advantages=np.array([[0.5, 0.5, 0], [-0.5, 0, -0.5]]), rollout_log_probs=np.full((2, 3), -1.0),
                       old_log_probs=np.full((2, 3), -0.5))
        batch = types.SimpleNamespace(batch=given, non_tensor_batch=Strict(uid=np.array(["a", "b"], object)), meta_info=Strict(temperature=0.7))

        class Trainer:
            global_steps = 1

            def _update_actor(self, batch):
                return types.SimpleNamespace(meta_info={"metrics": {"actor/pg_loss": [0.25, 0.75], "actor/grad_norm": float("nan")}})

        out = recorder_hooks.of_verl(Trainer, self.recorder)()._update_actor(batch)
        self.assertIn("metrics", out.meta_info)
        self.assertEqual(given.unread | batch.non_tensor_batch.unread | batch.meta_info.unread, set())
        first, second = self.lines(0)
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["reward"], first["group"], first["temperature"]),
                         ([1, 1], [3], [5, 6], 1.5, "a", 0.7))
        self.assertEqual((second["prompt_tokens"], second["advantages"], second["behavior_log_probs"], second["proximal_log_probs"]),
                         ([1, 2], [-0.5, 0, -0.5], [-1, -1, -1], [-0.5, -0.5, -0.5]))
        self.assertEqual(json.loads((self.folder / "0.figures.json").read_text()), {"actor/pg_loss": 0.5})

    def test_should_record_a_rollout_of_slime(self):
        given = Strict(tokens=[np.array([1, 2, 3]), np.array([1, 4, 5, 6])], response_lengths=[2, 3], sample_indices=[6, 8], truncated=[0, 1],
                       loss_masks=[np.array([1, 1]), np.array([1, 0, 1])], raw_reward=[1.0, 0.0],
                       advantages=[np.array([0.5, 0.5]), np.array([-0.5, 0, -0.5])], log_probs=[np.full(2, -0.5), np.full(3, -0.25)],
                       rollout_log_probs=[np.full(2, -1.0), np.full(3, -2.0)])
        record = recorder_hooks.of_slime(self.recorder)
        record(types.SimpleNamespace(n_samples_per_prompt=2), 4, given)
        record(types.SimpleNamespace(), 5, {"tokens": []})  # of a stage that has no log-probs
        self.assertEqual(given.unread, set())
        first, second = self.lines(4)
        self.assertEqual((first["id"], first["group"], first["prompt_tokens"], first["response_tokens"], first["finish_reason"], first["reward"]),
                         ("6", "3", [1], [2, 3], "stop", 1.0))
        self.assertEqual((second["group"], second["mask"], second["advantages"], second["proximal_log_probs"], second["behavior_log_probs"]),
                         ("4", [1, 0, 1], [-0.5, 0, -0.5], [-0.25] * 3, [-2] * 3))
        self.assertFalse((self.folder / "5.jsonl").exists())


if __name__ == "__main__":
    unittest.main()
