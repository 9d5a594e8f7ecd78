#!/usr/bin/env bash
# Makes an archive of a small run whose clip saturates: the branch E of the decision tree, which RecordedSaturationTest reads and learns again.
#
#   cli/src/test/resources/sick/make.sh cli/src/test/resources/sick/clip-saturation
#
# Four passes over every batch and a rate of 0.03 that is still being warmed up: each step moves the policy further than the one before it, past a
# clip of 0.2. Whether ten steps suffice differs from run to run, so a run that does not show it is made again. Weights are kept, as few and as small as
# they can be, since only learning again shows what the patch does.
set -euo pipefail
to=${1:?give the new folder of the archive}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../../.." && pwd -P)
millrace=${MILLRACE:-$root/millrace}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for attempt in 1 2 3 4 5 6 7 8; do
  "$millrace" train --plain --run-dir "$scratch/run" --max-steps 10 --set run.id=clipped \
    --set algorithm.variant=decoupled_ppo --set algorithm.epochs=4 \
    --set learner.step.optimizer.learning_rate=0.03 --set learner.step.optimizer.warm_up_steps=60 \
    --set model.hidden_size=16 --set model.intermediate_size=32 --set model.layers=1 \
    --set model.heads=2 --set model.kv_heads=2 --set model.head_size=8 \
    --set admission.batch_sequences=64 --set topology.batch.sequences=64 --set generator.slots=64 \
    --set weights.checkpoint_every=100 --set weights.anchor_every=100 --set topics.partitions=1
  "$millrace" export --run-dir "$scratch/run" --to "$scratch/archive"
  if "$millrace" doctor --archive "$scratch/archive" --json | grep -q '"fix" : "lower_pressure"'; then
    mv "$scratch/archive" "$to"
    exit
  fi
  printf 'attempt %s does not reach the branch\n' "$attempt" >&2
  rm -rf "$scratch/run" "$scratch/archive"
done
exit 1
