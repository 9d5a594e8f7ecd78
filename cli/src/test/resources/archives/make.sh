#!/usr/bin/env bash
# Makes an archive of a small run, to be read and proved by every later version (RecordedArchivesTest).
#
#   cli/src/test/resources/archives/make.sh cli/src/test/resources/archives/contract-3
#
# The run is stopped and goes on once, so that its tasks begin again; groups of equal rewards leave, so that there are outcomes;
# a preset is named, so that the settings' text has to spell it out. Weights are left out: the topology does not read them.
# An archive that is here is never made again. A change of what is recorded adds another one.
set -euo pipefail
to=${1:?give the new folder of the archive}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../../.." && pwd -P)
millrace=${MILLRACE:-$root/millrace}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run() {
  "$millrace" train --plain --run-dir "$scratch/run" --max-steps "$1" "${@:2}"
}
run 3 --set run.id=recorded \
  --set admission.batch_sequences=32 --set topology.batch.sequences=32 --set admission.group_size=4 \
  --set generator.slots=32 --set topology.groups.min_size=2 --set topology.groups.zero_variance=drop \
  --set topology.batch.order=submission \
  --set algorithm.variant=decoupled_k3_rs_token_tis
run 6
"$millrace" export --run-dir "$scratch/run" --to "$to" --without weights,optimizer-state
"$millrace" replay --archive "$to"
