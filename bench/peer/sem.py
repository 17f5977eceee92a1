"""PyTorch peer of the benchmark: likelihoods of non-linear structural equations.

The commands and the protocol are those of `protocol.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from protocol import Case, main

NODES = 10
HIDDEN = 10
ROWS = 1024
DRAWS = 1024

# Data by columns, and by rows.
Data = tuple[Tensor, Tensor]


def products(data: Data, first: Tensor, second: Tensor) -> Tensor:
    """Log likelihoods up to a constant, by one product and one batch of products."""
    columns, _ = data
    hidden = (first.view(-1, NODES) @ columns).view(-1, HIDDEN, ROWS).relu()
    mean = torch.bmm(second.view(-1, 1, HIDDEN), hidden).view(-1, NODES, ROWS)
    return -0.5 * (columns - mean).square().sum((1, 2))


def contractions(data: Data, first: Tensor, second: Tensor) -> Tensor:
    """The same by contractions of whole tensors."""
    columns, rows = data
    hidden = torch.einsum("bjhi,ni->bjhn", first, rows).relu()
    mean = torch.einsum("bjh,bjhn->bjn", second, hidden)
    return -0.5 * (columns - mean).square().sum((1, 2))


def by_nodes(data: Data, first: Tensor, second: Tensor) -> Tensor:
    """The same node by node."""
    columns, _ = data
    total = first.new_zeros(len(first))
    for node in range(NODES):
        hidden = (first[:, node].reshape(-1, NODES) @ columns).view(-1, HIDDEN, ROWS).relu()
        mean = torch.bmm(second[:, node, None], hidden).view(-1, ROWS)
        total = total - 0.5 * (columns[node] - mean).square().sum(1)
    return total


WAYS = (products, contractions, by_nodes)
# Draws at a time: what a way keeps for its gradient is 0.4 MB for each.
TOGETHER = (16, 64, 256)


def likelihoods(compiled: bool) -> Case:
    """Values and gradients for random orders and edges, in the fastest way there is."""
    rows = torch.randn(ROWS, NODES)
    data = (rows.t().contiguous(), rows)
    place = torch.rand(DRAWS, NODES).argsort(1)
    edges = (place[:, None, :] < place[:, :, None]) & (torch.rand(DRAWS, NODES, NODES) < 0.5)
    mask = edges.float()[:, :, None, :]
    first = torch.randn(DRAWS, NODES, HIDDEN, NODES)
    second = torch.randn(DRAWS, NODES, HIDDEN)

    def step(way: Callable[[Data, Tensor, Tensor], Tensor], together: int) -> None:
        for start in range(0, DRAWS, together):
            draws = slice(start, start + together)
            weights = [w[draws].detach().requires_grad_() for w in (first, second)]
            values = way(data, weights[0] * mask[draws], weights[1])
            torch.autograd.grad(values.sum(), weights)

    def time_of(way: Callable[[Data, Tensor, Tensor], Tensor], together: int) -> float:
        return min(Case(0, lambda: step(way, together)).times(2))

    ways = [torch.compile(way) for way in WAYS] if compiled else WAYS
    best = min(((way, together) for way in ways for together in TOGETHER), key=lambda c: time_of(*c))
    return Case(first.numel() + second.numel(), lambda: step(*best))


if __name__ == "__main__":
    main({"sem": likelihoods}, "structural equations against PyTorch")
