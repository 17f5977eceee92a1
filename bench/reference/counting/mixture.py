"""Evidences of normal mixtures with Richardson and Green's prior, by sums over all partitions of a few points.

Given beta, and which points share a component, means are integrated in closed form and precisions by quadrature; with Dirichlet(1)
weights an allocation of n points to k components has the probability (k - 1)! prod(n_j!) / (n + k - 1)!. So

    p(y | k, beta) = (k - 1)!/(n + k - 1)! sum_j k!/(k - j)! S_j(beta),

where S_j sums prod(n_b! m(b)) over all partitions of the points into j blocks, by recursion over subsets. beta is integrated by
quadrature. Nothing here shares a line with the program that it is compared with.
"""

import json
import math
import sys

import numpy as np


def log_blocks(y, betas, log_tau):
    """log n_b! m(b) of every subset (rows) for every beta (columns)."""
    n = len(y)
    low, high = min(y), max(y)
    mid, spread = 0.5 * (low + high), high - low
    masks = np.arange(1, 1 << n)
    bits = ((masks[:, None] >> np.arange(n)) & 1).astype(float)
    size = bits.sum(1)
    mean = bits @ y / size
    squares = bits @ (y * y) - size * mean * mean
    tau = np.exp(log_tau)
    prior = 1.0 / spread**2
    log = (
        0.5 * size[:, None] * (log_tau - math.log(2 * math.pi))
        - 0.5 * tau * np.maximum(squares, 0.0)[:, None]
        + 0.5 * np.log(prior / (prior + size[:, None] * tau))
        - 0.5 * (prior * size[:, None] * tau / (prior + size[:, None] * tau)) * ((mean - mid) ** 2)[:, None]
    )
    step = log_tau[1] - log_tau[0]
    factorials = np.array([math.lgamma(s + 1) for s in size])
    found = np.full((1 << n, len(betas)), -np.inf)
    for place, beta in enumerate(betas):
        # Gamma(2, beta) for tau, by log tau.
        weight = 2 * math.log(beta) + 2 * log_tau - beta * tau + math.log(step)
        terms = log + weight
        top = terms.max(1)
        found[1:, place] = factorials + top + np.log(np.exp(terms - top[:, None]).sum(1))
    return found


def evidences(y, most):
    y = np.asarray(y, float)
    n, spread = len(y), max(y) - min(y)
    log_beta = np.linspace(math.log(spread**2) - 18, math.log(spread**2) + 4, 100)
    log_tau = np.linspace(math.log(1 / spread**2) - 10, math.log(1 / spread**2) + 24, 260)
    betas = np.exp(log_beta)
    blocks = np.exp(log_blocks(y, betas, log_tau))
    sums = np.zeros((1 << n, most + 1, len(betas)))
    sums[0, 0] = 1.0
    for mask in range(1, 1 << n):
        low = mask & -mask
        rest = mask ^ low
        sub = rest
        total = np.zeros((most, len(betas)))
        while True:
            total += blocks[sub | low] * sums[rest ^ sub, :most]
            if sub == 0:
                break
            sub = (sub - 1) & rest
        sums[mask, 1:] = total
    whole = sums[(1 << n) - 1]
    rate = 10 / spread**2
    log_prior = 0.2 * math.log(rate) - math.lgamma(0.2) + 0.2 * log_beta - rate * betas
    weight = np.exp(log_prior) * (log_beta[1] - log_beta[0])
    found = []
    for k in range(1, most + 1):
        ways = [math.exp(math.lgamma(k + 1) - math.lgamma(k - j + 1)) if j <= k else 0.0 for j in range(most + 1)]
        given = sum(way * whole[j] for j, way in enumerate(ways))
        found.append(math.lgamma(k) - math.lgamma(n + k) + math.log((given * weight).sum()))
    return found


if __name__ == "__main__":
    path, most = sys.argv[1], int(sys.argv[2])
    y = [float(line.split(",")[0]) for line in open(path).read().split()[1:]]
    logs = np.array(evidences(y, most))
    joint = logs - math.log(most)
    total = joint.max() + math.log(np.exp(joint - joint.max()).sum())
    print(json.dumps({
        "data": path, "log_evidences": [round(v, 5) for v in logs], "log_evidence": round(total, 5),
        "probabilities": [round(v, 5) for v in np.exp(joint - total)],
    }))
