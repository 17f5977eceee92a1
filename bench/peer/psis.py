"""Pareto-smoothed importance sampling by ArviZ, as an oracle.

    python psis.py OUT.json    log weights, their smoothed tails and k-hat
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import arviz
import numpy as np


def pareto(generator: np.random.Generator, size: int, k: float) -> np.ndarray:
    """Log weights whose tail is generalised Pareto with shape k."""
    u = 1.0 - generator.random(size)
    return np.log1p((u**-k - 1.0) / k)


def inputs() -> dict[str, np.ndarray]:
    """Named log weights, rounded so that they are short in the file."""
    generator = np.random.default_rng(20240501)
    cases = {
        "light, 30": pareto(generator, 30, -0.3),
        "light, 100": pareto(generator, 100, -0.3),
        "k = 0.2, 1000": pareto(generator, 1000, 0.2),
        "k = 0.5, 4000": pareto(generator, 4000, 0.5),
        "k = 0.7, 1000": pareto(generator, 1000, 0.7),
        "k = 1, 4000": pareto(generator, 4000, 1.0),
        "k = 1, 33": pareto(generator, 33, 1.0),
        "k = 0.7, 222": pareto(generator, 222, 0.7),
        "normal, 1000, huge offset": 1e4 + generator.normal(size=1000),
        "wide normal, 100, huge negative offset": -1e4 + 30.0 * generator.normal(size=100),
        "beyond the range of exp, 1000": 400.0 * generator.normal(size=1000),
        "ties, 1000": np.round(pareto(generator, 1000, 0.5), 1),
        "few values, 100": np.round(pareto(generator, 100, 0.5)),
    }
    zeros = pareto(generator, 1000, 0.5)
    zeros[generator.random(1000) < 0.3] = -np.inf
    cases["zeros, 1000"] = zeros
    mostly = np.full(100, -np.inf)
    mostly[:12] = pareto(generator, 12, 0.5)
    cases["mostly zeros, 100"] = mostly
    cases["too few, 20"] = pareto(generator, 20, 0.5)
    outweighed = generator.normal(size=100)
    outweighed[7] = 1000.0
    cases["one outweighs all, 100"] = outweighed
    return {name: np.round(values, 6) for name, values in cases.items()}


def number(value: float) -> float | str:
    """A number as JSON allows it."""
    return float(value) if np.isfinite(value) else str(float(value))


def case(name: str, raw: np.ndarray) -> dict[str, object]:
    """What ArviZ makes of log weights; only those it changed are written, before normalisation."""
    smoothed, khat = arviz.psislw(raw.copy(), normalize=False)
    normalised, _ = arviz.psislw(raw.copy())
    log_total = float((smoothed - normalised)[raw.argmax()])
    # What is left is rounding: ArviZ takes the largest off and adds it again.
    with np.errstate(invalid="ignore"):
        changed = np.flatnonzero(np.abs(smoothed - raw) > 1e-14 * np.abs(raw))
    return {
        "name": name,
        "log_weights": [number(value) for value in raw],
        "khat": number(khat),
        "log_total": log_total,
        "changed": [[int(place), float(smoothed[place])] for place in changed],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Pareto-smoothed importance sampling by ArviZ")
    parser.add_argument("out", type=Path)
    result = {
        "arviz": arviz.__version__,
        "numpy": np.__version__,
        "cases": [case(name, raw) for name, raw in inputs().items()],
    }
    parser.parse_args().out.write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
