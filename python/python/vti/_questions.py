"""What can be asked. Keyword arguments are the options of the command, with its names, values and defaults."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from ._answer import Answer
from ._density import Density, Space, described, name_of
from ._handle import Handle, Place
from ._options import (
    ChangePointOptions,
    DagOptions,
    FitOptions,
    LayerOptions,
    MixtureOptions,
    PeakOptions,
    RunOptions,
    SelectOptions,
    arguments,
    names_of,
)
from ._tables import as_table, is_file, of_values
from ._vti import Job, Run

# What a table that is handed over is called.
_TABLE = "data.parquet"


def _documented(options: type) -> Callable[[Any], Any]:
    """Shows the options of a function in its signature, and refuses others."""
    known = sorted(names_of(options))

    def document(function: Any) -> Any:
        @functools.wraps(function)
        def checked(*positional: Any, **given: Any) -> Any:
            for name in given.keys() - {"background", *own, *known}:
                close = difflib.get_close_matches(name, known, 1)
                hint = f"\nhint: did you mean {close[0]}?" if close else ""
                raise TypeError(f"{function.__name__}() has no argument {name}{hint}")
            if not isinstance(given.get("background", False), bool):
                hint = "\nhint: the degree of a polynomial is background_degree" if "background_degree" in known else ""
                raise TypeError(f"background={given['background']}: True or False, whether the run is in the background{hint}")
            return function(*positional, **given)

        signature = inspect.signature(function)
        own = list(signature.parameters)
        plain = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in known]
        checked.__signature__ = signature.replace(parameters=plain + more)  # type: ignore[attr-defined]
        return checked

    return document


def _run(options: dict[str, Any]) -> tuple[list[str], Place, bool | None]:
    """Takes the options of a run out of others: as arguments, its place, and whether its progress is shown."""
    given = {name: options.pop(name) for name in names_of(RunOptions) if name in options}
    progress, place = given.pop("progress", None), Place(given.pop("out", None))
    return [f"--out={place.path}", *arguments(given)], place, progress


def _end(job: Job, place: Place, background: bool, progress: bool | None, calls_python: bool = False) -> Answer | Handle:
    handle = Handle(job, place, calls_python)
    return handle if background else handle._finish(progress)


def _ask(kind: str, data: Any, beside: Mapping[str, Any] | None, options: dict[str, Any], background: bool) -> Any:
    """Asks a question of a table, with more columns beside its own: `kind` is the command."""
    run, place, progress = _run(options)
    names, table = options.pop("names", None), None
    if is_file(data) and beside:
        raise TypeError("columns cannot be added to a file\nhint: read it first, or name its column by response")
    if not is_file(data):
        table = as_table(data, names)
        if beside:
            table = table.beside(as_table(beside))
    # What may begin with a dash stands behind two.
    job = Job.ask([kind, *arguments(options), *run, "--", _TABLE if table is not None else os.fspath(data)], table)
    return _end(job, place, background, progress)


@overload
def select(data: Any, y: Any = ..., *, background: Literal[True], **options: Unpack[SelectOptions]) -> Handle: ...
@overload
def select(data: Any, y: Any = ..., *, background: Literal[False] = ..., **options: Unpack[SelectOptions]) -> Answer: ...
@_documented(SelectOptions)
def select(data: Any, y: Any = None, *, background: bool = False, **options: Any) -> Any:
    """Which covariates matter for a response?

    `data` is a table: anything with an Arrow stream, a pandas frame, a mapping of names to columns, a two-dimensional array whose
    columns `names` names, or the path of a CSV or Parquet file. The response is its column `response`, or `y`. All other arguments
    are the options of `vti select`, whose defaults they have (`SelectOptions` says what they mean); `background=True` gives a
    `Handle` instead of an `Answer`.
    """
    beside = None
    if y is not None:
        options["response"] = options.get("response") or str(getattr(y, "name", None) or "y")
        beside = {options["response"]: y}
    if options.get("response") is None:
        raise TypeError("which column is the response?\nhint: response='y', or y=values")
    return _ask("select", data, beside, options, background)


@overload
def dag(data: Any, *, background: Literal[True], **options: Unpack[DagOptions]) -> Handle: ...
@overload
def dag(data: Any, *, background: Literal[False] = ..., **options: Unpack[DagOptions]) -> Answer: ...
@_documented(DagOptions)
def dag(data: Any, *, background: bool = False, **options: Any) -> Any:
    """What causes what, if there are no hidden common causes?

    `data` is a table as for `select`; its columns are the nodes. All other arguments are the options of `vti dag` (`DagOptions`
    says what they mean); edges are pairs `("a", "b")` or texts `"a->b"`, tiers lists of columns, earliest first.
    Columns of texts and of truths are categories; `ordered` gives levels by column, lowest first: `{"size": ["low", "mid", "high"]}`.
    """
    return _ask("dag", data, None, options, background)


@overload
def changepoints(data: Any, *, background: Literal[True], **options: Unpack[ChangePointOptions]) -> Handle: ...
@overload
def changepoints(data: Any, *, background: Literal[False] = ..., **options: Unpack[ChangePointOptions]) -> Answer: ...
@_documented(ChangePointOptions)
def changepoints(data: Any, *, background: bool = False, **options: Any) -> Any:
    """How many changes, and when? Exact, without training.

    `data` is a table as for `select`, with a row for each event, count or value, or these alone, one after the other. All other
    arguments are the options of `vti changepoints` (`ChangePointOptions` says what they mean); `kind` says what is constant between
    changes. Times are numbers or dates.
    """
    data = of_values(data, "time" if options.get("kind") == "events" else "value")
    return _ask("changepoints", data, None, options, background)


@overload
def mixture(data: Any, *, background: Literal[True], **options: Unpack[MixtureOptions]) -> Handle: ...
@overload
def mixture(data: Any, *, background: Literal[False] = ..., **options: Unpack[MixtureOptions]) -> Answer: ...
@_documented(MixtureOptions)
def mixture(data: Any, *, background: bool = False, **options: Any) -> Any:
    """How many normal components is a sample from?

    `data` is a table as for `select`, or the values of one column alone. All other arguments are the options of `vti mixture`
    (`MixtureOptions` says what they mean); `column` names one column or several.
    """
    data = of_values(data, "x")
    return _ask("mixture", data, None, options, background)


@overload
def peaks(data: Any, *, background: Literal[True], **options: Unpack[PeakOptions]) -> Handle: ...
@overload
def peaks(data: Any, *, background: Literal[False] = ..., **options: Unpack[PeakOptions]) -> Answer: ...
@_documented(PeakOptions)
def peaks(data: Any, *, background: bool = False, **options: Any) -> Any:
    """How many peaks, or sinusoids, are over a background?

    `data` is a table as for `select`. All other arguments are the options of `vti peaks` (`PeakOptions` says what they mean); `x` and
    `y` name columns.
    """
    return _ask("peaks", data, None, options, background)


@overload
def layers(data: Any, *, background: Literal[True], **options: Unpack[LayerOptions]) -> Handle: ...
@overload
def layers(data: Any, *, background: Literal[False] = ..., **options: Unpack[LayerOptions]) -> Answer: ...
@_documented(LayerOptions)
def layers(data: Any, *, background: bool = False, **options: Any) -> Any:
    """How many layers of the earth are below a measurement, where, and of what?

    `data` is a table as for `select`. All other arguments are the options of `vti layers` (`LayerOptions` says what they mean);
    `forward` is "mt" for magnetotelluric data, or any program that predicts data from layers.
    """
    return _ask("layers", data, None, options, background)


@overload
def fit(asked: Any, space: Space | None = ..., *, background: Literal[True], **options: Unpack[FitOptions]) -> Handle: ...
@overload
def fit(asked: Any, space: Space | None = ..., *, background: Literal[False] = ..., **options: Unpack[FitOptions]) -> Answer: ...
@_documented(FitOptions)
def fit(asked: Any, space: Space | None = None, *, background: bool = False, **options: Any) -> Any:
    """Runs a configuration, or learns a density of one's own.

    `fit(config)`: the path of a TOML file as `vti fit` takes it, or a mapping with its sections; `data` is a table in the place of
    the one that it names.

    `fit(log_density, space)`: `log_density(words, theta, mask)` gets a batch, one row for each draw: the words of the models
    (n × symbols), all parameters (n × parameters, 0 where the model does not have one) and which of them the model has. It returns
    log p(y, θ | m) of each row (n), or that and its gradients (n × parameters); `vti.jax` and `vti.torch` make such a function of
    one for a single row. Without gradients they are taken from differences, for which each batch is larger. `parameters` are names,
    `constraints` say where parameters live ("real", "positive", ("interval", 0, 1), ("simplex", 3)), `reference` is a mean and a
    standard deviation, for all free coordinates or for each, that reach wherever parameters may lie: a check looks from there, and
    without it nothing is trusted. `log_prior(words)` is the prior over models, up to a constant; uniform by default.
    """
    run, place, progress = _run(options)
    data = options.pop("data", None)
    if callable(asked):
        if space is None:
            raise TypeError("a log density needs its space of models\nhint: vti.fit(log_density, vti.Subsets(3))")
        title = options.pop("title", None)
        job = Job.of_density(asked, described(space, **options), name_of(asked), title, run)
        return _end(job, place, background, progress, calls_python=True)
    table = None if data is None or is_file(data) else as_table(data)
    if isinstance(asked, Mapping):
        config = json.loads(json.dumps(asked, default=_plain))
        if is_file(data):
            config.setdefault("problem", {})["data"] = os.path.abspath(data)
        job = Job.configured(json.dumps(config), run, table)
    elif isinstance(asked, (str, os.PathLike)):
        changes = [f"--set=problem.data={os.path.abspath(data)}"] if is_file(data) else []
        job = Job.ask(["fit", *changes, *run, "--", os.fspath(asked)], table)
    else:
        raise TypeError(
            f"{type(asked).__name__} is neither a configuration nor a log density\n"
            "hint: the path of a TOML file, a mapping with its sections, or a function with a space of models"
        )
    return _end(job, place, background, progress)


def _plain(value: Any) -> Any:
    """Values of NumPy and paths as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else os.fspath(value)


def load(path: str | os.PathLike[str], log_density: Density | None = None, space: Space | None = None, **known: Any) -> Answer:
    """The answer in a run directory, whoever made it.

    A run of a density of one's own gives draws and densities only with that density and its space (and `parameters`, `constraints`,
    `reference`, `log_prior` where it was fitted with them).
    """
    if log_density is not None and space is not None:
        space = described(space, **known)
    return Answer(Run.open(Path(path), log_density, space), Place(path))
