"""Conversion of other systems' files, made of the fields that millrace_rl.convert.SYSTEMS names the source of."""

import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from millrace_rl.convert import SYSTEMS, _episode, convert, main, verify
from millrace_rl.errors import Refused

try:
    import torch
except ImportError:
    torch = None


def verl():
    """Two sequences of a prompt padded on the left, and responses padded on the right, as in RayPPOTrainer.fit before the actor's update."""
    return {
        "prompts": torch.tensor([[0, 7], [8, 9]]), "responses": torch.tensor([[3, 4, 0], [5, 6, 7]]),
        "input_ids": torch.tensor([[0, 7, 3, 4, 0], [8, 9, 5, 6, 7]]), "attention_mask": torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]),
        "position_ids": torch.tensor([[0, 0, 1, 2, 2], [0, 1, 2, 3, 4]]), "response_mask": torch.tensor([[1, 1, 0], [1, 0, 1]]),
        "rollout_log_probs": torch.tensor([[-0.5, -1.0, 0.0], [-0.25, 0.0, -2.0]]),
        "old_log_probs": torch.tensor([[-0.5, -0.75, -9.0], [-0.25, -9.0, -1.5]]),
        "token_level_scores": torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.5]], dtype=torch.bfloat16), "token_level_rewards": torch.zeros(2, 3),
        "advantages": torch.tensor([[0.25, 0.25, 0.0], [-0.25, 0.0, -0.25]]), "returns": torch.zeros(2, 3), "uid": ["a", "a"], "min_global_steps": [1, None], "step": 3}


def slime():
    """What save_debug_train_data writes of two sequences, the second one on another rank."""
    def sample(position, response, **fields):
        return {"data_parallel_rank": position, "sample_index": 40 + position, "rollout_position": position, "total_lengths": 2 + response,
                "response_lengths": response, "rewards": 9.0, "truncated": 0, "rollout_ids": position, "rollout_mask_sums": torch.tensor(2.0),
                "local_raw_reward": 9.0, **fields}

    return {"format_version": 2, "rollout_id": 5, "rank": 0, "raw_reward": [1.0, 0.0], "dp_shards": [], "samples": [
        sample(0, 2, tokens=torch.tensor([8, 9, 3, 4]), loss_masks=torch.tensor([1, 1]), rollout_log_probs=torch.tensor([-0.5, -1.0]),
               log_probs=torch.tensor([-0.5, -0.75]), advantages=torch.tensor([0.5, 0.5]), returns=torch.tensor([0.5, 0.5])),
        sample(1, 3, tokens=torch.tensor([8, 9, 5, 6, 7]), loss_masks=torch.tensor([1, 0, 1]), rollout_log_probs=torch.tensor([-0.25, 0.0, -2.0]),
               log_probs=torch.tensor([-0.25, -1.0, -1.5]), advantages=torch.tensor([-0.5, -0.5, -0.5]), returns=torch.tensor([-0.5, -0.5, -0.5]))]}


def prime_rl_episode():
    """A task with one answer, and another after a tool's: two branches of one trace."""
    def node(parent, tokens, mask, log_probs):
        return {"parent": parent, "message": {"role": "user", "content": ""}, "sampled": any(mask), "timestamp": 1.0, "token_ids": tokens,
                "mask": mask, "is_content": [], "logprobs": log_probs, "advantages": [0.5] * len(log_probs)}

    return {"id": "e", "env": {"id": "gsm8k"}, "task": {"data": {}}, "group": {"id": "g"}, "ok": True, "errors": [],
            "run": {"type": "train", "id": "r", "work": {"type": "train", "step": 3, "policy": {"start": 1, "end": 2}}},
            "traces": [{"version": 1, "id": "t", "rewards": {"right": {"score": 1.0, "weight": 0.5}, "short": {"score": 1.0, "weight": 0.25}},
                        "nodes": [node(None, [8, 9], [False, False], []), node(0, [3, 4], [True, True], [-0.5, -1.0]),
                                  node(1, [5], [False], []), node(2, [6], [True], [-2.0]), node(0, [7], [True], [-0.125])]}]}


def prime_rl_export(tokens, mask, sampler, trainer, **fields):
    """A line of TokenExporter."""
    none = [None] * len(tokens)
    return {"schema_version": 1, "step": 3, "rank": 0, "micro_step": 0, "micro_sequence_idx": 0, "export_sequence_idx": 0, "env_name": "gsm8k",
            "token_ids": tokens, "position_ids": list(range(len(tokens))), "loss_mask": mask, "advantages": [0.5] * len(tokens),
            "inference_logprobs": sampler, "trainer_logprobs": trainer, "entropy": [0.25] * len(tokens), "mismatch_kl": none,
            "log_importance_ratio": none, "importance_ratio": none, "prob_delta": none, "is_masked": none, "is_masked_high": none,
            "is_masked_low": none, "rl_weights": none, "ce_weights": none, "ref_kl_weights": none, **fields}


class ConvertTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def file(self, name, *lines):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def saved(self, name, content):
        torch.save(content, self.folder / name)
        return self.folder / name

    def lines(self, version):
        return [json.loads(line) for line in (self.folder / "to" / f"{version}.jsonl").read_text().splitlines()]

    def refuses(self, why, system, *files):
        with self.assertRaisesRegex(Refused, why):
            convert(system, files, self.folder / "to")
        self.assertFalse((self.folder / "to").exists())
        with self.assertRaisesRegex(Refused, why):
            verify(system, files)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_should_convert_a_batch_of_verl(self):
        self.assertEqual(convert("verl", [self.saved("3.pt", verl())], self.folder / "to").recorded, 1)
        first, second = self.lines(2)  # verl counts steps from 1
        self.assertEqual(first, {
            "step": 2, "group": "a", "reward": 1.0, "version": 1, "prompt_tokens": [7], "id": "2-0", "mask": [1, 1], "response_tokens": [3, 4],
            "behavior_log_probs": [-0.5, -1.0], "proximal_log_probs": [-0.5, -0.75], "advantages": [0.25, 0.25]})
        self.assertEqual((second["mask"], second["prompt_tokens"], second["response_tokens"], second["reward"]), ([1, 0, 1], [8, 9], [5, 6, 7], 0.5))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_should_convert_a_dump_of_slime(self):
        convert("slime", [self.saved("5.pt", slime())], self.folder / "to", group_size=2)
        first, second = self.lines(5)
        self.assertEqual(first, {
            "step": 5, "group": "5-0", "reward": 1.0, "prompt_tokens": [8, 9], "id": "5-0", "mask": [1, 1], "response_tokens": [3, 4],
            "behavior_log_probs": [-0.5, -1.0], "proximal_log_probs": [-0.5, -0.75], "advantages": [0.5, 0.5]})
        self.assertEqual((second["group"], second["mask"], second["response_tokens"], second["reward"]), ("5-0", [1, 0, 1], [5, 6, 7], 0.0))

    def test_should_join_exports_of_prime_rl_with_the_traces_that_have_their_rewards(self):
        traces = self.file("rollouts/step_3/train/effective/traces.jsonl", prime_rl_episode())
        exports = self.file(
            "token_exports/step_3/rank_0.jsonl",
            prime_rl_export([8, 9, 3, 4, 5, 6], [False, False, True, True, False, True], [0, 0, -0.5, -1, 0, -2], [None, -9, -0.5, -0.75, -9, -1.5]),
            prime_rl_export([8, 9, 7], [False, False, True], [0, 0, -0.125], [0, 0, -0.25], rl_weights=[0.0, 0.0, 1.0]))
        other = prime_rl_episode()
        other["traces"][0]["rewards"] = {}
        later = self.file("rollouts/step_4/train/effective/traces.jsonl", other)  # the same tokens again
        with mock.patch("millrace_rl.convert._episode", wraps=_episode) as episodes:
            convert("prime-rl", [traces, exports, later], self.folder / "to")
        self.assertEqual(episodes.call_count, 2, "each trace is read once")
        self.assertEqual(verify("prime-rl", [traces, exports, later]), (1, 2, []))
        first, second = self.lines(2)
        self.assertEqual(first, {
            "step": 2, "group": "g", "reward": 0.75, "version": 1, "prompt_tokens": [8, 9], "id": "2-0", "mask": [1, 1, 0, 1],
            "response_tokens": [3, 4, 5, 6], "behavior_log_probs": [-0.5, -1, 0, -2], "proximal_log_probs": [-0.5, -0.75, -9, -1.5],
            "advantages": [0.5] * 4, "entropies": [0.25] * 4})
        self.assertEqual((second["mask"], second["response_tokens"], second["behavior_log_probs"]), ([1], [7], [-0.125]))

    def test_should_refuse_files_without_what_a_record_needs(self):
        of_verl = {"input": "q", "output": "a", "gts": "1", "score": 1.0, "step": 1, "request_id": "r"}
        self.refuses(r"1\.jsonl: it has no mask \(response_mask\), log-probs of the sampler \(rollout_log_probs\), log-probs of the trainer "
                     r"\(old_log_probs\), reward \(token_level_scores\); give files that docs/how-to/files-of-others.md", "verl",
                     self.file("1.jsonl", of_verl))
        of_areal = {"task_id": 1, "sample_idx": 0, "seqlen": 4, "prompt_len": 2, "head_version": 0, "tail_version": 1, "reward": 1.0,
                    "prompt": "q", "completion": "a"}
        self.refuses("files of areal: they hold texts, without step, mask, log-probs of the sampler, log-probs of the trainer;", "areal",
                     self.file("1.jsonl", of_areal))
        self.refuses("files of trl: they hold texts, without mask, log-probs of the sampler, log-probs of the trainer, reward;", "trl",
                     self.folder / "completions_00001.parquet")
        export = self.file("step_3/rank_0.jsonl", prime_rl_export([8, 7], [False, True], [0, -1], [0, -1]))
        self.refuses(r"it has no reward \(rewards\)", "prime-rl", export)
        self.refuses("no trace has a sequence of step 3", "prime-rl", export, self.file("traces.jsonl", prime_rl_episode()))
        self.refuses("none has log-probs of the trainer; give token_exports/step_", "prime-rl", self.file("stream.jsonl", prime_rl_episode()))
        self.refuses("no trace has a sequence of step 3", "prime-rl", export, self.file("step_4/traces.jsonl", prime_rl_episode()))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_should_only_check_the_files(self):
        file = str(self.saved("3.pt", verl()))
        self.assertEqual(self.printed("verl", file, "--verify"), "1 steps of 2 sequences can be converted; without min_global_steps, ref_log_prob, values\n")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["3.pt"])
        self.assertEqual(self.printed("verl", file, "--to", str(self.folder / "to")), f"1 steps written to {self.folder / 'to'}, 0 were there\n")
        with self.assertRaisesRegex(SystemExit, "millrace_rl.convert: cannot convert files of trl: they hold texts"):
            self.printed("trl", "completions_00001.parquet", "--verify")

    def printed(self, *arguments):
        with mock.patch.object(sys, "argv", ["convert", *arguments]), contextlib.redirect_stdout(io.StringIO()) as out:
            main()
        return out.getvalue()

    def test_should_describe_each_field_that_is_read(self):
        page = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "files-of-others.md").read_text("utf-8")
        sections = dict(zip(re.findall(r"^## (.*)$", page, re.M), re.split(r"^## .*$", page, flags=re.M)[1:]))
        for name, system in SYSTEMS.items():
            section = sections[{"verl": "verl", "slime": "slime", "prime-rl": "prime-rl", "trl": "TRL", "areal": "AReaL"}[name]]
            self.assertIn(system.source.split()[-1], section, name)
            for theirs in system.fields.values():
                self.assertRegex(section, rf"`{re.escape(theirs)}`", name)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_should_refuse_a_rollout_dump_and_an_object_of_a_class(self):
        sample = {"tokens": [8, 3], "response_length": 1, "reward": 1.0, "loss_mask": [1], "rollout_log_probs": [-0.5], "status": "completed"}
        rollout = {"rollout_id": 5, "samples": [sample]}
        self.refuses(r"log-probs of the trainer \(log_probs\)", "slime", self.saved("5.pt", rollout))
        self.refuses("cannot read .*6.pt: .*; give JSON lines, or a dict of tensors", "slime", self.saved("6.pt", Path("a")))

    def test_should_name_the_step_of_a_bad_number_and_a_file_that_is_cut_off(self):
        traces = self.file("traces.jsonl", prime_rl_episode())
        with self.assertLogs("millrace", "WARNING"):
            self.refuses(r"step 3 of prime-rl: sequence 0: behavior_log_probs\[0\] is 0.5", "prime-rl", traces,
                         self.file("step_3.jsonl", prime_rl_export([8, 9, 7], [False, False, True], [0, 0, 0.5], [0, 0, -0.25])))
        cut = self.folder / "cut.jsonl"
        cut.write_text('{"step": 1')
        self.refuses("cannot read .*cut.jsonl: ", "verl", cut)

    def test_should_name_the_source_of_each_system(self):
        for system in SYSTEMS.values():
            self.assertRegex(system.source, r"^\d+\.\d+\S*, commit [0-9a-f]{12}$")


if __name__ == "__main__":
    unittest.main()
