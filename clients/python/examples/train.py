"""A trainer in torch, in the place of `millrace learn`: policy gradient with the run's own importance weights.

    python3 clients/python/examples/train.py kafka:9092 my-run --goal 0.9

Killed and started again, it goes on where it was. It ends when the mean reward of ten steps is the goal.
"""

import argparse
import logging
import sys

import torch

import millrace_rl
from millrace_rl.torch import Decoder


def step(model, optimizer, batch, learning_rate, entropy_bonus):
    """One update; what it did, by name."""
    x = batch.padded().torch()
    logits = model(x.input_ids[:, :-1]).logits / x.temperature[:, :, None]
    log_all = logits.log_softmax(-1)
    log_probs = log_all.gather(-1, x.targets[:, :, None])[:, :, 0]
    entropy = -(log_all.exp() * log_all).sum(-1)
    loss = -((x.weights * x.advantages * log_probs + entropy_bonus * entropy) * x.mask).sum() / x.mask.sum()
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return {"loss": loss.item(), "grad_norm": norm.item(), "entropy": ((entropy * x.mask).sum() / x.mask.sum()).item()}


def moments(model, optimizer):
    """Adam's state, under the names that Millrace's own learner goes on from."""
    return {f"{kind}.{name}": optimizer.state[p][kind]
            for kind in ("exp_avg", "exp_avg_sq") for name, p in model.named_parameters() if p in optimizer.state}


def restore(model, optimizer, state, steps):
    for name, p in model.named_parameters() if state else ():
        optimizer.state[p] = {"step": torch.tensor(float(steps)), **{
            kind: torch.from_numpy(state[f"{kind}.{name}"]) for kind in ("exp_avg", "exp_avg_sq")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bootstrap", help="brokers, host:port")
    parser.add_argument("run", help="id of the run")
    parser.add_argument("--client", help="properties file with settings of Kafka's clients")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--goal", type=float, default=float("inf"))
    parser.add_argument("--steps", type=int, default=0, help="end with this version; 0 for no end")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)  # a small model gains nothing from more
    with millrace_rl.Run(args.bootstrap, args.run, client=args.client).trainer() as trainer:
        model = Decoder(trainer.shape).load(trainer.weights())
        optimizer = torch.optim.AdamW(model.parameters(), eps=1e-5, weight_decay=0)
        restore(model, optimizer, trainer.state(), trainer.steps)
        rewards, mean = [], 0.0
        for batch in trainer.batches():
            if batch.kept_tokens:
                sys.exit("the run compares policies over kept tokens (keep_sampling_mask), and this example does so over the whole vocabulary")
            learning_rate = args.learning_rate * batch.step_scale * min(1.0, (trainer.steps + 1) / 20)
            mean += 0.1 * (batch.rewards.mean() - mean)
            metrics = step(model, optimizer, batch, learning_rate, entropy_bonus=0.03 * (1 - mean))
            version = trainer.publish(model.state_dict(), moments(model, optimizer), learning_rate, metrics)
            rewards.append(batch.rewards.mean())
            print(f"version {version}  reward {rewards[-1]:.3f}  tokens {batch.trained_tokens}  loss {metrics['loss']:+.4f}", flush=True)
            if len(rewards) >= 10 and sum(rewards[-10:]) / 10 >= args.goal or 0 < args.steps <= version:
                return


if __name__ == "__main__":
    try:
        main()
    except millrace_rl.MillraceError as e:
        sys.exit(f"{type(e).__name__}: {e}")
