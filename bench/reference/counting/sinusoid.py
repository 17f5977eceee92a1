"""Evidences of sums of sinusoids, by quadrature over frequencies and noise; amplitudes and the level are integrated in closed form.

y = level + sum of a cos(2 pi f t) + b sin(2 pi f t) + noise; level ~ N(median, range^2), amplitudes ~ N(0, (range/2)^2),
f ~ uniform(1/span, 0.5/spacing), log noise uniform from a thousandth to twice the standard deviation of the values: the defaults of
`vti peaks --shape sinusoid --background 0`. The trapezoidal rule over a grid that is finer than the narrowest peak of the posterior
is exact to many digits.
"""

import itertools
import json
import math
import sys

import numpy as np


def evidences(x, y, most, grid, noises):
    n, span = len(x), x[-1] - x[0]
    spread = y.max() - y.min()
    low, high = 1 / span, 0.5 / (span / (n - 1))
    left = y - np.median(y)
    sd = y.std()
    f = np.linspace(low, high, grid)
    weight = np.full(grid, 1.0 / (grid - 1))
    weight[[0, -1]] *= 0.5
    angle = 2 * math.pi * f[:, None] * (x - x.mean())
    waves = np.stack([np.cos(angle), np.sin(angle)], 1)  # grid, 2, n
    basis = np.concatenate([np.ones((1, n)), waves.reshape(-1, n)])
    gram, shares = basis @ basis.T, basis @ left
    log_noise = np.linspace(math.log(1e-3 * sd), math.log(2 * sd), noises)
    nodes = np.full(noises, 1.0 / (noises - 1))
    nodes[[0, -1]] *= 0.5
    keep = [(s, w) for s, w in zip(np.exp(log_noise), nodes)]
    found = []
    for k in range(most + 1):
        tuples = list(itertools.combinations_with_replacement(range(grid), k))
        tuples = np.array(tuples, int).reshape(len(tuples), k)
        ways = np.ones(len(tuples))
        if k > 1:
            # How many orders each set of frequencies has.
            ways *= math.factorial(k)
            runs = np.ones(len(tuples))
            for i in range(1, k):
                runs = np.where(tuples[:, i] == tuples[:, i - 1], runs + 1, 1)
                ways /= runs
        log_weights = np.log(weight)[tuples].sum(1) + np.log(ways)
        places = np.concatenate([np.zeros((len(tuples), 1), int)] + [1 + 2 * tuples[:, [i]] + np.arange(2) for i in range(k)], 1)
        precision = np.diag([1 / spread**2] + [4 / spread**2] * (2 * k))
        log_prior = -np.log(np.diag(precision)).sum()
        logs = []
        for start in range(0, len(tuples), 20000):
            p = places[start:start + 20000]
            g = gram[p[:, :, None], p[:, None, :]]
            h = shares[p]
            for s, w in keep:
                m = g / s**2 + precision
                sign, det = np.linalg.slogdet(m)
                solved = np.linalg.solve(m, (h / s**2)[:, :, None])[:, :, 0]
                quadratic = left @ left / s**2 - (solved * h).sum(1) / s**2
                log = -0.5 * (quadratic + n * math.log(2 * math.pi * s * s) + log_prior + det)
                total = log + log_weights[start:start + 20000]
                top = total.max()
                logs.append(math.log(w) + top + math.log(np.exp(total - top).sum()))
        logs = np.array(logs)
        found.append(logs.max() + math.log(np.exp(logs - logs.max()).sum()))
    return found


if __name__ == "__main__":
    path, most, grid, noises = sys.argv[1], *map(int, sys.argv[2:5])
    rows = np.array([[float(v) for v in line.split(",")] for line in open(path).read().split()[1:]])
    logs = np.array(evidences(rows[:, 0], rows[:, 1], most, grid, noises))
    joint = logs - math.log(most + 1)
    total = joint.max() + math.log(np.exp(joint - joint.max()).sum())
    print(json.dumps({
        "data": path, "log_evidences": [round(v, 4) for v in logs], "log_evidence": round(total, 4),
        "probabilities": [round(v, 5) for v in np.exp(joint - total)],
    }))
