"""Evidences of none, one and two Gaussian peaks over a constant, by quadrature over positions, widths and noise.

The level is integrated in closed form, and so are the heights, whose half-normal prior leaves a normal integral over positive numbers
(one tail for one peak; for two the bivariate one, by Plackett's integral over the correlation). Priors are the defaults of
`vti peaks --background 0 --max-peaks 2`: level ~ N(median, range^2), positions uniform over the span, heights half-normal(range),
log widths uniform from two spacings to a third of the span, log noise uniform from a thousandth to twice the standard deviation.
"""

import json
import math
import sys

import numpy as np
from scipy.special import log_ndtr, ndtr


def orthant(h, k, rho):
    """P(X < h, Y < k) of standard normal numbers with correlation rho."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    theta = np.arcsin(rho)
    total = np.zeros_like(h)
    for node, weight in zip(nodes, weights):
        angle = 0.5 * theta * (node + 1)
        cos2 = np.cos(angle) ** 2
        total += weight * np.exp(-(h * h + k * k - 2 * h * k * np.sin(angle)) / (2 * cos2))
    return ndtr(h) * ndtr(k) + total * 0.5 * theta / (2 * math.pi)


def evidences(x, y, positions, widths, noises):
    n, span, spread = len(x), x[-1] - x[0], y.max() - y.min()
    spacing = span / (n - 1)
    left, sd = y - np.median(y), y.std()
    p = np.linspace(x[0], x[-1], positions)
    wp = np.full(positions, 1.0 / (positions - 1))
    wp[[0, -1]] *= 0.5
    nodes, ww = np.polynomial.legendre.leggauss(widths)
    low, high = math.log(2 * spacing), math.log(max(span / 3, 3 * spacing))
    w, ww = np.exp(0.5 * (low + high) + 0.5 * (high - low) * nodes), 0.5 * ww
    profiles = np.exp(-4 * math.log(2) * ((x - p[:, None, None]) / w[:, None]) ** 2).reshape(-1, n)
    log_weights = (np.log(wp)[:, None] + np.log(ww)).reshape(-1)
    gram, sums, shares = profiles @ profiles.T, profiles.sum(1), profiles @ left
    log_noise = np.linspace(math.log(1e-3 * sd), math.log(2 * sd), noises)
    first, second = np.triu_indices(len(profiles))
    pair_weights = log_weights[first] + log_weights[second] + np.where(first == second, 0.0, math.log(2))
    logs = [[], [], []]
    for place, s in enumerate(np.exp(log_noise)):
        node = math.log(1.0 / (noises - 1)) + (math.log(0.5) if place in (0, noises - 1) else 0.0)
        c = spread**2 / (s * s + n * spread**2)
        base = -0.5 * (n * math.log(2 * math.pi) + (n - 1) * math.log(s * s) + math.log(s * s + n * spread**2))
        base -= 0.5 * (left @ left - c * left.sum() ** 2) / s**2
        logs[0].append(node + base)
        b = (shares - c * sums * left.sum()) / s**2
        a = (gram - c * np.outer(sums, sums)) / s**2
        d = np.diag(a) + 1 / spread**2
        one = math.log(2 / spread) + 0.5 * b * b / d - 0.5 * np.log(d) + log_ndtr(b / np.sqrt(d)) + log_weights
        logs[1].append(node + base + one.max() + math.log(np.exp(one - one.max()).sum()))
        d1, d2, off, b1, b2 = d[first], d[second], a[first, second], b[first], b[second]
        det = d1 * d2 - off * off
        m1, m2 = (d2 * b1 - off * b2) / det, (d1 * b2 - off * b1) / det
        two = 2 * math.log(2 / spread) + 0.5 * (m1 * b1 + m2 * b2) - 0.5 * np.log(det) + pair_weights
        # Only what can matter is looked at closely.
        close = np.flatnonzero(two > two.max() - 40)
        m1, m2, d1, d2, off, det = m1[close], m2[close], d1[close], d2[close], off[close], det[close]
        chance = orthant(m1 / np.sqrt(d2 / det), m2 / np.sqrt(d1 / det), -off / np.sqrt(d1 * d2))
        two = two[close] + np.log(np.maximum(chance, 1e-300))
        logs[2].append(node + base + two.max() + math.log(np.exp(two - two.max()).sum()))
    total = lambda logs: max(logs) + math.log(sum(math.exp(v - max(logs)) for v in logs))
    return [total(own) for own in logs]


if __name__ == "__main__":
    path, positions, widths, noises = sys.argv[1], *map(int, sys.argv[2:5])
    rows = np.array([[float(v) for v in line.split(",")] for line in open(path).read().split()[1:]])
    logs = np.array(evidences(rows[:, 0], rows[:, 1], positions, widths, noises))
    joint = logs - math.log(3)
    total = joint.max() + math.log(np.exp(joint - joint.max()).sum())
    print(json.dumps({
        "data": path, "log_evidences": [round(v, 4) for v in logs], "log_evidence": round(total, 4),
        "probabilities": [round(v, 5) for v in np.exp(joint - total)],
    }))
