"""Options of the command as keyword arguments: names, values and defaults are its own."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from ._density import Constraint

Names = str | Sequence[str]
Edges = str | Sequence[str] | Sequence[tuple[str, str]]
# A number, or a date as texts and `datetime` write it.
Time = float | str | datetime.date


class RunOptions(TypedDict, total=False):
    """Options of every run."""

    out: str | os.PathLike[str] | None
    """The run directory; without it one that lives as long as the answer."""
    force: bool
    """Replace the run in the run directory."""
    resume: bool
    """Go on where an interrupted run stopped."""
    method: Literal["auto", "exact", "search", "vti"] | None
    """How the answer is found."""
    check: Literal["full", "quick", "none"] | None
    """How far the check looks beyond what was learned."""
    seed: int | None
    """Seed of all randomness."""
    steps: int | None
    """Training steps."""
    time_limit: float | str | None
    """Time for everything: seconds, or 60s, 5m, 1h."""
    threads: int | None
    """Threads; 0: as many as there are cores."""
    device: str | None
    """Where networks are computed."""
    precision: Literal["f32", "f64"] | None
    """Precision of networks."""
    replicates: int | None
    """Train from so many seeds and keep the best."""
    set: Mapping[str, Any] | Sequence[str] | None
    """Change any setting: `{"train.batch": 512}`."""
    raw_csv: bool
    """Leave cells of CSV files as they are."""
    progress: bool | None
    """Whether progress is shown; by default on a terminal and in a notebook."""


class TableOptions(RunOptions, total=False):
    """Options of every question of a table."""

    names: Sequence[str] | None
    """Names of the columns of an array."""
    missing_values: Names | None
    """Words that stand for missing values, beside the usual ones."""


class SelectOptions(TableOptions, total=False):
    """Options of `select`: those of `vti select`."""

    response: str | None
    """The column that is to be explained."""
    likelihood: str | None
    """gaussian, gaussian:SIGMA, robust, robust:ALPHA,S1,S2, student-t:DF, logistic, poisson, negative-binomial[:SIZE]."""
    prior: str | None
    """g, g:G, hyper-g[:A], hyper-g-n[:A], zellner-siow, normal:SCALE."""
    model_prior: str | None
    """uniform, bernoulli:P, beta-binomial:A,B."""
    include: Names | None
    """Only these columns take part."""
    exclude: Names | None
    """These columns do not take part."""
    always: Names | None
    """These columns are in every model."""
    categorical: Names | None
    """These columns hold categories, though they are numbers."""
    offset: str | None
    """This column is added to every row's linear predictor."""
    exposure: str | None
    """Counts are proportional to this column."""
    weights: str | None
    """Rows count as often as this column says."""
    terms: str | None
    """Which terms may matter, by a formula."""
    heredity: Literal["none", "weak", "strong"] | None
    """Which models may have a product or a square."""
    missing: Literal["error", "drop", "indicator"] | None
    """What becomes of missing values."""
    no_standardize: bool
    """Leave columns as they were measured."""


class DagOptions(TableOptions, total=False):
    """Options of `dag`: those of `vti dag`."""

    sem: Literal["mlp", "linear"] | None
    """How a column follows its causes."""
    hidden: int | None
    """Hidden units of each column's equation."""
    bias: bool
    """Hidden units and outputs have biases."""
    noise: float | Literal["unknown"] | None
    """Standard deviation of a column given its causes."""
    score: Literal["independent", "bge"] | None
    """The prior of weights and noise."""
    graph_prior: Literal["orders", "graphs"] | None
    """What is equally probable beforehand."""
    edge_penalty: float | None
    """By how much each edge lowers the log prior."""
    weight_scale: float | None
    """Prior standard deviation of weights."""
    interventions: str | None
    """A column that names, row by row, the nodes that were set from outside."""
    targets: Mapping[str, Sequence[str]] | str | None
    """What other words in that column mean."""
    require: Edges | None
    """Edges that every graph has."""
    forbid: Edges | None
    """Edges that no graph has."""
    tiers: str | Sequence[Sequence[str]] | None
    """Groups of columns, earliest first."""
    max_parents: int | None
    """The most causes a column may have."""
    include: Names | None
    """Only these columns take part."""
    exclude: Names | None
    """These columns do not take part."""
    missing: Literal["error", "drop"] | None
    """What becomes of missing values."""
    log: bool | Names
    """Take logarithms of all columns, or of these."""
    categorical: Names | None
    """These columns hold categories, though they are numbers; texts and truths are categories without being named."""
    ordered: Mapping[str, Sequence[str]] | str | None
    """These hold ordered categories, lowest first."""
    scale: Literal["none", "centre", "columns", "table"] | None
    """How columns are brought to a common scale."""
    truth: str | os.PathLike[str] | None
    """A graph to compare with: a CSV file of edges under the header from,to."""


class CountOptions(TableOptions, total=False):
    """Options of every question about a number of components."""

    count_prior: str | None
    """The prior of the number: uniform, poisson:MEAN, geometric:P, weights:W,W,…"""
    missing: Literal["error", "drop"] | None
    """What becomes of rows with missing values."""


class ChangePointOptions(CountOptions, total=False):
    """Options of `changepoints`: those of `vti changepoints`."""

    kind: Required[Literal["events", "counts", "means", "slopes"]]
    """What is constant between changes: rates of events or of counts, means, or lines."""
    time: str | None
    """The column of times: numbers or dates."""
    value: str | None
    """The column of counts or values."""
    exposure: str | None
    """Counts are proportional to this column."""
    start: Time | None
    """When observation of events began; at the first event by default."""
    end: Time | None
    """When it ended; at the last event by default."""
    max_changes: int | None
    """The most changes."""
    min_spacing: float | None
    """The least distance between changes, and from the ends."""
    spacing: float | None
    """Of events: the parameters of the Dirichlet distribution of spacings."""
    noise: float | Literal["unknown"] | None
    """Standard deviation of values around means or lines."""
    rate_prior: str | None
    """gamma:SHAPE,RATE."""
    level_prior: str | None
    """Of means, and of lines at the mean time of their rows: normal:MEAN,SD."""
    slope_prior: str | None
    """normal:MEAN,SD."""
    noise_prior: str | None
    """The prior of an unknown noise."""


class MixtureOptions(CountOptions, total=False):
    """Options of `mixture`: those of `vti mixture`."""

    column: Names | None
    """The column or columns; several have full covariances."""
    max_components: int | None
    """The most components."""
    prior: Literal["rg97"] | None
    """Priors of weights, means and precisions, by name."""


class PeakOptions(CountOptions, total=False):
    """Options of `peaks`: those of `vti peaks`."""

    x: str | None
    """The column of places: energies, wavelengths, times."""
    y: str | None
    """The column of values."""
    shape: Literal["gaussian", "lorentzian", "voigt", "sinusoid"] | None
    """What is looked for."""
    max_peaks: int | None
    """The most peaks or sinusoids."""
    background_degree: int | None
    """The degree of the polynomial background, 0 to 3: `--background` of the command."""
    height_prior: str | None
    """The prior of heights."""
    width_prior: str | None
    """The prior of full widths at half maximum."""
    frequency_prior: str | None
    """The prior of frequencies."""
    noise_prior: str | None
    """The prior of the noise."""


class LayerOptions(CountOptions, total=False):
    """Options of `layers`: those of `vti layers`."""

    forward: Required[str]
    """What predicts data from layers: mt, or a program with its arguments."""
    max_layers: int | None
    """The most layers, the half space below the others included."""
    depth_prior: str | None
    """The prior of depths of interfaces."""
    value_prior: str | None
    """The prior of resistivities, or of the property that layers have for a program."""
    errors: Literal["known", "scaled"] | None
    """How large errors are: as their columns say, or scaled by a factor that is inferred."""
    factor_prior: str | None
    """The prior of that factor."""
    relative_error: float | None
    """Errors where no column has them, as a share."""
    period: str | None
    """With mt, the column of periods in seconds."""
    frequency: str | None
    """With mt, the column of frequencies in hertz, instead of periods."""
    resistivity: str | None
    """With mt, the column of apparent resistivities in Ωm."""
    resistivity_error: str | None
    """With mt, the column of their standard deviations in Ωm."""
    phase: str | None
    """With mt, the column of phases in degrees."""
    phase_error: str | None
    """With mt, the column of their standard deviations in degrees."""
    value: str | None
    """With a program, the column of data."""
    error: str | None
    """With a program, the column of their standard deviations."""
    x: str | None
    """With a program, the column that data are drawn over."""
    property: str | None
    """With a program, what the property of layers is called."""
    processes: int | None
    """Processes of the program that run side by side."""
    timeout: float | None
    """How long one answer of the program may take, in seconds."""


class FitOptions(RunOptions, total=False):
    """Options of `fit`."""

    data: Any
    """A table in the place of the one that a configuration names."""
    parameters: Sequence[str] | None
    """Names of the parameters of a density of one's own."""
    constraints: Sequence[Constraint] | None
    """Where its parameters live: "real", "positive", ("interval", 0, 1), ("simplex", 3)."""
    reference: tuple[float, float] | Sequence[tuple[float, float]] | None
    """A mean and a standard deviation, for all free coordinates or for each, that reach wherever parameters may lie."""
    log_prior: Callable[[Any], Any] | None
    """The prior over models up to a constant, of an array of words; uniform by default."""
    title: str | None
    """What is asked, as the page says it."""


def names_of(options: type) -> frozenset[str]:
    """All options of a kind."""
    found: frozenset[str] = options.__required_keys__ | options.__optional_keys__  # type: ignore[attr-defined]
    return found


# Options that the command calls otherwise: here, `background` says how a run is made.
OF_COMMAND = {"background_degree": "background"}
# Settings that are called otherwise than their options.
_SETTINGS = {"column": "columns"}


def arguments(options: Mapping[str, Any], section: str = "problem") -> list[str]:
    """Options that were given. Lists whose items an option could not tell apart go by the setting of the same name."""
    found: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + OF_COMMAND.get(name, name).replace("_", "-")
        setting = f"{section}.{_SETTINGS.get(name, name)}"
        if name == "set":
            changes = value.items() if isinstance(value, Mapping) else [change.split("=", 1) for change in value]
            found += [f"--set={key}={toml(item) if not isinstance(item, str) else item}" for key, item in changes]
        elif value is True:
            found.append(option)
        elif isinstance(value, Mapping):
            found.append(f"--set={setting}={toml(value)}")
        elif isinstance(value, (list, tuple, set, frozenset)):
            items = list(value)
            if all(isinstance(item, str) and not set(item) & set(",;") for item in items):
                found += [f"{option}={','.join(items)}"] if items else []
            else:
                found.append(f"--set={setting}={toml(items)}")
        else:
            found.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return found


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if hasattr(value, "item"):
        value = value.item()
    # Strings, numbers and truths are those of JSON.
    return json.dumps(value, ensure_ascii=False)
