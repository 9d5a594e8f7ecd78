"""Curves of a run, read from event files that Millrace wrote, in trackers that refuse what the real ones refuse."""

import collections
import importlib.util
import math
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from millrace_rl import MillraceError, NoSuchRun, track
from millrace_rl.track import Curves

RECORDED = Path(__file__).resolve().parent / "curves"
HELD_OUT = "held-out-392be23f"
STEPS = "events.out.tfevents.1795849547.millrace"


def have(module):
    return importlib.util.find_spec(module) is not None


class Mlflow:
    """What mlflow/utils/validation.py of MLflow 2 and 3 lets through, of the calls that we make; the shorter limit where they differ."""

    def __init__(self):
        self.runs, self.calls = [], []
        self.module = types.ModuleType("mlflow")
        self.module.entities = types.ModuleType("mlflow.entities")
        for name, fields in (("Metric", ("key", "value", "timestamp", "step")), ("Param", ("key", "value")), ("RunTag", ("key", "value"))):
            setattr(self.module.entities, name, collections.namedtuple(name, fields))
        self.module.set_experiment = self.set_experiment
        self.module.MlflowClient = lambda: self

    def installed(self):
        return mock.patch.dict(sys.modules, {"mlflow": self.module, "mlflow.entities": self.module.entities})

    def set_experiment(self, name):
        self.experiment = name
        return types.SimpleNamespace(experiment_id="7")

    def search_runs(self, experiments, filter_string, max_results):
        assert experiments == ["7"] and 0 < max_results
        tag, value = re.fullmatch(r"tags\.`([\w.]+)` = '([^']*)'", filter_string).groups()
        return [run for run in self.runs if run.data.tags.get(tag) == value][:max_results]

    def create_run(self, experiment, start_time, tags, run_name):
        assert experiment == "7" and type(start_time) is int and all(type(value) is str for value in tags.values())
        run = types.SimpleNamespace(info=types.SimpleNamespace(run_id=f"id{len(self.runs)}", run_name=run_name, start_time=start_time, status="RUNNING"),
                                    data=types.SimpleNamespace(tags=dict(tags), params={}), metrics=[])
        self.runs.append(run)
        return run

    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        assert len(metrics) <= 1000 and len(params) <= 100 and len(tags) <= 100 and len(metrics) + len(params) + len(tags) <= 1000
        run = self.runs[int(run_id[2:])]
        self.calls.append(len(metrics))
        for each in (*metrics, *params, *tags):
            assert re.fullmatch(r"[/\w.\- ]+", each.key) and posixpath.normpath(each.key) == each.key and not each.key.startswith("/"), each.key
            assert len(each.key) <= 250
        for each in metrics:
            assert type(each.value) is float and math.isfinite(each.value) and type(each.timestamp) is int and each.timestamp >= 0
            assert type(each.step) is int
            run.metrics.append((each.key, each.value, each.timestamp, each.step))
        for each in params:
            assert type(each.value) is str and len(each.value) <= 500
            assert run.data.params.setdefault(each.key, each.value) == each.value, "params do not change"
        for each in tags:
            assert type(each.value) is str and len(each.value) <= 5000
            run.data.tags[each.key] = each.value

    def set_terminated(self, run_id, status, end_time):
        assert status in ("FINISHED", "FAILED", "KILLED") and type(end_time) is int
        info = self.runs[int(run_id[2:])].info
        info.status, info.end_time = status, end_time


class Wandb:
    """wandb.init and its run in 0.30, offline or with what a server has; of late steps the real one logs nothing but a warning."""

    def __init__(self, folder, offline):
        self.folder, self.offline, self.inits, self.history = Path(folder), offline, [], {}
        self.module = types.ModuleType("wandb")
        self.module.init = self.init

    def installed(self):
        return mock.patch.dict(sys.modules, {"wandb": self.module})

    def init(self, *, project, id, name, group, config, job_type, resume, reinit):
        assert id.strip() == id != "" and not set(id) & set(":;,#?/'"), id
        assert resume in (None, "allow") and reinit == "create_new" and type(config) is dict
        self.inits.append(dict(project=project, id=id, group=group, config=config, job_type=job_type))
        part = self.folder / f"offline-run-20261128_0713{len(self.inits):02}-{id}"
        part.mkdir()
        history = self.history.setdefault(id, [])
        run = types.SimpleNamespace(offline=self.offline, step=0 if self.offline or not history else history[-1][0] + 1, finished=False,
                                    settings=types.SimpleNamespace(wandb_dir=str(self.folder), sync_dir=str(part)))

        def log(data, *, step):
            assert not run.finished and type(step) is int and (not history or step > history[-1][0]), step
            assert all(type(key) is str and type(value) is float for key, value in data.items())
            history.append((step, data))

        run.log, run.finish = log, lambda: setattr(run, "finished", True)
        return run


class TrackTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        for name in ("MLFLOW_EXPERIMENT_NAME", "WANDB_PROJECT"):
            os.environ.pop(name, None)

    def test_should_read_what_millrace_wrote(self):
        rows = list(Curves(RECORDED / "my-run").rows())
        self.assertEqual([(row.step, row.seconds, len(row.values)) for row in rows], [(1, 1795849547.966, 234), (2, 1795849549.574, 236)])
        self.assertAlmostEqual(rows[0].values["critic/score/mean"], 0.05703125, 7)
        self.assertEqual([row.step for row in Curves(RECORDED / "my-run" / HELD_OUT).rows()], [0, 10, 20, 30])

    @unittest.skipIf(not have("tensorboard"), "tensorboard is not installed")
    def test_should_read_what_tensorboard_reads(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        for folder in (RECORDED / "my-run", RECORDED / "my-run" / HELD_OUT):
            theirs = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
            read = {(name, each.step): (each.wall_time, each.value) for name in theirs.Tags()["scalars"] for each in theirs.Scalars(name)}
            ours = {(name, row.step): (row.seconds, value) for row in Curves(folder).rows() for name, value in row.values.items()}
            self.assertEqual(ours, read)

    def test_should_read_each_row_once_as_the_file_grows(self):
        written = (RECORDED / "my-run" / STEPS).read_bytes()
        curves = Curves(self.folder)
        self.assertEqual(list(curves.rows()), [])
        for end, steps in ((50, []), (len(written) - 1, [1]), (len(written), [2])):
            (self.folder / STEPS).write_bytes(written[:end])
            self.assertEqual([row.step for row in curves.rows()], steps)
        (self.folder / "events.out.tfevents.1795849548.millrace").write_bytes(written)
        self.assertEqual([row.step for row in curves.rows()], [1, 2], "of the file that a resumed run begins")

    def test_should_see_the_lock_of_the_process_that_writes(self):
        (self.folder / "writer.lock").touch()
        self.assertFalse(Curves(self.folder).is_written())
        hold = "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.lockf(lock, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-c", hold, self.folder / "writer.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            self.assertTrue(Curves(self.folder).is_written())
            writer.stdin.close()
        self.assertFalse(Curves(self.folder).is_written())

    def test_should_say_what_has_no_curves_and_what_is_not_installed(self):
        with self.assertRaisesRegex(NoSuchRun, "has no steps in TensorBoard's event files; give the folder of a run"):
            track.track("mlflow", self.folder)
        with mock.patch.dict(sys.modules, {"wandb": None}), self.assertRaisesRegex(MillraceError, "no module wandb; 'pip install wandb'"):
            track.track("wandb", RECORDED)
        with mock.patch.dict(sys.modules, {"mlflow": None}), self.assertRaisesRegex(MillraceError, "no module mlflow.*; 'pip install mlflow'"):
            track.track("mlflow", RECORDED)

    @unittest.skipIf(not have("yaml"), "PyYAML is not installed")
    def test_should_log_a_run_to_mlflow_once(self):
        shutil.copytree(RECORDED, self.folder / "curves")
        (self.folder / "config.yaml").write_text("run: {id: my-run}\nmodel: {layers: 2, checkpoint: '', traits: {}}\nlong: " + "x" * 501)
        mlflow = Mlflow()
        with mlflow.installed():
            for _ in range(2):
                self.assertEqual(track.track("mlflow", self.folder), {"my-run": 2, f"my-run-{HELD_OUT}": 30})
        steps, held_out = mlflow.runs
        self.assertEqual(mlflow.experiment, "millrace")
        self.assertEqual((steps.info.run_name, steps.info.start_time, steps.info.end_time, steps.info.status),
                         ("my-run", 1795849547966, 1795849549574, "FINISHED"))
        self.assertEqual(steps.data.params, {"run.id": "my-run", "model.layers": "2", "model.checkpoint": "", "model.traits": "{}", "long": "x" * 500})
        self.assertEqual(len(steps.metrics), 234 + 236)
        self.assertIn(("critic/score/mean", 0.05703125149011612, 1795849547966, 1), steps.metrics)
        self.assertEqual([step for name, *_, step in held_out.metrics if name == "val-core/held_out/reward/mean_at_4"], [0, 10, 20, 30])

    def test_should_split_what_mlflow_does_not_take_at_once_and_resume_after_the_last_whole_step(self):
        mlflow, curves, wide = Mlflow(), Curves(RECORDED / "my-run"), {f"other/{i}": float(i) for i in range(1200)}
        rows = [track.Row(1, 1.0, wide), track.Row(2, 2.0, {"loss": 1.0}), track.Row(3, 3.0, wide)]
        with mlflow.installed():
            run = track._MlflowRun(curves, rows[0], {})
            with mock.patch.object(mlflow, "log_batch", side_effect=[mlflow.log_batch, OSError]) as lost, self.assertRaises(OSError):
                run.log(rows)
            self.assertEqual(lost.call_count, 2)
            self.assertEqual(track._MlflowRun(curves, rows[0], {}).last, -1)
            run.log(rows)
            self.assertEqual(track._MlflowRun(curves, rows[0], {}).last, 3)
        self.assertEqual(mlflow.calls, [999, 201, 1, 999, 201])

    def test_should_log_a_run_to_wandb_once(self):
        for offline in (True, False):
            folder = self.folder / str(offline)
            folder.mkdir()
            wandb = Wandb(folder, offline)
            with wandb.installed():
                for _ in range(2):
                    self.assertEqual(track.track("wandb", RECORDED), {"my-run": 2, f"my-run-{HELD_OUT}": 30})
            self.assertEqual([(step, data["_timestamp"]) for step, data in wandb.history["my-run"]], [(1, 1795849547.966), (2, 1795849549.574)])
            self.assertEqual([step for step, _ in wandb.history[f"my-run-{HELD_OUT}"]], [0, 10, 20, 30])
            self.assertEqual(wandb.inits[0], dict(project="millrace", id="my-run", group="my-run", config={}, job_type="train"))
            self.assertEqual(wandb.inits[1]["job_type"], "evaluate")

    def test_should_follow_until_the_run_ends(self):
        shutil.copytree(RECORDED / "my-run", self.folder / "my-run", ignore=shutil.ignore_patterns(HELD_OUT))
        file = self.folder / "my-run" / STEPS
        written = file.read_bytes()
        file.write_bytes(written[:-1])
        wandb = Wandb(self.folder, True)

        def goes_on(seconds):
            self.assertEqual(len(wandb.history["my-run"]), 1)
            file.write_bytes(written)

        with wandb.installed(), mock.patch.object(Curves, "is_written", side_effect=[True, False]), mock.patch("time.sleep", goes_on):
            self.assertEqual(track.track("wandb", self.folder / "my-run", follow=True), {"my-run": 2})
        self.assertEqual(len(wandb.inits), 1)

    @unittest.skipIf(not have("wandb"), "wandb is not installed")
    def test_should_log_a_run_offline_with_wandb_itself(self):
        environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(self.folder), "PYTHONPATH": os.pathsep.join(sys.path)}
        for _ in range(2):
            done = subprocess.run([sys.executable, "-m", "millrace_rl.track", "wandb", RECORDED], env=environment, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout.splitlines()),
                             (0, ["wandb has my-run up to step 2", f"wandb has my-run-{HELD_OUT} up to step 30"]), done.stderr)
        logs = [file.read_bytes() for file in self.folder.glob("wandb/offline-run-*/run-my-run.wandb")]
        self.assertEqual(sorted(log.count(b"critic/score/mean") > 0 for log in logs), [False, True])


if __name__ == "__main__":
    unittest.main()
