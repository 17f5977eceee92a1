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

# The same of numbers of components: particles look at every number, few of them here.
COUNTED = dict(
    steps=20,
    check="none",
    set={"train.particles.particles": 64, "train.batch": 64, "check.draws": 400},
    threads=1,
)


def changing(rows: int = 36) -> pd.DataFrame:
    """Values around two means, with a change after a third of the rows."""
    i = np.arange(rows)
    return pd.DataFrame({"t": 0.5 * i, "v": 2.0 * (3 * i >= rows) + 0.5 * np.sin(12.9898 * i) * np.cos(4.1 * i)})


def sounded() -> pd.DataFrame:
    """Magnetotelluric data over a layer of 100 Ωm above one of about 20 Ωm."""
    return pd.DataFrame(
        {
            "period": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0],
            "resistivity": [101.0, 97.0, 92.0, 41.0, 26.0, 21.0],
            "phase": [45.2, 44.5, 52.0, 57.0, 51.0, 47.0],
        }
    )
