#!/usr/bin/env bash
# Makes a run that collapses, exports it, and asks replay what happened and what other corrections would have led to.
# Usage: infra/examples/collapse/run.sh [FOLDER]   (default runs/collapse; it must be new)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
millrace=$here/../../../millrace
[ -x "$millrace" ] || millrace=$here/../../../bin/millrace # in an archive
out=${1:-runs/collapse}
[ ! -e "$out" ] || { echo "$out is there already; give a new folder" >&2; exit 2; }

# 1. on policy, until the task is half learnt
"$millrace" train --config "$here/run.yaml" --run-dir "$out/run" --plain
from=$(sed -n 's/.*"policy_version" *: *\([0-9][0-9]*\).*/\1/p' "$out/run/summary.json")

# 2. the same run goes on with rollouts up to 64 versions old, and nothing that corrects for it
"$millrace" train --run-dir "$out/run" --plain --set admission.eta=64 --set algorithm.staleness.max_versions=128 \
  --set goal.mean_reward=2 --set learner.max_steps=$((from + 224))

# 3. what can be attached to a bug report
"$millrace" export --run-dir "$out/run" --to "$out/archive"

# 4. what happened, and what other corrections would have made of the same batches
others=()
for name in ppo-clip token-tis token-tis-ess m2po-ess decoupled-ppo-ess; do others+=(--corrections "$here/$name.yaml"); done
"$millrace" replay --archive "$out/archive" --from-version "$from" --corrections decoupled_token_is \
  --corrections decoupled_seq_is --report "$out/what-if"

# 5. would it have come? each correction samples its own rollouts, as old as the recorded ones were, with three sets of draws
"$millrace" replay --archive "$out/archive" --retrain --live --seeds 3 --from-version "$from" "${others[@]}" \
  --report "$out/learnt-again"

# 6. which correction pointed the right way?
"$millrace" replay --archive "$out/archive" --gradients "${others[@]}" --report "$out/gradients" \
  --at-version "$((from + 64)),$((from + 96)),$((from + 128)),$((from + 160)),$((from + 192))"
