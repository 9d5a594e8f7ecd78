"""Errors. Every message is a sentence with the value, the bound, and the way out."""

from __future__ import annotations

from typing import Optional


class MillraceError(Exception):
    """The base of all errors of this package."""


class Unreachable(MillraceError):
    """No broker or registry answers, or it refuses the login."""


class NoSuchRun(MillraceError):
    """The cluster or the folder has no such run, or it has no data yet."""


class Refused(MillraceError, ValueError):
    """A value that must not go onto the log. Nothing was written."""


class Malformed(MillraceError):
    """Invalid bytes on the log."""


class Missing(MillraceError):
    """The requested data was not recorded, is not there yet, or is no longer kept."""


class TakenOver(MillraceError):
    """Another process has replaced this trainer or this generator's id. Stop."""


class NotCommitted(MillraceError):
    """A transaction was aborted, and nothing of it is on the log. The message says whether to retry.

    :ivar code: of the client's error; None otherwise
    """

    code: Optional[int] = None


class Uncertain(MillraceError):
    """The broker did not say whether a transaction is committed. It is atomic; a new trainer or generator finds out."""
