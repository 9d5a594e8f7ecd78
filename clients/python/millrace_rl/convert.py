"""Converts files of other systems to records for 'millrace import --records'; docs/how-to/records.md has their fields."""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
import zipfile
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
from numpy.typing import NDArray

from millrace_rl.errors import MillraceError, Refused
from millrace_rl.recorded import PathLike
from millrace_rl.recorder import Recorder, Row, check

_NEEDED = {"step": "step", "mask": "mask", "behavior_log_probs": "log-probs of the sampler", "proximal_log_probs": "log-probs of the trainer",
           "reward": "reward"}
_PER_TOKEN = ("mask", "behavior_log_probs", "proximal_log_probs", "reference_log_probs", "teacher_log_probs", "advantages", "values", "entropies")

#: ours that other fields are made of
_RENAMED = ("step", "tokens", "kept", "weights")


#: what traces say about a sequence, by the number of the step in their path, and tokens
_Known = Dict[Tuple[Optional[int], Tuple[int, ...]], Row]


class System(NamedTuple):
    """A system's names.

    :ivar source: release and commit that they were read from
    :ivar first_step: its number of the step that starts from version 0
    :ivar fields: its names by ours; `tokens` are those of prompt and response, `kept` is 0 at padding, `weights` are 0 where nothing is trained
    """

    source: str
    first_step: int
    fields: Mapping[str, str]


SYSTEMS: Dict[str, System] = {
    "verl": System("0.10.0.dev, commit 1dda039b9c63", 1, {
        "step": "step", "mask": "response_mask", "behavior_log_probs": "rollout_log_probs", "proximal_log_probs": "old_log_probs",
        "reference_log_probs": "ref_log_prob", "reward": "token_level_scores", "advantages": "advantages", "values": "values", "group": "uid",
        "version": "min_global_steps", "tokens": "input_ids", "kept": "attention_mask"}),
    "slime": System("0.3.1, commit 624b824a898a", 0, {
        "step": "rollout_id", "mask": "loss_masks", "behavior_log_probs": "rollout_log_probs", "proximal_log_probs": "log_probs",
        "reference_log_probs": "ref_log_probs", "teacher_log_probs": "teacher_log_probs", "reward": "raw_reward", "advantages": "advantages",
        "values": "values", "tokens": "tokens"}),
    "prime-rl": System("0.8.0, commit 559b44772e47", 1, {
        "step": "step", "mask": "loss_mask", "behavior_log_probs": "inference_logprobs", "proximal_log_probs": "trainer_logprobs",
        "reward": "rewards", "advantages": "advantages", "entropies": "entropy", "group": "group", "version": "policy", "tokens": "token_ids",
        "weights": "rl_weights"}),
    "trl": System("1.10.0.dev0, commit f2cd57710ae3", 1, {"step": "step", "group": "prompt", "advantage": "advantage"}),
    "areal": System("1.0.4, commit 4aef98d8d818", 0, {"version": "tail_version", "group": "task_id", "reward": "reward"})}


def convert(name: str, files: Sequence[PathLike], to: PathLike, *, group_size: int = 0) -> Recorder:
    """Writes the records of each step into a file of a folder; what it has counted is the result's.

    :param name: of :data:`SYSTEMS`
    :param to: folder; a step that it has is not written again
    :param group_size: samples of one prompt, which follow each other, where the files do not say it
    :raises Refused: if the files have no log-probs, or are not of this system
    """
    steps = _steps(name, files, group_size)
    with Recorder(directory=to, strict=True) as recorder:
        for step, version, rows in steps:
            _of_step(name, step, lambda: recorder.step(rows, version=version))
    return recorder


def verify(name: str, files: Sequence[PathLike], *, group_size: int = 0) -> Tuple[int, int, List[str]]:
    """Checks files as :func:`convert` does, and writes nothing.

    :returns: the number of steps and of sequences, and fields of the system's that some sequence lacks
    :raises Refused: as `convert` does
    """
    count = sequences = 0
    lacking: Set[str] = set()
    for step, version, rows in _steps(name, files, group_size):
        _of_step(name, step, lambda: check(rows, version))
        count, sequences = count + 1, sequences + len(rows)
        lacking.update(theirs for ours, theirs in SYSTEMS[name].fields.items() if ours not in _RENAMED and any(ours not in row for row in rows))
    return count, sequences, sorted(lacking)


def _of_step(name: str, step: int, do: Callable[[], Any]) -> None:
    try:
        do()
    except Refused as e:
        raise Refused(f"cannot convert step {step} of {name}: {e}") from None


def _steps(name: str, files: Sequence[PathLike], group_size: int) -> Iterator[Tuple[int, int, List[Row]]]:
    """The system's number of each step, the version that it starts from, and its sequences."""
    system = SYSTEMS[name]
    lacking = [text for field, text in _NEEDED.items() if field not in system.fields]
    if lacking:
        raise Refused(f"cannot convert files of {name}: they hold texts, without {', '.join(lacking)}; record the run while it trains, see "
                      "docs/how-to/records.md#record-a-run-while-it-trains")
    paths = sorted(map(Path, files), key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))])
    known: _Known = {}
    if name == "prime-rl":
        paths = _exports(paths, known)
    return _numbered(system, _rows(name, paths, known), group_size)


def _numbered(system: System, found: Iterator[Tuple[int, Row]], group_size: int) -> Iterator[Tuple[int, int, List[Row]]]:
    for step, of_step in groupby(found, lambda each: each[0]):
        rows = [row for _, row in of_step]
        if group_size:
            rows = [{**row, "group": f"{step}-{i // group_size}"} for i, row in enumerate(rows)]
        yield step, step - system.first_step, rows


def _exports(paths: Sequence[Path], known: _Known) -> List[Path]:
    """The files of token exports; the others are of traces, which are read."""
    exports = []
    for path in paths:
        sources = _read(path)
        first = next(sources, {})
        if "traces" not in first:
            exports.append(path)
            continue
        step_of = re.search(r"step_(\d+)", str(path))
        for source in chain([first], sources):
            known.update(((int(step_of[1]) if step_of else None, tokens), row) for tokens, row in _episode(source))
    if not exports:
        raise Refused("cannot convert files of prime-rl: none has log-probs of the trainer; give token_exports/step_*/rank_*.jsonl of "
                      "enable_token_export too")
    return exports


def _rows(name: str, paths: Sequence[Path], known: _Known) -> Iterator[Tuple[int, Row]]:
    """Each sequence with the system's number of its step."""
    for path in paths:
        for source in _read(path):
            if known:
                tokens = tuple(source.get("token_ids", ()))
                found = known.get((source.get("step"), tokens), known.get((None, tokens)))
                if found is None:
                    raise Refused(f"cannot convert {path}: no trace has a sequence of step {source.get('step')}, so its reward is unknown; give "
                                  "rollouts/step_*/train/effective/traces.jsonl of the same steps")
                source = {**source, **found}
            row = _row(name, path, source)
            yield int(row.pop("step")), row


def _read(path: Path) -> Iterator[Row]:
    try:
        if path.suffix == ".pt":
            yield from _saved(path)
        else:
            with open(path, encoding="utf-8") as lines:
                yield from map(json.loads, lines)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, pickle.UnpicklingError) as e:
        raise Refused(f"cannot read {path}: {e}; give JSON lines, or a dict of tensors, lists and numbers that torch.save has written") from None


#: of torch's storages
_TYPES = {"DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "BFloat16Storage": "<u2", "LongStorage": "<i8", "IntStorage": "<i4",
          "ShortStorage": "<i2", "CharStorage": "<i1", "ByteStorage": "<u1", "BoolStorage": "?"}


class _Plain(pickle.Unpickler):
    """Reads what torch.save has written, without torch: arrays for tensors, and no other object of a class."""

    def __init__(self, archive: zipfile.ZipFile):
        self._archive = archive
        self._folder = next((name[:-8] for name in archive.namelist() if name.endswith("/data.pkl")), "")
        super().__init__(archive.open(self._folder + "data.pkl"))

    def find_class(self, module: str, name: str) -> Any:
        known: Dict[Tuple[str, str], Any] = {("collections", "OrderedDict"): dict, ("torch._utils", "_rebuild_tensor_v2"): _tensor,
                                             ("torch", name): _TYPES.get(name)}
        if known.get((module, name)) is None:
            raise pickle.UnpicklingError(f"it has an object of {module}.{name}")
        return known[module, name]

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        _, kind, key, _, _ = pid
        numbers: NDArray[Any] = np.frombuffer(self._archive.read(f"{self._folder}data/{key}"), kind)
        if kind == _TYPES["BFloat16Storage"]:
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        return numbers


def _tensor(storage: NDArray[Any], offset: int, size: Tuple[int, ...], stride: Tuple[int, ...], *_: Any) -> NDArray[Any]:
    width = storage.itemsize
    array: NDArray[Any] = np.ndarray(size, storage.dtype, storage.data, offset * width, [each * width for each in stride])
    return array


def _saved(path: Path) -> Iterator[Row]:
    """The sequences of a file of torch: columns, or slime's samples."""
    with zipfile.ZipFile(path) as archive:
        saved = _Plain(archive).load()
    if "samples" in saved:
        for i, sample in enumerate(saved["samples"]):
            position = sample.get("rollout_position", i)
            raw = {"raw_reward": saved["raw_reward"][position]} if "raw_reward" in saved else {}
            yield {"rollout_id": saved["rollout_id"], **sample, **raw}
    else:
        columns = {name: value for name, value in saved.items() if isinstance(value, list) or np.ndim(value)}
        shared = {name: value for name, value in saved.items() if name not in columns}
        for i in range(min(map(len, columns.values()), default=0)):
            yield {**shared, **{name: column[i] for name, column in columns.items()}}


def _episode(source: Mapping[str, Any]) -> Iterator[Tuple[Tuple[int, ...], Row]]:
    """What an episode of prime-rl says about each of its branches, by the branch's tokens."""
    for trace in source.get("traces", ()):
        row: Row = {"rewards": sum(each["score"] * each["weight"] for each in trace["rewards"].values() if each)}
        if source.get("group"):
            row["group"] = source["group"]["id"]
        policy = ((source.get("run") or {}).get("work") or {}).get("policy")
        if policy:
            row["policy"] = policy["start"]
        nodes = trace["nodes"]
        parents = {node.get("parent") for node in nodes}
        for leaf in (i for i in range(len(nodes)) if i not in parents):
            path: List[List[int]] = []
            at: Optional[int] = leaf
            while at is not None:
                path.append(nodes[at]["token_ids"])
                at = nodes[at].get("parent")
            yield tuple(token for tokens in reversed(path) for token in tokens), row


def _row(name: str, path: Path, source: Mapping[str, Any]) -> Row:
    fields = SYSTEMS[name].fields
    found: Row = {}
    for ours, theirs in fields.items():
        value = source.get(theirs)
        if value is not None:
            found[ours] = value.tolist() if hasattr(value, "tolist") else value
    lacking = [f"{text} ({fields[field]})" for field, text in _NEEDED.items() if field not in found]
    if lacking:
        raise Refused(f"cannot convert {path}: it has no {', '.join(lacking)}; give files that docs/how-to/files-of-others.md names, "
                      f"or record {name} while it trains")
    mask, tokens = found["mask"], found.pop("tokens", [])
    weights = found.pop("weights", mask)
    mask = found["mask"] = [int(bool(kept) and weight != 0) for kept, weight in zip(mask, weights)]
    kept = found.pop("kept", None)
    end = len(mask) if kept is None else sum(kept[-len(mask):])
    if kept is not None:
        tokens = [token for token, is_there in zip(tokens, kept) if is_there]
    start = mask.index(1) if 1 in mask[:end] else 0  # what comes before the first trained token is prompt
    row = {field: value[start:end] if field in _PER_TOKEN else value for field, value in found.items()}
    if tokens:
        row["prompt_tokens"], row["response_tokens"] = tokens[:len(tokens) - end + start], tokens[len(tokens) - end + start:]
    reward = found["reward"]
    return {**row, "reward": sum(reward) if isinstance(reward, list) else reward}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m millrace_rl.convert",
                                     description="Converts files of another system to records; docs/how-to/files-of-others.md has their fields.")
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("files", nargs="+")
    result = parser.add_mutually_exclusive_group(required=True)
    result.add_argument("--to", metavar="FOLDER", help="folder for the records, a file per step")
    result.add_argument("--verify", action="store_true", help="only check the files")
    parser.add_argument("--group-size", type=int, default=0, help="samples of one prompt, which follow each other; slime's n_samples_per_prompt")
    given = parser.parse_args()
    try:
        if given.verify:
            steps, sequences, lacking = verify(given.system, given.files, group_size=given.group_size)
            print(f"{steps} steps of {sequences} sequences can be converted" + (f"; without {', '.join(lacking)}" if lacking else ""))
            return
        recorder = convert(given.system, given.files, given.to, group_size=given.group_size)
    except MillraceError as e:
        sys.exit(f"millrace_rl.convert: {e}")
    print(f"{recorder.recorded} steps written to {given.to}, {recorder.repeated} were there")


if __name__ == "__main__":
    main()
