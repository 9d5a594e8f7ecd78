"""GRPO in plain torch, without Millrace in the loop, recorded step by step.

    python3 clients/python/examples/record_grpo_torch.py --directory recorded

The task and the options are those of record_grpo.py. A step samples a batch by the weights of --lag versions before and updates the model
twice, so that clipping acts.
"""

from collections import deque

import numpy as np
import torch

from millrace_rl.torch import Decoder
from record_grpo import DIGITS, SHAPE, first_weights, main, questions

UPDATES, CLIP = 2, 0.2


@torch.no_grad()
def sampled(model, prompts, generator):
    """Answers [B, DIGITS] and the log-probs of their tokens."""
    tokens, log_probs = prompts, []
    for _ in range(DIGITS):
        all_of = model(tokens).logits[:, -1].log_softmax(-1)
        token = torch.multinomial(all_of.exp(), 1, generator=generator)
        log_probs.append(all_of.gather(1, token))
        tokens = torch.cat([tokens, token], 1)
    return tokens[:, -DIGITS:], torch.cat(log_probs, 1)


def log_probs_of(model, prompts, answers):
    all_of = model(torch.cat([prompts, answers], 1)[:, :-1]).logits[:, -DIGITS:].log_softmax(-1)
    return all_of.gather(-1, answers[..., None])[..., 0]


def train(recorder, steps, lag=0, rate=3e-3, seed=1, groups=16, samples=8):
    """Mean reward of each step."""
    torch.set_num_threads(1)  # more threads do not help a small model
    random, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    first = {name: w.astype(np.float32) for name, w in first_weights(random).items()}
    model, sampler = Decoder(SHAPE).load(first), Decoder(SHAPE)
    optimizer, versions, means = torch.optim.AdamW(model.parameters(), rate, weight_decay=0), deque(maxlen=lag + 1), []
    for step in range(steps):
        versions.append({name: w.clone() for name, w in model.state_dict().items()})
        sampler.load_state_dict(versions[0])
        prompts, right = map(torch.from_numpy, questions(random, groups, samples))
        answers, behavior = sampled(sampler, prompts, generator)
        rewards = (answers == right).double().mean(1)  # equal rewards have exactly no advantage
        of_groups = rewards.view(groups, samples)
        advantages = ((of_groups - of_groups.mean(1, True)) / (of_groups.std(1, keepdim=True) + 1e-6)).view(-1).float()
        proximal = None
        for _ in range(UPDATES):
            log_probs = log_probs_of(model, prompts, answers)
            proximal = log_probs.detach() if proximal is None else proximal
            ratios, gain = (log_probs - behavior).exp(), advantages[:, None]
            loss = -torch.minimum(ratios * gain, ratios.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        recorder.step(
            {"group": [f"{step}-{i // samples}" for i in range(len(prompts))], "mask": torch.ones_like(answers), "prompt_tokens": prompts,
             "response_tokens": answers, "behavior_log_probs": behavior, "proximal_log_probs": proximal, "reward": rewards,
             "advantage": advantages, "version": [step - len(versions) + 1] * len(prompts)},
            version=step, figures={"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate})
        means.append(rewards.mean().item())
    return means


if __name__ == "__main__":
    main(train, __doc__, steps=200, lag=0)
