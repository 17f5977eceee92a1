"""PyTorch peer of the benchmark: inverse autoregressive flows with CoSMIC masks.

The commands and the protocol are those of `protocol.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol import Case, main

BINS = 10
MIN_BIN = 1e-3
MIN_SLOPE = 1e-3
# softplus(UNIT) + MIN_SLOPE = 1: a raw parameter of zero is the identity.
UNIT = math.log(math.expm1(1.0 - MIN_SLOPE))
OUTPUTS = {"affine": 2, "spline": 3 * BINS + 1}


def positive(raw: Tensor) -> Tensor:
    """Maps a raw parameter to a slope above `MIN_SLOPE`; zero gives one."""
    return F.softplus(raw + UNIT) + MIN_SLOPE


# ---------------------------------------------------------------- conditioner


class MaskedLinear(nn.Linear):
    """A linear layer whose weight is multiplied by a fixed 0/1 mask."""

    mask: Tensor | None

    def __init__(self, mask: Tensor) -> None:
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask.to(self.weight.dtype))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight if self.mask is None else self.weight * self.mask
        return F.linear(x, weight, self.bias)

    def fold(self) -> None:
        """Applies the mask once and for all, for a weight that no longer changes."""
        with torch.no_grad():
            self.weight *= self.mask
        self.mask = None


class SymbolContext(nn.Module):
    """One learned row per symbol, holding all injections side by side.

    One lookup for all injections is the fastest way measured, forward and backward: a lookup
    per injection is no faster at width 512 and slower at width 16, and a linear map of
    one-hot vectors is slower at both.
    """

    def __init__(self, symbols: int, hidden: int, injections: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.table = nn.Parameter(0.1 * torch.randn(symbols, injections * hidden))

    def forward(self, symbol: Tensor) -> tuple[Tensor, ...]:
        return F.embedding(symbol, self.table).split(self.hidden, dim=1)


class FeatureContext(nn.Module):
    """A linear map of dense features, with all injections side by side."""

    def __init__(self, features: int, hidden: int, injections: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.linear = nn.Linear(features, injections * hidden)

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        return self.linear(features).split(self.hidden, dim=1)


class Block(nn.Module):
    """A residual block of two masked layers, with the context added between them."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.linear1 = MaskedLinear(mask)
        self.linear2 = MaskedLinear(mask)

    def forward(self, h: Tensor, context: Tensor | None) -> Tensor:
        # Sums are made in place where autograd does not need the overwritten value.
        t = self.linear1(F.relu(h))
        if context is not None:
            t += context
        t = self.linear2(F.relu_(t))
        t += h
        return t


class Made(nn.Module):
    """A residual MADE: the outputs of variable `i` depend on variables before `i` only.

    A hidden unit of degree `g` is a function of the first `g` variables, so that a unit of
    degree 0 sees the context alone.
    """

    def __init__(
        self, d: int, hidden: int, blocks: int, outputs: int, context: nn.Module | None
    ) -> None:
        super().__init__()
        variable = torch.arange(d)
        degree = torch.arange(hidden) * d // hidden
        self.outputs = outputs
        self.initial = MaskedLinear(variable[None, :] < degree[:, None])
        between = degree[:, None] >= degree[None, :]
        self.blocks = nn.ModuleList(Block(between) for _ in range(blocks))
        # Rows of the output are variable-major: `outputs` consecutive rows per variable.
        last = variable.repeat_interleave(outputs)
        self.output = MaskedLinear(degree[None, :] <= last[:, None])
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.context = context

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Parameters of shape [batch, d, outputs]."""
        h = self.initial(x)
        if self.context is None:
            injected = (None,) * len(self.blocks)
        else:
            first, *injected = self.context(condition)
            h += first
        for block, context in zip(self.blocks, injected):
            h = block(h, context)
        return self.output(h).unflatten(1, (-1, self.outputs))


# ----------------------------------------------------------------- transforms


def affine(x: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Shift and scale of each variable; returns the value and the log-derivative."""
    shift, raw = parameters.unbind(-1)
    scale = positive(raw)
    return x * scale + shift, scale.log()


def clamp_unit(u: Tensor) -> Tensor:
    """Keeps float32 away from 0 and 1, where the logit is lost; leaves float64 alone."""
    return u.clamp(1e-6, 1.0 - 1e-6) if u.dtype == torch.float32 else u


def spline(x: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Monotone rational-quadratic spline of the unit interval, seen through the logit.

    Returns the value and the log-derivative of each variable.
    """
    raw_widths, raw_heights, raw_slopes = parameters.split((BINS, BINS, BINS + 1), dim=-1)
    room = 1.0 - MIN_BIN * BINS
    widths = MIN_BIN + room * raw_widths.softmax(-1)
    heights = MIN_BIN + room * raw_heights.softmax(-1)
    rights, tops = widths.cumsum(-1), heights.cumsum(-1)

    u = clamp_unit(x.sigmoid())
    # The bin is the number of interior knots at or below u, so it is always a valid one.
    bin_ = (u.detach()[..., None] >= rights.detach()[..., :-1]).sum(-1, keepdim=True)

    def at(values: Tensor, index: Tensor = bin_) -> Tensor:
        return values.gather(-1, index).squeeze(-1)

    width, height = at(widths), at(heights)
    left, bottom = at(rights) - width, at(tops) - height
    # Two slopes of the eleven are used: gather first, and map only those.
    slope0, slope1 = positive(at(raw_slopes)), positive(at(raw_slopes, bin_ + 1))

    secant = height / width
    t = (u - left) / width
    s = 1.0 - t
    ts = t * s
    denominator = secant + (slope0 + slope1 - 2.0 * secant) * ts
    y = clamp_unit(bottom + height * (secant * t * t + slope0 * ts) / denominator)
    slope = secant.square() * (slope1 * t * t + 2.0 * secant * ts + slope0 * s * s)

    log_y, log_1y = y.log(), torch.log1p(-y)
    log_slope = slope.log() - 2.0 * denominator.log()
    return log_y - log_1y, log_slope + u.log() + torch.log1p(-u) - log_y - log_1y


TRANSFORMS: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "affine": affine,
    "spline": spline,
}


# ----------------------------------------------------------------------- flow


@dataclass
class Rows:
    """What a batch of rows is conditioned on; its active variables come first.

    `active` and `reverse` are None when every variable of every row is active.
    """

    condition: Tensor
    count: Tensor
    active: Tensor | None
    reverse: Tensor | None

    @staticmethod
    def of(condition: Tensor, count: Tensor, d: int) -> Rows:
        if bool((count == d).all()):
            return Rows(condition, count, None, None)
        position = torch.arange(d).expand(len(count), d)
        active = position < count[:, None]
        reverse = torch.where(active, count[:, None] - 1 - position, position)
        return Rows(condition, count, active, reverse)


class GlobalAffine(nn.Module):
    """One shift and one scale, shared by all active variables."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(()))
        self.raw_scale = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        scale = positive(self.raw_scale)
        y = x * scale + self.shift
        return keep(rows.active, y, x), rows.count * scale.log()


def keep(active: Tensor | None, value: Tensor, otherwise: Tensor | float) -> Tensor:
    """`value` where active, `otherwise` elsewhere."""
    return value if active is None else torch.where(active, value, otherwise)


class Flow(nn.Module):
    """Autoregressive layers with the active block of each row reversed between them."""

    def __init__(
        self,
        kind: str,
        layers: int,
        d: int,
        hidden: int,
        blocks: int,
        context: Callable[[int, int], nn.Module],
    ) -> None:
        super().__init__()
        self.transform = TRANSFORMS[kind]
        self.layers = nn.ModuleList(
            Made(d, hidden, blocks, OUTPUTS[kind], context(hidden, blocks + 1))
            for _ in range(layers)
        )
        self.final = GlobalAffine() if kind == "spline" else None

    def forward(self, z: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """Maps `z` to `theta`; returns it and the log-determinant of each row."""
        x = z
        log_det = z.new_zeros(len(z))
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = x.flip(1) if rows.reverse is None else x.gather(1, rows.reverse)
            y, log_slope = self.transform(x, layer(x, rows.condition))
            # Selecting results is selecting the identity's parameters, at a lower cost for
            # the spline and with inactive variables exact to the bit.
            x = keep(rows.active, y, x)
            log_det = log_det + keep(rows.active, log_slope, 0.0).sum(1)
        if self.final is not None:
            x, log_slope = self.final(x, rows)
            log_det = log_det + log_slope
        return x, log_det


def loss_of(theta: Tensor, log_det: Tensor, active: Tensor | None) -> Tensor:
    """Mean over rows of half the squared norm of the active part, less the log-determinant."""
    return (0.5 * keep(active, theta, 0.0).square().sum(1) - log_det).mean()


# ---------------------------------------------------------------------- cases

BATCH = 1024
SYMBOLS = 128
FEATURES = 100


def count(model: nn.Module) -> int:
    """Number of parameters."""
    return sum(p.numel() for p in model.parameters())


def training(flow: Flow, z: Tensor, rows: Rows, compiled: bool) -> Case:
    """A step is forward, backward and update on the fixed batch."""
    # The fused update is the fastest of the three that AdamW offers, at every width here.
    optimizer = torch.optim.AdamW(
        flow.parameters(), lr=1e-3, betas=(0.9, 0.999), weight_decay=1e-7, fused=True
    )

    def objective() -> Tensor:
        theta, log_det = flow(z, rows)
        return loss_of(theta, log_det, rows.active)

    run = torch.compile(objective) if compiled else objective

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        run().backward()
        optimizer.step()

    return Case(count(flow), step)


def symbol_case(
    kind: str, layers: int, blocks: int, hidden: int, models: bool, compiled: bool
) -> Case:
    """Eight variables; a symbol is a subset of seven, and the intercept is always in."""
    d = 8
    flow = Flow(kind, layers, d, hidden, blocks, lambda h, n: SymbolContext(SYMBOLS, h, n))
    symbol = torch.randint(SYMBOLS, (BATCH,))
    size = 1 + (symbol[:, None] >> torch.arange(d - 1) & 1).sum(1)
    count = size if models else torch.full_like(size, d)
    return training(flow, torch.randn(BATCH, d), Rows.of(symbol, count, d), compiled)


def feature_case(compiled: bool) -> Case:
    """540 variables under 100 features, of which a uniform number is active."""
    d = 540
    flow = Flow("affine", 5, d, 128, 5, lambda h, n: FeatureContext(FEATURES, h, n))
    features = torch.randint(2, (BATCH, FEATURES)).float()
    count = torch.randint(d + 1, (BATCH,))
    return training(flow, torch.randn(BATCH, d), Rows.of(features, count, d), compiled)


def sample_words(made: Callable[[Tensor], Tensor], words: int, d: int) -> Tensor:
    """Draws 0/1 words, with one full pass of the network per variable."""
    # The network reads bits as -1 and 1; it does not see those that are not drawn yet.
    x = torch.full((words, d), -1.0)
    for i in range(d):
        probability = made(x)[:, i, 0].sigmoid()
        x[:, i] = 2.0 * torch.bernoulli(probability) - 1.0
    return 0.5 * (x + 1.0)


def sampling_case(compiled: bool) -> Case:
    """A step samples a batch of words of 54 bits."""
    d = 54
    made = Made(d, 128, 6, 1, None)
    for module in made.modules():
        if isinstance(module, MaskedLinear):
            module.fold()
    run = torch.compile(made) if compiled else made
    return Case(count(made), torch.no_grad()(lambda: sample_words(run, BATCH, d)))


CASES: dict[str, Callable[[bool], Case]] = {
    "a": lambda compiled: symbol_case("spline", 4, 6, 512, False, compiled),
    "a-models": lambda compiled: symbol_case("spline", 4, 6, 512, True, compiled),
    "b": lambda compiled: symbol_case("affine", 5, 5, 16, False, compiled),
    "b-models": lambda compiled: symbol_case("affine", 5, 5, 16, True, compiled),
    "c": feature_case,
    "made-sample": sampling_case,
}


if __name__ == "__main__":
    main(CASES, "flows against PyTorch")
