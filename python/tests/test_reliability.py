"""Many runs, several at once, in other processes, and nothing that breaks."""

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import vti

from conftest import measured

# The quickest answer: exact, with few draws.
TINY = dict(response="y", threads=1, set={"check.draws": 100})


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_a_thousand_fits_do_not_grow(monkeypatch):
    frame = measured(12)[["a", "y"]]
    # In memory: a disk would take most of the time.
    if os.path.isdir("/dev/shm"):
        monkeypatch.setattr("tempfile.tempdir", "/dev/shm")
    sizes, kept = [], []
    for number in range(1000):
        vti.select(frame, **TINY)
        if number % 100 == 99:
            gc.collect()
            sizes.append(resident())
            kept.append((len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))))
    # After the first few hundred, which fill what is kept for later.
    assert sizes[-1] - sizes[2] < 6e6, sizes
    assert max(kept) <= kept[0], kept


def test_two_threads_at_once():
    expected = vti.select(measured(), **TINY).summary
    found = {}

    def work(place):
        found[place] = vti.select(measured(), **TINY).summary

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for summary in found.values():
        assert summary["models"] == expected["models"] and summary["coefficients"] == expected["coefficients"]


def evidence_here(_: int) -> float:
    return float(vti.select(measured(), **TINY).log_evidence)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_other_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    answer = vti.select(measured(), **TINY)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(evidence_here, range(3))
    assert found == [float(answer.log_evidence)] * 3
    # Those that came from here have not taken the directory with them.
    assert (answer.path / "summary.json").exists() and len(answer.sample(2)) == 2


def test_forks_that_end_by_themselves():
    answer = vti.select(measured(), **TINY)
    child = os.fork()
    if child == 0:
        code = 0 if abs(evidence_here(0) - float(answer.log_evidence)) < 1e-12 else 1
        sys.stdout.flush()
        # As `sys.exit` does, with everything that runs at exit.
        import atexit

        atexit._run_exitfuncs()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0 and answer.path.exists()


def seconds_of(code: str) -> float:
    """Seconds of a processor that a program takes: whoever else computes on this machine does not count."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_import_is_quick():
    times = [seconds_of("import vti") - seconds_of("pass") for _ in range(5)]
    assert min(times) < 0.3, times


def test_what_it_needs_is_numpy_and_pandas():
    # A compiler, or one of the packages that only some methods need, must not be there.
    script = """
        import sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {"arviz", "IPython", "jax", "matplotlib", "networkx", "polars", "pyarrow", "sklearn", "torch", "xarray"}:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Absent())
        import vti
        answer = vti.select("builtin:prostate", response="lpsa")
        assert answer.verdict.kind is vti.VerdictKind.TRUST and len(answer.inclusion) == 8
        again = vti.select({"x": list(range(9)), "z": [3, 1, 2] * 3, "y": [0.1, 1.2, 1.9] * 3}, response="y")
        print(len(answer.report()) > 10_000, len(again.predict({"x": [1], "z": [2]})))
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env={"PATH": ""})
    assert found.stdout == "True 1\n", found.stderr


def test_other_threads_run_while_we_compute():
    handle = vti.select(measured(), response="y", likelihood="student-t:4", prior="normal:1", method="vti", background=True, steps=100_000)
    # The interpreter is not held: Python code is about as quick as without a run, on two cores.
    time.sleep(0.3)
    longest = 0.0
    for _ in range(50):
        start = time.monotonic()
        time.sleep(0.002)
        sum(range(1000))
        longest = max(longest, time.monotonic() - start)
    handle.stop()
    handle.result()
    assert longest < 0.5, longest


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 5e-324])
def test_strange_numbers_never_break(value):
    frame = measured()
    frame.loc[4, "b"] = value
    try:
        assert np.isfinite(float(vti.select(frame, **TINY).log_evidence))
    except (ValueError, RuntimeError) as error:
        assert "defect" not in str(error)
