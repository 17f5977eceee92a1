"""Runs under way: shown, paused, stopped, and waited for."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._vti import Job

if TYPE_CHECKING:
    from ._answer import Answer

# Seconds between two looks at a run, between two pictures of its progress, and until a run that nobody can stop is left alone.
_LOOK, _SHOW, _PATIENCE = 0.05, 0.2, 0.5


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    text: str
    step: int | None
    steps: int | None
    bound: float | None
    entropy: float | None
    seconds_left: float | None

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f"  {self.seconds_left:.0f} s left"
        return self.text + left


class Place:
    """Where a run goes: a directory that the caller named, or one that is removed when nobody needs it any more."""

    def __init__(self, named: Any = None) -> None:
        self.is_kept = named is not None
        self.path = Path(named) if self.is_kept else Path(tempfile.mkdtemp(prefix="vti-"))
        if not self.is_kept:
            weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, process: int) -> None:
    # Not by a process that was forked from the one whose directory it is.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


class Handle:
    """A run in the background."""

    def __init__(self, job: Job, place: Place, calls_python: bool = False) -> None:
        self._job, self._place, self._calls_python = job, place, calls_python
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        _under_way.add(self)

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        return Progress(**self._job.progress())

    @property
    def notes(self) -> list[str]:
        """How the data were understood, and what was chosen."""
        return self._job.notes()

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._place.path

    @property
    def done(self) -> bool:
        """Whether it is over."""
        return self._job.wait(0.0)

    @property
    def paused(self) -> bool:
        """Whether it waits, or will at its next step."""
        return self._job.is_paused

    def pause(self) -> None:
        """Lets it wait at its next step, until `resume`."""
        self._job.pause()

    def resume(self) -> None:
        """Lets it go on."""
        self._job.go_on()

    def stop(self) -> None:
        """Ends it at its next step; `result` is then what there was. Sums over all models have no steps, and go on to their end."""
        self._job.stop()

    def result(self, timeout: float | None = None) -> Answer:
        """The answer, once it is there. Raises what went wrong, or `TimeoutError`."""
        self._wait(timeout, None)
        if self._error is None and self._answer is None:
            from ._answer import Answer

            try:
                self._answer = Answer(self._job.take(), self._place, tuple(self.notes), self._job.is_stopped)
            except BaseException as error:
                self._error = error
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def _wait(self, timeout: float | None, show: Callable[[Progress], None] | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        shown = time.monotonic()
        # Short waits, so that signals are heard in between.
        while not self._job.wait(_LOOK):
            now = time.monotonic()
            if end is not None and now >= end:
                raise TimeoutError(f"the run is not over after {timeout} s")
            if show is not None and now - shown >= _SHOW:
                shown = now
                show(self.progress)

    def _finish(self, progress: bool | None) -> Answer:
        """The answer of a run in the foreground: Ctrl-C stops it, and what there is is the answer."""
        show = _display(progress)
        try:
            self._wait(None, show)
        except KeyboardInterrupt as interrupt:
            self.stop()
            try:
                # Who tells nothing asks nobody whether to stop, such as sums over all models.
                return self.result(None if self.progress.text else _PATIENCE)
            except TimeoutError:
                self._leave_alone()
                raise interrupt from None
            except ValueError:
                # There was nothing to tell yet.
                raise interrupt from None
        finally:
            if show is not None:
                show(None)
        return self.result()

    def _leave_alone(self) -> None:
        _left_alone[:] = [handle for handle in (*_left_alone, self) if not handle.done]
        if not self._calls_python:
            # It has nothing to save, and the process may end before it does.
            _under_way.discard(self)

    def __repr__(self) -> str:
        state = "over" if self.done else "paused" if self.paused else str(self.progress)
        return f"<vti run in {self.path}: {state}>"


_under_way: weakref.WeakSet[Handle] = weakref.WeakSet()
# Runs whose caller is gone; their directories stay for as long as they write.
_left_alone: list[Handle] = []


@atexit.register
def _stop_all() -> None:
    # The interpreter does not go away under a run that may still call into it.
    waiting = [handle for handle in _under_way if not handle.done]
    for handle in waiting:
        handle.stop()
    for handle in waiting:
        handle._job.wait(60.0)


def _forget() -> None:
    _under_way.clear()
    _left_alone.clear()


if hasattr(os, "register_at_fork"):
    # Threads do not follow into a process that is forked.
    os.register_at_fork(after_in_child=_forget)


def _display(progress: bool | None) -> Callable[[Progress | None], None] | None:
    """Shows progress in a notebook or on a terminal; nowhere else unless it is asked for."""
    if progress is False:
        return None
    if "ipykernel" in sys.modules:
        return _in_notebook()
    if progress or sys.stderr.isatty():
        return _on_terminal
    return None


def _on_terminal(progress: Progress | None) -> None:
    text = "" if progress is None else str(progress)[: shutil.get_terminal_size().columns - 1]
    print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


def _in_notebook() -> Callable[[Progress | None], None]:
    from IPython.display import HTML, display

    import html

    shown = display(HTML(""), display_id=True)

    def show(progress: Progress | None) -> None:
        text = "" if progress is None else f"<pre>{html.escape(str(progress))}</pre>"
        shown.update(HTML(text))

    return show
