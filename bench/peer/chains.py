"""Diagnostics of chains by ArviZ, as an oracle.

    python chains.py OUT.json    chains, their split R-hat, effective sample size and standard error
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import arviz
import numpy as np


def autoregressive(
    generator: np.random.Generator, shape: tuple[int, int], phi: float
) -> np.ndarray:
    """Stationary chains x' = phi x + noise with variance 1."""
    chains = np.empty(shape)
    chains[:, 0] = generator.normal(size=shape[0])
    for i in range(1, shape[1]):
        noise = np.sqrt(1.0 - phi**2) * generator.normal(size=shape[0])
        chains[:, i] = phi * chains[:, i - 1] + noise
    return np.round(chains, 4)


def binary(
    generator: np.random.Generator, shape: tuple[int, int], up: float, down: float
) -> np.ndarray:
    """Chains over 0 and 1 with probabilities of changing."""
    chains = np.zeros(shape)
    for i in range(1, shape[1]):
        leave = np.where(chains[:, i - 1] == 0.0, up, down)
        chains[:, i] = np.abs(chains[:, i - 1] - (generator.random(shape[0]) < leave))
    return chains


def inputs() -> dict[str, np.ndarray]:
    """Named chains."""
    generator = np.random.default_rng(20240502)
    stuck = autoregressive(generator, (3, 200), 0.5)
    stuck[1] = 2.0
    rare = np.zeros((4, 500))
    rare[2, 137] = 1.0
    apart = np.repeat([[0.0], [1.0], [1.0]], 50, axis=1)
    drift = autoregressive(generator, (1, 300), 0.3) + np.linspace(0.0, 3.0, 300)
    return {
        "independent": autoregressive(generator, (4, 500), 0.0),
        "phi = 0.5": autoregressive(generator, (4, 500), 0.5),
        "phi = 0.95": autoregressive(generator, (4, 500), 0.95),
        "phi = -0.7": autoregressive(generator, (4, 200), -0.7),
        "phi = 0.999": autoregressive(generator, (2, 100), 0.999),
        "odd length": autoregressive(generator, (3, 101), 0.5),
        "shortest": autoregressive(generator, (2, 4), 0.0),
        "short": autoregressive(generator, (2, 7), 0.9),
        "one stuck": stuck,
        "one drifting": np.round(drift, 4),
        "binary": binary(generator, (4, 500), 0.1, 0.3),
        "sticky binary": binary(generator, (4, 501), 0.01, 0.02),
        "alternating binary": binary(generator, (2, 150), 0.9, 0.95),
        "one visit": rare,
        "stuck apart": apart,
    }


def case(name: str, chains: np.ndarray) -> dict[str, object]:
    """What ArviZ says; an infinity becomes a string."""
    with np.errstate(divide="ignore"):
        found = {
            "rhat": arviz.rhat(chains, method="split"),
            "ess": arviz.ess(chains, method="mean"),
            "mcse": arviz.mcse(chains, method="mean"),
        }
    numbers = {what: float(x) if np.isfinite(x) else str(float(x)) for what, x in found.items()}
    short = chains.astype(int) if (chains == np.round(chains)).all() else chains
    return {"name": name, "chains": short.tolist(), **numbers}


def main() -> None:
    parser = argparse.ArgumentParser(description="Diagnostics of chains by ArviZ")
    parser.add_argument("out", type=Path)
    result = {
        "arviz": arviz.__version__,
        "numpy": np.__version__,
        "cases": [case(name, chains) for name, chains in inputs().items()],
    }
    parser.parse_args().out.write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
