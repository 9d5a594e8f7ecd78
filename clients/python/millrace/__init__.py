"""Trainers and generators in Python for Millrace."""

from millrace.batch import Batch, Padded
from millrace.errors import (
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
from millrace.generator import Generator, Request
from millrace.run import Run
from millrace.table import Table
from millrace.trainer import Trainer

__all__ = [
    "Batch", "Generator", "Malformed", "MillraceError", "Missing", "NoSuchRun", "NotCommitted", "Padded", "Refused", "Request", "Run",
    "Table", "TakenOver", "Trainer", "Uncertain", "Unreachable",
]
