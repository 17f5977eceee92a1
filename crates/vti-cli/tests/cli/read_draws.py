"""Reads posterior.parquet with pandas, polars and ArviZ and compares what it says with summary.json."""

import json
import sys
from pathlib import Path

import arviz
import numpy as np
import pandas
import polars

FIRST = ["model", "word", "log_q", "log_target", "log_weight"]

run = Path(sys.argv[1])
summary = json.loads((run / "summary.json").read_text())
draws = pandas.read_parquet(run / "posterior.parquet")
same = polars.read_parquet(run / "posterior.parquet")
assert list(draws.columns) == same.columns
parameters = [name for name in draws.columns if name not in FIRST and name != "active"]
assert list(draws.columns) == FIRST + parameters + ["active"]
assert parameters == list(summary["coefficients"])

# The explicit mask and the nulls say the same, in both libraries.
active = np.array(draws["active"].tolist())
values = draws[parameters].to_numpy()
assert active.shape == values.shape and active.dtype == bool
assert (np.isnan(values) == ~active).all()
assert (np.array(same["active"].to_list()) == active).all()
assert (same.select(parameters).null_count().to_numpy()[0] == (~active).sum(axis=0)).all()

# Weights correct q: means over models are those of the summary.
weights = np.exp(draws["log_weight"] - draws["log_weight"].max())
weights /= weights.sum()
means = (np.nan_to_num(values) * weights.to_numpy()[:, None]).sum(axis=0)
for name, mean in zip(parameters, means):
    expected = summary["coefficients"][name]["corrected"]
    assert abs(mean - expected) < 1e-6 * (1 + abs(expected)), (name, mean, expected)
for model in summary["models"][:5]:
    share = weights[draws["word"] == model["word"]].sum()
    assert abs(share - model["corrected"]) < 1e-6, (model, share)

# Equally weighted draws for ArviZ.
chosen = np.random.default_rng(1).choice(len(draws), size=1000, p=weights)
posterior = {name: np.nan_to_num(values[chosen, i])[None, :] for i, name in enumerate(parameters)}
table = arviz.summary(arviz.from_dict(posterior=posterior))
assert list(table.index) == parameters
