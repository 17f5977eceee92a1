"""Runs one can live with: in the background, paused, stopped, interrupted, resumed, loaded."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import types

import pytest

import vti

from conftest import QUICK, measured

LONG = dict(QUICK, steps=1_000_000)


def wait_for_steps(handle, steps=5):
    end = time.monotonic() + 60
    while (handle.progress.step or 0) < steps:
        assert time.monotonic() < end and not handle.done
        time.sleep(0.02)


def ask(**options):
    return vti.select(measured(), response="y", likelihood="student-t:4", prior="normal:1", **options)


def test_a_run_in_the_background():
    handle = ask(background=True, **LONG)
    wait_for_steps(handle)
    progress = handle.progress
    assert progress.steps is None or progress.steps >= 1_000_000 - 1
    assert progress.bound is not None and progress.entropy is not None and "step" in str(progress)
    handle.pause()
    assert handle.paused
    time.sleep(0.3)
    stopped_at = handle.progress.step
    time.sleep(0.3)
    assert handle.progress.step == stopped_at
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.1)
    handle.resume()
    wait_for_steps(handle, stopped_at + 5)
    handle.stop()
    answer = handle.result(timeout=30)
    assert answer.stopped and answer.summary["steps"] > stopped_at
    assert answer.verdict.kind is vti.VerdictKind.DO_NOT_TRUST
    assert handle.done and handle.result() is answer and "over" in repr(handle)
    assert any("y from 4 optional terms" in note for note in answer.notes)


def test_results_and_errors_of_handles():
    handle = vti.select(measured(), response="y", background=True)
    assert handle.result(timeout=60).verdict.kind is vti.VerdictKind.TRUST
    failing = vti.select(measured().assign(y=1.0), response="y", background=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="y"):
            failing.result()


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    run = dict(QUICK, steps=120, out=tmp_path / "run", seed=6)
    handle = ask(background=True, **run)
    wait_for_steps(handle, 10)
    handle.stop()
    first = handle.result().summary["steps"]
    assert first < 120
    # Again, while it goes on.
    handle = ask(background=True, resume=True, **run)
    wait_for_steps(handle, first + 3)
    handle.stop()
    assert first < handle.result().summary["steps"] < 120
    resumed = ask(resume=True, **run)
    whole = ask(**dict(run, out=None))
    assert resumed.summary["steps"] == 120
    for key in ("models", "inclusion", "coefficients", "log_evidence", "elbo"):
        assert resumed.summary[key] == whole.summary[key], key
    with pytest.raises(ValueError, match="finished run"):
        ask(**run)
    assert ask(force=True, **run).summary["models"] == whole.summary["models"]


def interrupted(asked: str, shown: str, seconds: float = 2.5) -> str:
    """What a program prints that asks, gets Ctrl-C after some seconds, and has a second to go on; it ends by itself."""
    script = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import numpy as np, vti
        from conftest import COUNTED, QUICK, measured
        LONG = dict(QUICK, steps=1_000_000)
        random = np.random.default_rng(1)
        print("begun", flush=True)
        try:
            answer = {asked}
            print({shown}, flush=True)
        except KeyboardInterrupt:
            print("nothing yet", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    time.sleep(seconds)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    found = process.stdout.readline()
    # Within a second, on cores that others use as well.
    assert time.monotonic() - sent < 2.0
    # And it ends, whatever is still being computed.
    assert process.wait(timeout=30) == 0
    return found.strip()


@pytest.mark.parametrize(
    "asked",
    [
        "vti.select(measured(), response='y', likelihood='student-t:4', prior='normal:1', **LONG)",
        "vti.dag(measured().drop(columns='group'), hidden=2, **LONG)",
        "vti.fit(lambda words, theta, mask: (-0.5 * (theta**2).sum(1), -theta), vti.Subsets(3), **LONG)",
    ],
    ids=["select", "dag", "own"],
)
def test_ctrl_c_stops_within_a_second_and_gives_what_there_is(asked):
    assert interrupted(asked, "answer.stopped, answer.summary['steps'] > 0, answer.verdict.kind.name") == "True True DO_NOT_TRUST"


def test_ctrl_c_before_the_first_step():
    # Particles look at every number of components before training begins.
    asked = "vti.mixture(random.normal(size=40), max_components=6, threads=1, set={'check.draws': 400})"
    assert interrupted(asked, "answer.stopped", 1.5) in ("True", "nothing yet")


def test_ctrl_c_while_all_models_are_summed():
    # There is nothing to ask whether to stop; the caller gets the prompt back all the same.
    asked = "vti.select(random.normal(size=(400, 20)), random.normal(size=400), prior='normal:1', threads=1)"
    assert interrupted(asked, "'over already'", 1.5) == "nothing yet"


def test_progress_is_shown_on_request(capfd):
    ask(progress=True, **dict(QUICK, steps=400))
    shown = capfd.readouterr().err
    assert "bound" in shown and "entropy" in shown
    ask(**QUICK)
    assert capfd.readouterr().err == ""


def test_places_are_removed_with_their_answers(tmp_path):
    answer = vti.select(measured(), response="y")
    path = answer.path
    assert (path / "summary.json").exists()
    del answer
    assert not path.exists()
    kept = vti.select(measured(), response="y", out=tmp_path / "kept")
    summary = kept.summary
    del kept
    assert vti.load(tmp_path / "kept").summary == summary


def test_an_interpreter_that_ends_first():
    script = """
        import vti, numpy as np
        def density(words, theta, mask):
            return -0.5 * (theta**2).sum(1), -theta
        handle = vti.fit(density, vti.Subsets(3), background=True, steps=1_000_000)
        import time; time.sleep(1.0)
        print("bye")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0 and done.stdout == "bye\n", done.stderr


def test_progress_in_a_notebook(monkeypatch):
    shown = []

    class Display:
        def update(self, html):
            shown.append(html.text)

    class Html:
        def __init__(self, text):
            self.text = text

    module = types.ModuleType("IPython.display")
    module.HTML, module.display = Html, lambda html, display_id: Display()
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    ask(**dict(QUICK, steps=400))
    assert any("bound" in text and "<pre>" in text for text in shown) and shown[-1] == ""
