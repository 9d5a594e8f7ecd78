"""The hooks for other trainers, with doubles of exactly the fields that they use."""

import json
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numpy as np

try:
    import torch
except ImportError:
    torch = None

from millrace_rl import Recorder, Refused

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

    def get(self, name, default=None):
        return self[name] if name in self else default


class Tensor(list):
    """As of torch, with the methods that are called."""

    def __getitem__(self, at):
        return Tensor(list.__getitem__(self, at))

    def detach(self):
        return self

    def float(self):
        return self

    def tolist(self):
        return list(self)


def verl_config(calculate_log_probs=True):
    rollout = types.SimpleNamespace(temperature=0.7, calculate_log_probs=calculate_log_probs)
    return types.SimpleNamespace(actor_rollout_ref=types.SimpleNamespace(rollout=rollout))


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
        batch = types.SimpleNamespace(batch=given, meta_info=Strict(temperature=0.7), non_tensor_batch=Strict(
            uid=np.array(["a", "b"], object), min_global_steps=np.array([1, 2], object)))

        class Trainer:
            global_steps, config = 3, verl_config()

            def _update_actor(self, batch):
                return types.SimpleNamespace(meta_info={"metrics": {"actor/pg_loss": [0.25, 0.75], "actor/grad_norm": float("nan")}})

        recorded = recorder_hooks.of_verl(Trainer, self.recorder)()
        out = recorded._update_actor(batch)
        self.assertIn("metrics", out.meta_info)
        self.assertEqual(given.unread | batch.non_tensor_batch.unread | batch.meta_info.unread, set())
        first, second = self.lines(2)
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["reward"], first["group"], first["temperature"]),
                         ([1, 1], [3], [5, 6], 1.5, "a", 0.7))
        self.assertEqual((first["version"], second["version"]), (1, 2))
        self.assertEqual((second["prompt_tokens"], second["advantages"], second["behavior_log_probs"], second["proximal_log_probs"]),
                         ([1, 2], [-0.5, 0, -0.5], [-1, -1, -1], [-0.5, -0.5, -0.5]))
        self.assertEqual(json.loads((self.folder / "2.figures.json").read_text()), {"actor/pg_loss": 0.5})
        recorded.global_steps, batch.non_tensor_batch = 4, Strict(uid=np.array(["a", "b"], object), min_global_steps=np.array([3, None], object))
        recorded._update_actor(batch)
        self.assertNotIn("version", self.lines(3)[0], "an engine that names no version")

    def test_should_record_an_update_of_verl_v1(self):
        class Nested(list):
            def unbind(self):
                return [np.array(row) for row in self]

        held = Strict(responses=Nested([[5, 6], [7, 8, 9]]), prompts=Nested([[3], [1, 2]]), response_mask=Nested([[1, 1], [1, 0, 1]]),
                      rollout_log_probs=Nested([[-1.0] * 2, [-2.0] * 3]), old_log_probs=Nested([[-0.5] * 2, [-0.25] * 3]),
                      advantages=Nested([[0.5, 0.5], [-0.5, 0, -0.5]]), rm_scores=Nested([[0, 1.5], [0, 0, -1.0]]), uid=np.array(["a", "b"], object))
        asked = {}

        def kv_batch_get(**given):
            asked.update(given)
            return held

        class Trainer:
            global_steps, parameter_sync_step, local_trigger_step = 3, 2, 1
            config = verl_config()

            def _update_actor(self, batch, metrics):
                metrics.update({"actor/pg_loss": 0.5, "actor/grad_norm": float("nan")})
                return batch

        batch = types.SimpleNamespace(keys=["a_0_0", "pad", "b_0_0"], partition_id="train", tags=[
            {"min_global_steps": 1}, {"is_padding": True, "min_global_steps": 1}, {"min_global_steps": None}])
        trainer = recorder_hooks.of_verl_v1(Trainer, self.recorder, types.SimpleNamespace(kv_batch_get=kv_batch_get))()
        self.assertIs(trainer._update_actor(batch, metrics={"training/global_step": 3}), batch)
        self.assertEqual((asked["keys"], asked["partition_id"], set(asked["select_fields"]), held.unread),
                         (["a_0_0", "b_0_0"], "train", set(held), set()))
        first, second = self.lines(5)
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["reward"], first["group"], first["version"]),
                         ([1, 1], [3], [5, 6], 1.5, "a", 2))
        self.assertEqual((second["mask"], second["advantages"], second["behavior_log_probs"], second["proximal_log_probs"], second["temperature"]),
                         ([1, 0, 1], [-0.5, 0, -0.5], [-2] * 3, [-0.25] * 3, 0.7))
        self.assertNotIn("version", second)
        self.assertEqual(json.loads((self.folder / "5.figures.json").read_text()), {"actor/pg_loss": 0.5})

    def test_should_refuse_a_trainer_that_computes_no_log_probs(self):
        verl = type("Trainer", (), {"config": verl_config(calculate_log_probs=False)})
        trl = type("Trainer", (), {"use_vllm": True, "vllm_importance_sampling_correction": False})
        for hook, named in ((recorder_hooks.of_verl(verl, None), "calculate_log_probs=True"),
                            (recorder_hooks.of_verl_v1(verl, None, None), "calculate_log_probs=True"),
                            (recorder_hooks.of_trl(trl, None), "vllm_importance_sampling_correction=True")):
            with self.assertRaisesRegex(ValueError, named):
                hook()

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

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_should_record_the_batches_that_trl_generates(self):
        made = Strict(
            prompt_ids=torch.tensor([[0, 3], [1, 2]]), prompt_mask=torch.tensor([[0, 1], [1, 1]]), completion_ids=torch.tensor([[5, 6, 0], [7, 8, 9]]),
            completion_mask=torch.tensor([[1, 1, 0], [1, 1, 1]]), tool_mask=torch.tensor([[1, 1, 1], [1, 0, 1]]), advantages=torch.tensor([0.5, -0.5]),
            sampling_per_token_logps=torch.full((2, 3), -1.0), old_per_token_logps=torch.full((2, 3), -0.5))

        class Trainer:
            model, state = types.SimpleNamespace(training=False), types.SimpleNamespace(global_step=4)
            reward_weights, temperature, num_generations = torch.tensor([1.0, 0.5]), 0.7, 2
            use_vllm = vllm_importance_sampling_correction = True

            def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
                return torch.tensor([[1.0, 1.0], [0.0, float("nan")]])  # a function that does not judge a sample

            def _generate_and_score_completions(self, inputs):
                assert self._calculate_rewards(inputs, None, None, None).shape == (2, 2)
                return made

        trainer = recorder_hooks.of_trl(Trainer, self.recorder)()
        trainer._generate_and_score_completions([])
        self.assertEqual(list(self.folder.iterdir()), [], "an evaluation")
        trainer.model.training = True
        self.assertIs(trainer._generate_and_score_completions([]), made)
        self.assertEqual(made.unread, set())
        first, second = self.lines(4)
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["reward"], first["group"], first["version"]),
                         ([1, 1], [3], [5, 6], 1.5, "4-0", 4))
        self.assertEqual((second["mask"], second["reward"], second["advantage"], second["behavior_log_probs"], second["proximal_log_probs"]),
                         ([1, 0, 1], 0.0, -0.5, [-1] * 3, [-0.5] * 3))

    def test_should_record_the_steps_of_async_trl(self):
        class Sample(types.SimpleNamespace):
            pass

        class Queue:
            samples = [
                Sample(input_ids=[9], old_log_probs=[0.0], group_id=6, model_version=1, metrics={"reward": 0.0}),  # dropped as stale
                *[Sample(input_ids=[1, 5, 6], old_log_probs=[0.0, -1.0, -2.0], group_id=group, model_version=3, metrics={"reward": 1.0})
                  for group in (7, 9)],
                *[Sample(input_ids=[2, 3, 7], old_log_probs=[0.0, 0.0, -3.0], group_id=group, model_version=1, metrics={"reward": 0.0})
                  for group in (8, 10)]]

            def get(self, timeout):
                assert timeout == 5
                return self.samples.pop(0)

            def qsize(self):
                return len(self.samples)

        class Trainer:  # one row of two sequences, the second behind the first, and two places of padding
            accelerator, state = types.SimpleNamespace(sync_gradients=False), types.SimpleNamespace(global_step=4)
            args, rollout_queue = types.SimpleNamespace(weight_sync_steps=2, temperature=0.7, max_staleness=1), Queue()
            model_version = 4

            def get_train_dataloader(self):
                while self.rollout_queue.qsize() > 0:
                    self.rollout_queue.get(timeout=5)

            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
                return model(input_ids=inputs["input_ids"], use_cache=False)["loss"]

        trainer = recorder_hooks.of_async_trl(Trainer, self.recorder)()
        trainer.get_train_dataloader()
        inputs = Strict(input_ids=np.array([[1, 5, 6, 2, 3, 7, 0, 0]]), attention_mask=np.array([[1, 1, 1, 1, 1, 1, 0, 0]]),
                        completion_mask=np.array([[0, 1, 1, 0, 0, 1, 0, 0]]), position_ids=np.array([[0, 1, 2, 0, 1, 2, 0, 0]]),
                        old_log_probs=np.array([[0, -1.0, -2.0, 0, 0, -3.0, 0, 0]]),
                        advantages=np.array([[0.5, 0.5, 0.5, -0.5, -0.5, -0.5, 0, 0]]))
        outputs = Strict(loss=0.25, log_probs=Tensor([[-0.1, -0.2, -9.0, -9.0, -0.3]]))
        for sync in (False, True):
            trainer.accelerator.sync_gradients = sync
            self.assertEqual(trainer.compute_loss(lambda **given: outputs, inputs), 0.25)
        self.assertEqual(inputs.unread | outputs.unread, set())
        self.assertEqual(trainer.rollout_queue.samples, {}, "nothing is remembered for ever")
        lines = self.lines(4)
        self.assertEqual(len(lines), 4)
        self.assertEqual([(line["group"], line["version"], line["reward"], line["temperature"]) for line in lines[:2]],
                         [("7", 4, 1.0, 0.7), ("8", 0, 0.0, 0.7)])
        self.assertEqual([line["group"] for line in lines[2:]], ["9", "10"])
        self.assertEqual([(line["prompt_tokens"], line["response_tokens"], line["mask"], line["advantages"]) for line in lines[2:]],
                         [([1], [5, 6], [1, 1], [0.5, 0.5]), ([2, 3], [7], [1], [-0.5])])
        self.assertEqual([line["behavior_log_probs"] for line in lines[:2]], [[-1, -2], [-3]])
        np.testing.assert_allclose([value for line in lines[:2] for value in line["proximal_log_probs"]], [-0.1, -0.2, -0.3], rtol=1e-6)

    def test_should_join_what_prime_rl_ships_with_what_its_trainer_exports(self):
        exports = self.folder / "token_exports"

        class Sink:
            progress = types.SimpleNamespace(step=3)

            def __init__(self):
                self.pending_batch, self.episode_by_trace = {}, {}

            def add(self, trace_id, tokens, reward, policy):
                trace = types.SimpleNamespace(id=trace_id, reward=reward)
                self.pending_batch[trace_id] = [types.SimpleNamespace(token_ids=tokens, temperatures=[0.9] * len(tokens))]
                self.episode_by_trace[trace_id] = types.SimpleNamespace(
                    traces=[trace], group=types.SimpleNamespace(id="g"), run=types.SimpleNamespace(work=types.SimpleNamespace(policy=policy)))

            def _trace(self, trace_id):
                return next(trace for trace in self.episode_by_trace[trace_id].traces if trace.id == trace_id)

            def process_batch(self):
                for trace_id in ("a", "b"):
                    del self.pending_batch[trace_id], self.episode_by_trace[trace_id]
                return "batch"

        sink = recorder_hooks.of_prime_rl(Sink, self.recorder, exports)()
        sink.add("a", [1, 2, 3], 1.0, types.SimpleNamespace(start=1))
        sink.add("b", [1, 4], 0.0, None)
        sink.add("later", [1, 5], 0.5, None)
        self.assertEqual(sink.process_batch(), "batch")
        sink.record()
        self.assertEqual(self.recorder.recorded, 0, "nothing is exported yet")
        (exports / "step_3").mkdir(parents=True)
        line = dict(token_ids=[1, 2, 3], loss_mask=[False, True, True], rl_weights=[None, None, None], advantages=[0, 0.5, 0.5],
                    inference_logprobs=[0, -1, -2], trainer_logprobs=[0, -0.5, -1], entropy=[0, 1, 2])
        other = {**line, "token_ids": [1, 4], "loss_mask": [False, True], "rl_weights": [0, 1], **{
            name: line[name][:2] for name in ("advantages", "inference_logprobs", "trainer_logprobs", "entropy")}}
        cut = {**other, "token_ids": [9, 9]}
        (exports / "step_3" / "rank_0.jsonl").write_text("\n".join(map(json.dumps, (line, cut))))
        (exports / "step_3" / "rank_1.jsonl").write_text(json.dumps(other))
        (exports / "step_3" / "STABLE").touch()
        sink.record()
        first, second = self.lines(2)
        self.assertEqual((first["group"], first["reward"], first["version"], first["temperature"]), ("g", 1.0, 1, 0.9))
        self.assertEqual((first["mask"], first["prompt_tokens"], first["response_tokens"], first["advantages"]), ([1, 1], [1], [2, 3], [0.5, 0.5]))
        self.assertEqual((first["behavior_log_probs"], first["proximal_log_probs"], first["entropies"]), ([-1, -2], [-0.5, -1], [1, 2]))
        self.assertEqual((second["response_tokens"], second["reward"], "version" in second), ([4], 0.0, False))

    def test_should_record_the_training_data_that_nemo_rl_logs(self):
        logged = []
        logger = types.SimpleNamespace(log_batched_dict_as_jsonl=lambda to_log, filename: logged.append(filename))
        recorder_hooks.of_nemo_rl(logger, self.recorder, num_generations=1)
        data = Strict(token_ids=[[1, 5, 6, 0], [2, 3, 7, 8]], input_lengths=[3, 4], token_loss_mask=[[0, 1, 1, 0], [0, 0, 1, 1]],
                      sample_loss_mask=[1.0, 0.0], rewards=[1.0, 0.0], advantages=[[0.5] * 4, [-0.5] * 4],
                      generation_logprobs=[[0, -1, -2, 0], [0, 0, -3, -4]], prev_logprobs=[[0, -0.5, -1, 0], [0, 0, -2, -3]])
        logger.log_batched_dict_as_jsonl(data, "train_data_step3.jsonl")
        logger.log_batched_dict_as_jsonl({}, "val_data_step3.jsonl")
        self.assertEqual((logged, data.unread), (["train_data_step3.jsonl", "val_data_step3.jsonl"], set()))
        first, second = self.lines(2)
        self.assertEqual((first["group"], first["prompt_tokens"], first["response_tokens"], first["mask"], first["reward"]),
                         ("3-0", [1], [5, 6], [1, 1], 1.0))
        self.assertEqual((first["behavior_log_probs"], first["proximal_log_probs"], first["advantages"]), ([-1, -2], [-0.5, -1], [0.5, 0.5]))
        self.assertEqual((second["group"], second["mask"], second["response_tokens"]), ("3-1", [0, 0], [7, 8]))
        placeholder = {**data, "prev_logprobs": [[0.0] * 4] * 2}
        with self.assertRaisesRegex(Refused, "proximal_log_probs is missing"):
            logger.log_batched_dict_as_jsonl(placeholder, "train_data_step4.jsonl")


if __name__ == "__main__":
    unittest.main()
