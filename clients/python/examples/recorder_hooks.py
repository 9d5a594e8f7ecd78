"""Hooks that record other trainers' steps. Written against the sources named here, and never run inside these trainers."""

import json
import re
from pathlib import Path

import numpy as np


def of_verl(trainer, recorder):
    """A subclass of verl's RayPPOTrainer that records what each update of the actor is given; verl at commit 0094eb2057e6.

    Set `actor_rollout_ref.rollout.calculate_log_probs=True`. verl counts steps from 1, and its driver has the whole batch.
    """

    class Recorded(trainer):
        def _update_actor(self, batch):
            out, given, width = super()._update_actor(batch), batch.batch, batch.batch["prompts"].shape[1]
            columns = {
                "mask": given["response_mask"], "response_tokens": given["responses"], "prompt_tokens": given["prompts"],
                "prompt_mask": given["attention_mask"][:, :width], "reward": given["token_level_scores"].sum(-1),
                "advantages": given["advantages"], "behavior_log_probs": given["rollout_log_probs"],
                "proximal_log_probs": given["old_log_probs"], "group": [str(uid) for uid in batch.non_tensor_batch["uid"]],
                "temperature": [batch.meta_info["temperature"]] * len(given["responses"])}
            means = {name: float(np.mean(value)) for name, value in out.meta_info["metrics"].items()}
            recorder.step(columns, version=self.global_steps - 1, figures={name: mean for name, mean in means.items() if np.isfinite(mean)})
            return out

    return Recorded


def of_slime(recorder):
    """A function for slime's `--rollout-data-postprocess-path`; slime 0.3.1.

    For a data-parallel and context-parallel size of 1, one optimizer step per rollout, and a run in which the actor's log-probs are computed
    before the step, as with `--get-mismatch-metrics`. On the last pipeline stage alone they are there. Sequences of one prompt have
    consecutive indices. The rewards are raw, before slime centres them.
    """

    def record(args, rollout_id, rollout_data):
        if "log_probs" not in rollout_data:
            return
        rows = []
        for i, (tokens, length) in enumerate(zip(rollout_data["tokens"], rollout_data["response_lengths"])):
            rows.append({
                "id": str(rollout_data["sample_indices"][i]), "group": str(rollout_data["sample_indices"][i] // args.n_samples_per_prompt),
                "mask": rollout_data["loss_masks"][i], "prompt_tokens": tokens[:-length], "response_tokens": tokens[-length:],
                "reward": rollout_data["raw_reward"][i], "advantages": rollout_data["advantages"][i],
                "behavior_log_probs": rollout_data["rollout_log_probs"][i], "proximal_log_probs": rollout_data["log_probs"][i],
                "finish_reason": "length" if rollout_data["truncated"][i] else "stop"})
        recorder.step(rows, version=rollout_id)

    return record

def of_async_trl(trainer, recorder):
    """A subclass of TRL's AsyncGRPOTrainer that records each optimizer step; TRL 1.10.0.dev0 at commit f2cd57710ae3.

    For one process and a run that begins anew. A sample's group and version go through the trainer as metrics, so their means are logged.
    The proximal log-probs are those of the step's own forward pass.
    """

    class Tagged:
        def __init__(self, queue):
            self._queue, self.qsize = queue, queue.qsize

        def get(self, timeout):
            sample = self._queue.get(timeout=timeout)
            sample.metrics |= {"recorded/group": sample.group_id, "recorded/version": sample.model_version}
            return sample

    class Recorded(trainer):
        _rows = []

        def get_train_dataloader(self):
            self.rollout_queue = Tagged(self.rollout_queue)
            return super().get_train_dataloader()

        def compute_loss(self, model, inputs, *args, **kwargs):
            def forward(**given):
                self._outputs = model(**given)
                return self._outputs

            loss = super().compute_loss(forward, inputs, *args, **kwargs)
            self._rows = self._rows + self._rows_of(inputs, self._outputs["log_probs"][0].detach().float().tolist())
            if self.accelerator.sync_gradients:  # the last micro-batch of a step
                recorder.step(self._rows, version=self.state.global_step)
                self._rows = []
            return loss

        def _rows_of(self, inputs, log_probs):
            ids, mask, behavior, advantages, positions = (
                inputs[name][0].tolist() for name in ("input_ids", "completion_mask", "old_log_probs", "advantages", "position_ids"))
            size, starts = int(inputs["attention_mask"][0].sum()), [i for i, position in enumerate(positions) if position == 0]
            starts = [start for start in starts if start < size]
            rows = []
            for i, (start, end) in enumerate(zip(starts, [*starts[1:], size])):
                metrics = {name: float(values[0][i]) for name, values in inputs["metrics"].items()}
                first = next((at for at in range(start, end) if mask[at]), None)
                if first is None:
                    continue
                synced = int(metrics["recorded/version"]) - 1  # the first synchronization is of the initial weights
                rows.append({
                    "group": str(int(metrics["recorded/group"])), "version": synced * self.args.weight_sync_steps,
                    "mask": mask[first:end], "prompt_tokens": ids[start:first], "response_tokens": ids[first:end],
                    "behavior_log_probs": behavior[first:end], "proximal_log_probs": log_probs[first - 1:end - 1],
                    "advantages": advantages[first:end], "reward": metrics["reward"], "temperature": self.args.temperature})
            return rows

    return Recorded


def of_prime_rl(sink, recorder, exports):
    """A subclass of prime-rl's TrainSink that joins what the orchestrator ships with what its trainer exports; prime-rl 0.8.0 at commit
    559b44772e47.

    Set it as `prime_rl.orchestrator.orchestrator.TrainSink` before the orchestrator starts, and the trainer's `enable_token_export`. The
    orchestrator has rewards, groups and versions, the trainer its own log-probs; their tokens join them. The orchestrator reads the exports
    of earlier steps when it makes a batch.

    :param exports: folder of `step_<n>` in the trainer's output folder, `token_exports`
    """

    class Recorded(sink):
        shipped = {}

        def process_batch(self):
            samples = {trace_id: list(samples) for trace_id, samples in self.pending_batch.items()}
            episodes, traces = dict(self.episode_by_trace), {trace_id: self._trace(trace_id) for trace_id in samples}
            batch, step = super().process_batch(), self.progress.step
            known = self.shipped[step] = {}
            for trace_id in samples.keys() - self.pending_batch.keys():
                episode, policy = episodes[trace_id], episodes[trace_id].run.work.policy
                for sample in samples[trace_id]:
                    row = {"group": episode.group.id, "reward": traces[trace_id].reward, "temperature": sample.temperatures[0]}
                    known[tuple(sample.token_ids)] = row if policy is None else {**row, "version": policy.start}
            self.record()
            return batch

        def record(self):
            """Records the steps whose export is complete; call it once more when the trainer has ended."""
            for step in sorted(self.shipped):
                folder = Path(exports) / f"step_{step}"
                if not (folder / "STABLE").exists():
                    return
                known, rows = self.shipped.pop(step), []
                for file in sorted(folder.glob("rank_*.jsonl")):
                    for line in map(json.loads, file.read_text().splitlines()):
                        mask = [int(kept and weight != 0) for kept, weight in zip(line["loss_mask"], line["rl_weights"])]
                        of = known.get(tuple(line["token_ids"]))
                        if of is None or 1 not in mask:
                            continue  # the trainer cut it at its seq_len, or it has no token for the policy gradient
                        first = mask.index(1)
                        rows.append({**of, "mask": mask[first:], "prompt_tokens": line["token_ids"][:first],
                                     "response_tokens": line["token_ids"][first:], "advantages": line["advantages"][first:],
                                     "behavior_log_probs": line["inference_logprobs"][first:],
                                     "proximal_log_probs": line["trainer_logprobs"][first:], "entropies": line["entropy"][first:]})
                recorder.step(rows, version=step - 1)

    return Recorded


def of_nemo_rl(logger, recorder, num_generations):
    """Has NeMo-RL's logger record the training data that `grpo_train` and `async_grpo_train` log; NeMo-RL 0.6.0 at commit 7ea279abfbeb.

    Not with `force_on_policy_ratio`, which computes no log-probs, nor with `env.should_log_nemo_gym_responses`, which logs no training data.
    Generations of one prompt stand together.
    """
    log = logger.log_batched_dict_as_jsonl

    def recorded(to_log, filename):
        step, rows = re.fullmatch(r"train_data_step(\d+)\.jsonl", filename), []
        for i, ids in enumerate(to_log["token_ids"] if step else ()):
            length, mask = to_log["input_lengths"][i], to_log["token_loss_mask"][i]
            if 1 not in mask:
                continue
            first = mask.index(1)
            here = slice(first, length)
            rows.append({"group": f"{step[1]}-{i // num_generations}", "reward": to_log.get("filtered_rewards", to_log["rewards"])[i],
                         "mask": [int(kept * to_log["sample_loss_mask"][i]) for kept in mask[here]],
                         "prompt_tokens": ids[:first], "response_tokens": ids[here], "advantages": to_log["advantages"][i][here],
                         "behavior_log_probs": to_log["generation_logprobs"][i][here],
                         "proximal_log_probs": to_log["prev_logprobs"][i][here] if any(map(any, to_log["prev_logprobs"])) else None})
        if rows:
            recorder.step(rows, version=int(step[1]) - 1)
        log(to_log, filename)

    logger.log_batched_dict_as_jsonl = recorded
