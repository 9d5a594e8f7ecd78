"""Hooks that record other trainers' steps. Written against the sources named here; only TRL's ran inside its own trainers."""

import json
import re
from pathlib import Path

import numpy as np


def _require(is_set, setting):
    if not is_set:
        raise ValueError(f"cannot record: without {setting} the trainer does not compute the log-probs of sampler and learner; set it")


def of_verl(trainer, recorder):
    """A subclass of verl's RayPPOTrainer that records what each update of the actor is given; verl 0.10.0.dev at commit 1dda039b9c63.

    For `trainer.use_v1=False`. Set `actor_rollout_ref.rollout.calculate_log_probs=True`. verl counts steps from 1, and its driver has the whole
    batch. An agent loop's rollouts carry the step after which their weights were synchronized: of their first token, `min_global_steps`.
    """

    class Recorded(trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            _require(self.config.actor_rollout_ref.rollout.calculate_log_probs, "actor_rollout_ref.rollout.calculate_log_probs=True")

        def _update_actor(self, batch):
            out, given, width = super()._update_actor(batch), batch.batch, batch.batch["prompts"].shape[1]
            columns = {
                "mask": given["response_mask"], "response_tokens": given["responses"], "prompt_tokens": given["prompts"],
                "prompt_mask": given["attention_mask"][:, :width], "reward": given["token_level_scores"].sum(-1),
                "advantages": given["advantages"], "behavior_log_probs": given["rollout_log_probs"],
                "proximal_log_probs": given["old_log_probs"], "group": [str(uid) for uid in batch.non_tensor_batch["uid"]],
                "temperature": [batch.meta_info["temperature"]] * len(given["responses"])}
            sampled_by = batch.non_tensor_batch.get("min_global_steps", [None])
            if None not in list(sampled_by):
                columns["version"] = [int(step) for step in sampled_by]
            means = {name: float(np.mean(value)) for name, value in out.meta_info["metrics"].items()}
            recorder.step(columns, version=self.global_steps - 1, figures={name: mean for name, mean in means.items() if np.isfinite(mean)})
            return out

    return Recorded


def of_verl_v1(trainer, recorder, queue):
    """A subclass of one of verl's V1 trainers, its default, that records what each update of the actor is given; verl 0.10.0.dev at commit
    1dda039b9c63.

    Set `actor_rollout_ref.rollout.calculate_log_probs=True`. In the trainer's process set `TRAINER_REGISTRY[mode]` of
    `verl.trainer.ppo.v1.trainer_base` to it, for the mode of `trainer.v1.trainer_mode`. A step is an update of the actor. The engines get the
    weights after `parameter_sync_step` of them.

    :param queue: the module `transfer_queue`, which holds the batch
    """
    fields = {"mask": "response_mask", "response_tokens": "responses", "prompt_tokens": "prompts", "advantages": "advantages",
              "behavior_log_probs": "rollout_log_probs", "proximal_log_probs": "old_log_probs"}

    class Recorded(trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            _require(self.config.actor_rollout_ref.rollout.calculate_log_probs, "actor_rollout_ref.rollout.calculate_log_probs=True")

        def _update_actor(self, batch, metrics):
            out = super()._update_actor(batch, metrics=metrics)
            kept = [(key, tag) for key, tag in zip(batch.keys, batch.tags) if not tag.get("is_padding", False)]
            given = queue.kv_batch_get(keys=[key for key, _ in kept], partition_id=batch.partition_id,
                                       select_fields=[*fields.values(), "rm_scores", "uid"])
            rows = [dict(zip(fields, row)) for row in zip(*(given[name].unbind() for name in fields.values()))]
            for row, (_, tag), uid, scores in zip(rows, kept, given["uid"].tolist(), given["rm_scores"].unbind()):
                row |= {"group": str(uid), "reward": float(scores.sum()), "temperature": self.config.actor_rollout_ref.rollout.temperature}
                if tag.get("min_global_steps") is not None:
                    row["version"] = int(tag["min_global_steps"]) * self.parameter_sync_step
            figures = {name: float(value) for name, value in metrics.items()
                       if name.startswith("actor/") and isinstance(value, (int, float)) and np.isfinite(value)}
            recorder.step(rows, version=(self.global_steps - 1) * self.parameter_sync_step + self.local_trigger_step, figures=figures)
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


def of_trl(trainer, recorder):
    """A subclass of TRL's GRPOTrainer that records each batch that it generates for training; TRL 1.13.0.

    For `use_vllm=True`, which computes both log-probs, one process and one optimizer step per batch. The trainer waits for its samples, so they
    are of the step's own version.
    """

    class Recorded(trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            _require(self.use_vllm and self.vllm_importance_sampling_correction, "use_vllm=True and vllm_importance_sampling_correction=True")

        def _calculate_rewards(self, *args):
            self._recorded = super()._calculate_rewards(*args)
            return self._recorded

        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            if self.model.training:
                rewards, step = (self._recorded * self.reward_weights.to(self._recorded.device)).nansum(1), self.state.global_step
                recorder.step({
                    "mask": out["completion_mask"] * out.get("tool_mask", 1), "response_tokens": out["completion_ids"],
                    "prompt_tokens": out["prompt_ids"], "prompt_mask": out["prompt_mask"], "reward": rewards, "advantage": out["advantages"],
                    "behavior_log_probs": out.get("sampling_per_token_logps"), "proximal_log_probs": out.get("old_per_token_logps"),
                    "reference_log_probs": out.get("ref_per_token_logps"), "temperature": [self.temperature] * len(rewards),
                    "version": [step] * len(rewards), "group": [f"{step}-{i // self.num_generations}" for i in range(len(rewards))]}, version=step)
            return out

    return Recorded


def of_async_trl(trainer, recorder):
    """A subclass of TRL's AsyncGRPOTrainer that records each optimizer step; TRL 1.13.0.

    For one process and a run that begins anew. The trainer's batches have no groups, versions and rewards; tokens and log-probs find them. The
    proximal log-probs are those of the step's own forward pass.
    """

    def key(tokens, log_probs):
        return tuple(tokens), np.float32(log_probs).tobytes()

    class Remembered:
        def __init__(self, queue):
            self._queue, self.qsize, self.samples = queue, queue.qsize, {}

        def get(self, timeout):
            sample = self._queue.get(timeout=timeout)
            self.samples.setdefault(key(sample.input_ids, sample.old_log_probs), []).append(sample)
            return sample

    class Recorded(trainer):
        _rows = []

        def get_train_dataloader(self):
            self.rollout_queue = Remembered(self.rollout_queue)
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
                oldest = self.model_version - self.args.max_staleness - 1  # what is older was dropped
                for each in [each for each, samples in self.rollout_queue.samples.items() if samples[-1].model_version < oldest]:
                    del self.rollout_queue.samples[each]
            return loss

        def _rows_of(self, inputs, log_probs):
            ids, mask, behavior, advantages, positions = (
                inputs[name][0].tolist() for name in ("input_ids", "completion_mask", "old_log_probs", "advantages", "position_ids"))
            size, starts = int(inputs["attention_mask"][0].sum()), [i for i, position in enumerate(positions) if position == 0]
            starts = [start for start in starts if start < size]
            rows = []
            for start, end in zip(starts, [*starts[1:], size]):
                known, of = self.rollout_queue.samples, key(ids[start:end], behavior[start:end])
                sample = known[of].pop(0)
                if not known[of]:
                    del known[of]
                first = next((at for at in range(start, end) if mask[at]), None)
                if first is None:
                    continue
                synced = sample.model_version - 1  # the first synchronization is of the initial weights
                rows.append({
                    "group": str(sample.group_id), "version": synced * self.args.weight_sync_steps,
                    "mask": mask[first:end], "prompt_tokens": ids[start:first], "response_tokens": ids[first:end],
                    "behavior_log_probs": behavior[first:end], "proximal_log_probs": log_probs[first - 1:end - 1],
                    "advantages": advantages[first:end], "reward": sample.metrics["reward"], "temperature": self.args.temperature})
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
    """Has NeMo-RL's logger record the training data that `grpo_train`, `grpo_train_sync` and `async_grpo_train` log; NeMo-RL 0.6.0 at commit
    7ea279abfbeb.

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
