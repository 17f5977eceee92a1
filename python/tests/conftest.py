"""Small tables whose answers are known to be quick."""

import os
import subprocess

import numpy as np
import pandas as pd
import pytest


def measured(rows: int = 40) -> pd.DataFrame:
    """A response, two covariates that matter, one that does not, and a category."""
    i = np.arange(rows)
    frame = pd.DataFrame({"a": np.sin(1.3 * i), "b": np.cos(0.7 * i) + 0.01 * i, "c": np.sin(2.9 * i)})
    frame["group"] = np.array(["low", "mid", "high"])[i % 3]
    noise = 0.4 * np.sin(12.9898 * i) * np.cos(4.1 * i)
    frame["y"] = 1.0 + 2.0 * frame["a"] - 0.5 * frame["b"] + 0.3 * (i % 3 == 2) + noise
    return frame


@pytest.fixture
def frame() -> pd.DataFrame:
    return measured()


@pytest.fixture(scope="session")
def command():
    """Runs the command itself."""
    path = os.environ.get("VTI_COMMAND")
    if path is None:
        pytest.skip("VTI_COMMAND does not name the command")

    def run(*arguments: str, cwd=None) -> str:
        done = subprocess.run([path, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


# A fit that is learned and takes a second or two; its answer is not good.
QUICK = dict(method="vti", steps=40, check="none", set={"train.batch": 64, "check.draws": 400}, threads=2)
