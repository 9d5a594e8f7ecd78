"""A trainer in torch that replaces `millrace learn`: policy gradient with the run's own importance weights.

    python3 clients/python/examples/train.py kafka:9092 my-run --goal 0.9
    torchrun --nproc_per_node 2 --max_restarts 3 clients/python/examples/train.py kafka:9092 my-run --goal 0.9

Ends when the mean reward of ten steps is the goal. Killed and started again, it continues where it stopped: a step depends on nothing but
the batch, the weights and the optimizer's state. The second command trains on two ranks, which may be on two machines. Rank 0 alone is
connected to Kafka: it takes the batches, sends each rank its rollouts and publishes. All ranks add up their gradients and take the same
step, so that each has the same weights.
"""

import argparse
import contextlib
import dataclasses
import logging
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

import millrace_rl
from millrace_rl.torch import Decoder

RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))  # torchrun sets them
IDLE_S = 60  # without a batch, after which rank 0 checks the other ranks
LIMIT = timedelta(minutes=5)  # of a rank's wait for the others; longer than a step and its commit


def together(collective, *arguments):
    """Calls a collective operation, if there are several ranks."""
    try:
        if RANKS > 1:
            collective(*arguments)
    except (RuntimeError, TimeoutError) as e:
        sys.exit(f"rank {RANK} cannot go on without the others: {e}; start all {RANKS} again, they go on from the newest version")


def broadcast(value=None):
    """Rank 0's value, on every rank."""
    held = [value]
    together(dist.broadcast_object_list, held)
    return held[0]


def scatter(values=None):
    """Of rank 0's list of values, one for each rank, this rank's own."""
    own = values[:1] if RANKS == 1 else [None]
    together(dist.scatter_object_list, own, values)
    return own[0]


def shards(x):
    """Distributes a batch's rollouts to the ranks; a surplus rank gets one without a token to train on."""
    for rank in range(RANKS):
        filled = rank < len(x.mask)
        own = {name: None if array is None else array[rank if filled else 0::RANKS] for name, array in vars(x).items()}
        yield dataclasses.replace(x, **{**own, "mask": own["mask"] * filled})


def step(model, optimizer, x, tokens, learning_rate, entropy_bonus):
    """One update with the gradients of all ranks; returns its figures by name.

    :param x: this rank's rollouts
    :param tokens: number of tokens that all ranks train on
    """
    x = x.torch()
    logits = model(x.input_ids[:, :-1]).logits / x.temperature[:, :, None]
    log_all = logits.log_softmax(-1)
    log_probs = log_all.gather(-1, x.targets[:, :, None])[:, :, 0]
    entropy = -(log_all.exp() * log_all).sum(-1)
    loss = -((x.weights * x.advantages * log_probs + entropy_bonus * entropy) * x.mask).sum() / tokens
    optimizer.zero_grad()
    loss.backward()
    means = torch.stack([loss.detach(), (entropy.detach() * x.mask).sum() / tokens])
    for part in (*(p.grad for p in model.parameters()), means):
        together(dist.all_reduce, part)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return {"loss": means[0].item(), "grad_norm": norm.item(), "entropy": means[1].item()}


def moments(model, optimizer):
    """Adam's state, under the names that Millrace's own learner resumes from."""
    return {f"{kind}.{name}": optimizer.state[p][kind]
            for kind in ("exp_avg", "exp_avg_sq") for name, p in model.named_parameters() if p in optimizer.state}


def restore(model, optimizer, state, steps):
    for name, p in model.named_parameters() if state else ():
        optimizer.state[p] = {"step": torch.tensor(float(steps)), **{
            kind: torch.from_numpy(state[f"{kind}.{name}"]) for kind in ("exp_avg", "exp_avg_sq")}}


def lead(trainer, model, optimizer, args):
    """Rank 0: trains on each batch and publishes a version."""
    rewards = []
    while not 0 < args.steps <= trainer.version:
        for batch in trainer.batches(timeout_s=IDLE_S if RANKS > 1 else None):
            if batch.kept_tokens:
                sys.exit("the run compares policies over kept tokens (keep_sampling_mask), and this example does so over the whole vocabulary")
            learning_rate = args.learning_rate * batch.step_scale * min(1.0, (trainer.steps + 1) / 20)
            rewards.append(batch.rewards.mean())
            numbers = batch.trained_tokens, learning_rate, 0.03 * (1 - rewards[-1])
            metrics = step(model, optimizer, *scatter([(x, *numbers) for x in shards(batch.padded())]))
            version = trainer.publish(model.state_dict(), moments(model, optimizer), learning_rate, metrics)
            print(f"version {version}  reward {rewards[-1]:.3f}  tokens {batch.trained_tokens}  loss {metrics['loss']:+.4f}", flush=True)
            if len(rewards) >= 10 and sum(rewards[-10:]) / 10 >= args.goal or 0 < args.steps <= version:
                return
        scatter([()] * RANKS)


def follow(model, optimizer):
    """Any other rank: takes part in the steps until rank 0 ends."""
    while True:
        work = scatter()
        if work is None:
            return
        if work:
            step(model, optimizer, *work)


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
    torch.set_num_threads(1)  # more threads do not help a small model
    together(dist.init_process_group, "gloo", None, LIMIT)
    with contextlib.ExitStack() as ends:
        trainer = ends.enter_context(millrace_rl.Run(args.bootstrap, args.run, client=args.client).trainer()) if RANK == 0 else None
        begin = (trainer.shape, trainer.weights(), trainer.state(), trainer.steps) if trainer else None
        shape, weights, state, steps = broadcast(begin)
        model = Decoder(shape).load(weights)
        optimizer = torch.optim.AdamW(model.parameters(), eps=1e-5, weight_decay=0)
        restore(model, optimizer, state, steps)
        if trainer:
            lead(trainer, model, optimizer, args)
            scatter([None] * RANKS)
        else:
            follow(model, optimizer)


if __name__ == "__main__":
    try:
        main()
    except millrace_rl.MillraceError as e:
        sys.exit(f"{type(e).__name__}: {e}")
