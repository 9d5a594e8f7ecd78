"""Trainers, generators and analyses in Python for Millrace."""

from millrace_rl.batch import Batch, Padded
from millrace_rl.errors import (
    Malformed,
    MillraceError,
    Missing,
    NoSuchRun,
    NotCommitted,
    Refused,
    TakenOver,
    Uncertain,
    Unreachable,
)
from millrace_rl.generator import Generator, Request
from millrace_rl.recorded import RecordedRun
from millrace_rl.recorder import Recorder
from millrace_rl.run import Run
from millrace_rl.table import Table
from millrace_rl.trainer import Trainer

__all__ = [
    "Batch", "Generator", "Malformed", "MillraceError", "Missing", "NoSuchRun", "NotCommitted", "Padded", "RecordedRun", "Recorder", "Refused", "Request",
    "Run", "Table", "TakenOver", "Trainer", "Uncertain", "Unreachable",
]
