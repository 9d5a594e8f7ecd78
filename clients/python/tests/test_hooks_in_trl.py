"""The hooks of TRL in its own trainers, on the CPU; skipped without TRL 1.13. Only vLLM has a double, which samples in bfloat16."""

import copy
import json
import queue
import sys
import tempfile
import threading
import types
import unittest
from pathlib import Path

import numpy as np

try:
    import torch
    import transformers
    import trl.experimental.async_grpo.async_grpo_trainer as async_grpo
    import trl.trainer.grpo_trainer as grpo
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from trl import GRPOConfig, GRPOTrainer
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
    from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
except ImportError:
    grpo = None

from millrace_rl import Recorder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import recorder_hooks

WORDS, END, REWARDED, TEMPERATURE, LENGTH, GROUP, STEPS = 23, 1, 3, 0.9, 6, 4, 5
COMMON = dict(num_generations=GROUP, max_completion_length=LENGTH, max_steps=STEPS, learning_rate=1e-2, lr_scheduler_type="constant",
              logging_steps=1, report_to="none", use_cpu=True, bf16=False, temperature=TEMPERATURE, save_strategy="no", disable_tqdm=True)


def sample(model, prompt):
    """A response and the log-prob of each of its tokens."""
    tokens, log_probs = list(prompt), []
    while len(log_probs) < LENGTH and (not log_probs or tokens[-1] != END):
        with torch.no_grad():
            of_all = torch.log_softmax(model(torch.tensor([tokens])).logits[0, -1].float() / TEMPERATURE, -1)
        tokens.append(int(torch.multinomial(of_all.exp(), 1)))
        log_probs.append(float(of_all[tokens[-1]]))
    return tokens[len(prompt):], log_probs


@unittest.skipIf(grpo is None, "TRL is not installed")
class TrlTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder, self.model, self.logs = Path(directory.name), str(Path(directory.name) / "model"), []
        torch.manual_seed(0)
        torch.set_num_threads(1)
        words = {"<pad>": 0, "<end>": END, "<unk>": 2, **{chr(ord("a") + i): 3 + i for i in range(WORDS - 3)}}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        self.tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", unk_token="<unk>", padding_side="left")
        self.tokenizer.save_pretrained(self.model)
        transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0, eos_token_id=END,
            bos_token_id=END)).save_pretrained(self.model)

    def train(self, hook, trainer, args, **given):
        with Recorder(directory=self.folder / "recorded", strict=True) as recorder:
            recorded = hook(trainer, recorder)(self.model, args=args, processing_class=self.tokenizer, **given)
            recorded.train()
        self.logs = [entry for entry in recorded.state.log_history if "reward" in entry]
        return [[json.loads(line) for line in (self.folder / "recorded" / f"{step}.jsonl").read_text().splitlines()] for step in range(STEPS)]

    @staticmethod
    def differences(rows):
        return [abs(behavior - proximal) for row in rows for kept, behavior, proximal in zip(
            row["mask"], row["behavior_log_probs"], row["proximal_log_probs"]) if kept]

    def test_should_record_what_grpo_logs(self):
        class Generation:
            def __init__(self, model, **others):
                self.model = model

            def sync_weights(self):
                self.sampler = copy.deepcopy(self.model).to(torch.bfloat16).eval()

            def generate(self, prompts, images, num_generations, profiler):
                made = [sample(self.sampler, prompt) for prompt in prompts]
                return prompts, [tokens for tokens, _ in made], [[[each] for each in log_probs] for _, log_probs in made], None

        self.addCleanup(setattr, grpo, "VLLMGeneration", grpo.VLLMGeneration)
        grpo.VLLMGeneration = Generation
        args = GRPOConfig(str(self.folder), use_vllm=True, vllm_mode="server", per_device_train_batch_size=GROUP, gradient_accumulation_steps=2,
                          beta=0.01, model_init_kwargs={"dtype": "float32"}, **COMMON)
        steps = self.train(recorder_hooks.of_trl, GRPOTrainer, args, train_dataset=Dataset.from_dict({"prompt": ["a b c", "d e", "f"] * 8}),
                           reward_funcs=lambda completions, **_: [float(words.split().count("a")) for words in completions])
        for step, (rows, logged) in enumerate(zip(steps, self.logs, strict=True)):
            self.assertEqual([row["version"] for row in rows], [step] * 2 * GROUP)
            self.assertAlmostEqual(np.mean(self.differences(rows)), logged["sampling/sampling_logp_difference/mean"], places=5)
            self.assertAlmostEqual(np.mean([row["reward"] for row in rows]), logged["reward"], places=5)
            for group in (rows[:GROUP], rows[GROUP:]):
                rewards = np.array([row["reward"] for row in group])
                self.assertEqual(len({(row["group"], tuple(row["prompt_tokens"])) for row in group}), 1)
                np.testing.assert_allclose([row["advantage"] for row in group], (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4), atol=1e-5)
                np.testing.assert_array_equal([row["response_tokens"].count(REWARDED) for row in group], rewards)

    def test_should_record_what_async_grpo_trains_on(self):
        worker = types.SimpleNamespace(rollout_buffer=queue.Queue(), metrics_queue=queue.Queue(), check_health=lambda seconds: None,
                                       version=0, sampler=None, thread=None, stopped=threading.Event())

        def generate():
            for group in range(1_000_000):
                while worker.rollout_buffer.qsize() > 4 * GROUP and not worker.stopped.wait(0.01):
                    pass
                if worker.stopped.is_set():
                    return
                version, sampler, prompt = worker.version, worker.sampler, [3 + group % 4, 9]
                made = [sample(sampler, prompt) for _ in range(GROUP)]
                rewards = [float(tokens.count(REWARDED)) for tokens, _ in made]
                for (tokens, log_probs), reward in zip(made, rewards):
                    worker.rollout_buffer.put(RolloutSample(
                        [], [], prompt + tokens, [0] * len(prompt) + [1] * len(tokens), [0.0] * len(prompt) + log_probs,
                        reward - np.mean(rewards), version, group, {"reward": reward}))

        def start():
            worker.thread = threading.Thread(target=generate)
            worker.thread.start()

        def stop():
            worker.stopped.set()
            worker.thread.join(60)
            self.assertFalse(worker.thread.is_alive())

        def send_weights(parameters):
            sampler = transformers.AutoModelForCausalLM.from_pretrained(self.model, dtype=torch.float32)
            sampler.load_state_dict(dict(parameters), strict=False)
            worker.sampler = sampler.to(torch.bfloat16).eval()

        worker.start, worker.stop, worker.update_model_version = start, stop, lambda version: setattr(worker, "version", version)
        transfer = types.SimpleNamespace(send_weights=send_weights, **{
            name: lambda: None for name in ("init_weight_transfer", "pause", "resume", "destroy")})
        made = async_grpo.create_model_from_path
        self.addCleanup(setattr, async_grpo, "create_model_from_path", made)
        async_grpo.create_model_from_path = lambda path, **given: made(path, **{**given, "attn_implementation": "sdpa"})  # its kernel is CUDA's
        args = AsyncGRPOConfig(str(self.folder), per_device_train_batch_size=1, gradient_accumulation_steps=2, dtype="float32", token_budget=40,
                               **COMMON)
        steps = self.train(recorder_hooks.of_async_trl, AsyncGRPOTrainer, args, rollout_worker=worker, weight_transfer=transfer,
                           train_dataset=Dataset.from_dict({"prompt": ["a"]}))
        trained, groups = [row for rows in steps for row in rows], {}
        for step, (rows, logged) in enumerate(zip(steps, self.logs, strict=True)):
            self.assertTrue(all(step - 4 <= row["version"] <= step for row in rows), rows)
            self.assertEqual(len(rows), round(logged["batch/samples_per_step"]))
            self.assertEqual(sum(map(sum, (row["mask"] for row in rows))), logged["batch/trained_tokens_per_step"])
        own = [row for step, rows in enumerate(steps) for row in rows if row["version"] == step]
        self.assertLess(max(self.differences(own)), 0.01, "the step's own version differs by bfloat16 alone")
        self.assertGreater(max(self.differences(trained)), 0.1, "an older one by more")
        for row in trained:
            groups.setdefault(row["group"], set()).add((row["version"], tuple(row["prompt_tokens"])))
            self.assertEqual(row["reward"], row["response_tokens"].count(REWARDED))
        self.assertTrue(all(len(of) == 1 for of in groups.values()), groups)


if __name__ == "__main__":
    unittest.main()
