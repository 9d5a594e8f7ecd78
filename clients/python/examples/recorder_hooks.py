"""Hooks that record other trainers' steps. Written against the sources named here, and never run inside these trainers."""

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
