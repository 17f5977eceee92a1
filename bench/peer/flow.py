"""PyTorch peer of the benchmark: inverse autoregressive flows with CoSMIC masks.

Commands:

    python flow.py [--threads N] [--compile] serve           line protocol on stdin / stdout
    python flow.py [--threads N] [--compile] bench CASE      median time of a step

The protocol of `serve`: it prints `ready {...}` and then answers each line it reads:

    prepare CASE    ->  prepared CASE {"parameters": N}      (builds the case, three warm-up steps)
    step CASE N     ->  times CASE t1 ... tN                 (seconds)
    release CASE    ->  released CASE
    quit            ->  (ends)

and `error MESSAGE` when a request cannot be met.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


class Case:
    """A prepared case: a model, a fixed batch, and what one step of it does."""

    def __init__(self, model: nn.Module, step: Callable[[], object]) -> None:
        self.parameters = sum(p.numel() for p in model.parameters())
        self.step = step

    def times(self, steps: int) -> list[float]:
        """Seconds of each of `steps` steps."""
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return seconds


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

    return Case(flow, step)


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
    return Case(made, torch.no_grad()(lambda: sample_words(run, BATCH, d)))


CASES: dict[str, Callable[[bool], Case]] = {
    "a": lambda compiled: symbol_case("spline", 4, 6, 512, False, compiled),
    "a-models": lambda compiled: symbol_case("spline", 4, 6, 512, True, compiled),
    "b": lambda compiled: symbol_case("affine", 5, 5, 16, False, compiled),
    "b-models": lambda compiled: symbol_case("affine", 5, 5, 16, True, compiled),
    "c": feature_case,
    "made-sample": sampling_case,
}


def prepare(name: str, compiled: bool) -> Case:
    """Builds a case from a fixed seed and warms it up."""
    if name not in CASES:
        raise ValueError(f"unknown case {name}; known: {' '.join(CASES)}")
    torch.manual_seed(0)
    case = CASES[name](compiled)
    case.times(3)
    return case


# ------------------------------------------------------------------- commands


def keep_memory() -> None:
    """Has glibc keep what tensors free, as any caching allocator does.

    By default it gives large blocks back and every step faults their pages in again, which
    takes up to a tenth of the largest case. Elsewhere this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    trim_threshold, top_pad, mmap_max = -1, -2, -4
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, -1)
    mallopt(top_pad, 64 << 20)


def serve(compiled: bool) -> None:
    """Answers requests on stdin until `quit` or its end."""
    cases: dict[str, Case] = {}

    def answer(request: list[str]) -> str:
        match request:
            case ["prepare", name]:
                cases[name] = prepare(name, compiled)
                return f"prepared {name} {json.dumps({'parameters': cases[name].parameters})}"
            case ["step", name, steps]:
                if name not in cases:
                    raise ValueError(f"case {name} is not prepared")
                seconds = cases[name].times(int(steps))
                return " ".join(["times", name, *(f"{s:.9f}" for s in seconds)])
            case ["release", name]:
                if cases.pop(name, None) is None:
                    raise ValueError(f"case {name} is not prepared")
                # The closures of a case form cycles with its model.
                gc.collect()
                return f"released {name}"
            case _:
                raise ValueError(f"cannot read request: {' '.join(request)}")

    print(f"ready {json.dumps({'torch': torch.__version__})}", flush=True)
    for line in sys.stdin:
        request = line.split()
        if request == ["quit"]:
            break
        try:
            print(answer(request), flush=True)
        except Exception as error:  # whatever fails, the other side needs its one line
            print("error", " ".join(str(error).split()), flush=True)


def bench(name: str, steps: int, compiled: bool) -> None:
    """Prints the median time of a step."""
    case = prepare(name, compiled)
    seconds = case.times(steps)
    print(
        f"{name}: median {1e3 * statistics.median(seconds):.3f} ms, "
        f"least {1e3 * min(seconds):.3f} ms, of {steps} steps; {case.parameters} parameters"
    )


def main() -> None:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--threads", type=int, help="threads of an operation (default 2)")
    common.add_argument("--compile", action="store_true", help="use torch.compile")
    parser = argparse.ArgumentParser(description="PyTorch peer of the benchmark", parents=[common])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", parents=[common], help="answer requests on stdin")
    command = commands.add_parser("bench", parents=[common], help="time one case")
    command.add_argument("case", choices=CASES)
    command.add_argument("--steps", type=int, default=10)
    # Defaults come from the namespace: those of a subparser would overwrite options given
    # before the command.
    arguments = parser.parse_args(namespace=argparse.Namespace(threads=2, compile=False))

    keep_memory()
    torch.set_num_threads(arguments.threads)
    torch.set_num_interop_threads(1)
    match arguments.command:
        case "serve":
            serve(arguments.compile)
        case "bench":
            bench(arguments.case, arguments.steps, arguments.compile)


if __name__ == "__main__":
    main()
