"""Answers: what a run found, as data frames, draws, graphs, plots and a page."""

from __future__ import annotations

import enum
import functools
import html
import io
import json
import os
import tarfile
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._handle import Place
from ._tables import as_table
from ._vti import Run

if TYPE_CHECKING:
    import networkx
    import numpy as np
    import pandas
    import xarray

# Numbers of everything that was learned: as q has them, corrected with their standard error, exact where that is known.
_QUANTITY = ["q", "corrected", "se", "exact"]


class VerdictKind(enum.Enum):
    """What to do with an answer."""

    TRUST = "trust"
    CORRECTED = "corrected"
    DO_NOT_TRUST = "do-not-trust"


@dataclass(frozen=True)
class Verdict:
    """What to do with an answer, and why."""

    kind: VerdictKind
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class LogEvidence:
    """log p(y), its standard error, and k̂ of the weights where there are some."""

    estimate: float
    se: float
    khat: float | None

    def __float__(self) -> float:
        return self.estimate


@dataclass(frozen=True)
class Figure:
    """A plot as SVG; notebooks show it."""

    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


class Answer:
    """What a run found."""

    def __init__(self, run: Run, place: Place, notes: tuple[str, ...] = (), stopped: bool = False) -> None:
        self._run, self._place = run, place
        self.notes = notes
        """How the data were understood, and what was chosen."""
        self.stopped = stopped
        """Whether the run was stopped before its end."""

    @property
    def path(self) -> Path:
        """The run directory; the files of the command are in it. It goes with the answer unless `out` named it."""
        return self._place.path

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """Everything, as `summary.json` has it."""
        found: dict[str, Any] = json.loads(self._run.summary())
        return found

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the run."""
        return tomllib.loads(self._run.settings())

    @property
    def kind(self) -> str:
        """What was asked: `select`, `dag`, `count` (how many there are of something), or `own` for a density of one's own."""
        return str(self.summary["kind"])

    @property
    def verdict(self) -> Verdict:
        """How far it can be trusted."""
        found = self.summary["verdict"]
        return Verdict(VerdictKind(found["kind"]), found["text"])

    @property
    def fit(self) -> dict[str, Any] | None:
        """Whether the model fits the data, which is another question; none where nobody has looked."""
        found: dict[str, Any] | None = self.summary["fit"]
        return found

    @property
    def log_evidence(self) -> LogEvidence:
        """log p(y)."""
        found = self.summary["log_evidence"]
        return LogEvidence(_number(found["estimate"]), _number(found["se"]), found["khat"])

    @property
    def models(self) -> pandas.DataFrame:
        """Models that were met, most probable first, at most 1,000."""
        rows = []
        for model in self.summary["models"]:
            evidence = model["log_evidence"] or {}
            more = {"log_evidence": evidence.get("value"), "log_evidence_se": evidence.get("se"), "khat": model["khat"]}
            rows.append({name: model[name] for name in ("word", "label", "size", *_QUANTITY)} | more)
        return _frame(rows, texts=("word", "label"), whole=("size",))

    @property
    def inclusion(self) -> pandas.DataFrame:
        """How probable it is that models have each of their parts."""
        return self._named("inclusion", "term", _QUANTITY)

    @property
    def coefficients(self) -> pandas.DataFrame:
        """Parameters averaged over models, in the units of the data; 0 where a model does not have one."""
        found = self.summary.get("coefficients") or {}
        rows = {name: row | {"low": row["interval"][0], "high": row["interval"][1]} for name, row in found.items()}
        return _indexed(rows, "parameter", [*_QUANTITY, "sd", "low", "high"])

    def _named(self, key: str, index: str, columns: list[str]) -> pandas.DataFrame:
        return _indexed(self._part(key), index, columns)

    def _part(self, key: str) -> Any:
        """What only answers of some kinds have."""
        found = self.summary.get(key)
        if found is None:
            raise AttributeError(f"an answer of kind {self.kind} has no {key}")
        return found

    @property
    def counted(self) -> str:
        """What is counted, in words: change points, components, peaks, …"""
        return str(self._part("counted")["plural"])

    @property
    def components(self) -> pandas.DataFrame:
        """How probable each number of components is, beside its prior probability and log p(y | k), where that is known."""
        import pandas

        rows, numbers = [], []
        for number, found in self._part("components").items():
            evidence = found["log_evidence"] or {}
            numbers.append(int(number))
            rows.append(
                {name: found[name] for name in _QUANTITY}
                | {"prior": found["prior"], "log_evidence": evidence.get("estimate")}
                | {"log_evidence_se": evidence.get("se"), "log_evidence_exact": evidence.get("exact")}
            )
        return _frame(rows).set_index(pandas.Index(numbers, name=self.counted))

    @property
    def most_probable(self) -> int:
        """The most probable number of components."""
        return int(self._part("most_probable"))

    @property
    def mean(self) -> pandas.Series:
        """The mean number of components."""
        import pandas

        found = self._part("mean")
        return pandas.Series({name: _number(found[name]) for name in _QUANTITY}, name=f"mean number of {self.counted}")

    @property
    def curves(self) -> pandas.DataFrame:
        """What components together say about the data, averaged over their number: mean, median and bands at every place."""
        rows = []
        for curve in self._part("curves"):
            bands = {f"{end}_{round(100 * band['level'])}": band[end] for band in curve["bands"] for end in ("low", "high")}
            columns = {name: curve[name] for name in ("x", "mean", "median")} | bands
            rows += [{"curve": curve["name"]} | dict(zip(columns, values)) for values in zip(*columns.values())]
        return _frame(rows, texts=("curve",))

    @property
    def positions(self) -> pandas.DataFrame:
        """How many components are to be expected in each interval of an axis."""
        rows = [
            {"positions": found["name"], "from": start, "to": end, "expected": expected}
            for found in self._part("positions")
            for start, end, expected in zip(found["edges"], found["edges"][1:], found["expected"])
        ]
        return _frame(rows, texts=("positions",))

    @property
    def given(self) -> pandas.DataFrame:
        """Components one by one, given how many there are: means, standard deviations and central 90 % intervals of what each has,
        for the most probable numbers, most probable first."""
        rows = [
            {"number": given["count"], "component": f"{table['component']} {place}", "parameter": name}
            | {"mean": about["mean"], "sd": about["sd"], "low": about["interval"][0], "high": about["interval"][1]}
            for given in self._part("given")
            for table in given["tables"]
            for place, row in enumerate(table["rows"], 1)
            for name, about in zip(table["parameters"], row)
        ]
        return _frame(rows, texts=("component", "parameter"), whole=("number",))

    @property
    def memberships(self) -> pandas.DataFrame:
        """Which component each observation is from, with the probability of each, given their most probable number."""
        import pandas

        file = self.path / "memberships.csv"
        if self.kind != "count" or not file.exists():
            raise AttributeError(f"an answer about {self.counted if self.kind == 'count' else self.kind} has no memberships")
        return pandas.read_csv(file, float_precision="round_trip")

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes of a graph."""
        return list(self._edges()["nodes"])

    @property
    def edges(self) -> pandas.DataFrame:
        """How probable each edge is, most probable first."""
        found, nodes = self._edges(), self.nodes
        rows = [
            {"from": cause, "to": effect} | {name: found[name] and found[name][i][j] for name in _QUANTITY}
            for i, cause in enumerate(nodes)
            for j, effect in enumerate(nodes)
            if i != j
        ]
        frame = _frame(rows, texts=("from", "to"))
        return frame.sort_values("corrected", ascending=False, kind="stable", ignore_index=True)

    @property
    def adjacency(self) -> np.ndarray:
        """Corrected probabilities of edges: `adjacency[i, j]` is that of i → j."""
        import numpy as np

        return np.array(self._edges()["corrected"], dtype=float)

    def _edges(self) -> dict[str, Any]:
        found: dict[str, Any] = self._part("edges")
        return found

    def graph(self, threshold: float = 0.5) -> networkx.DiGraph:
        """Edges that are at least so probable, with their probabilities; all nodes."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.nodes)
        for edge in self.edges.to_dict("records"):
            if edge["corrected"] >= threshold:
                numbers = {name: edge[name] for name in _QUANTITY if edge[name] == edge[name]}
                graph.add_edge(edge["from"], edge["to"], probability=edge["corrected"], **numbers)
        return graph

    @property
    def draws(self) -> pandas.DataFrame:
        """The draws that the answer was made of, with their weights; parameters that a model does not have are not numbers."""
        return _draws(self._run.draws())

    def sample(self, n: int, batch: int = 0) -> pandas.DataFrame:
        """Fresh draws from q with their importance weights, or from the posterior where it is exact; another batch is of others."""
        return _draws(self._run.sample(n, batch))

    def log_prob(self, points: Any) -> np.ndarray:
        """log q(m, θ) at points, or log p(m, θ | y) where the answer is exact: a table with a column for each parameter, in the
        units of the data; what is not a number is of parameters that the model does not have."""
        found: np.ndarray = self._run.log_prob(as_table(points))["log_q"]
        return found

    def log_densities(self, points: Any) -> pandas.DataFrame:
        """The same with log p(m) p(y, θ | m) and the models of the points."""
        import pandas

        return pandas.DataFrame(self._run.log_prob(as_table(points)))

    def predict(self, new: Any, interval: float = 0.9) -> pandas.DataFrame:
        """The response of new rows, averaged over models, with intervals of its mean and of a new observation. Rows whose cells
        cannot be read have no prediction, which a warning says."""
        import pandas

        if not 0.0 < interval < 1.0:
            raise ValueError(f"interval {interval}: a number between 0 and 1 is needed")
        columns, note = self._run.predict(as_table(new), interval)
        if note is not None:
            warnings.warn(note, stacklevel=2)
        return pandas.DataFrame(columns)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page; written to a file where one is named."""
        page = self._run.page()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plot_inclusion(self) -> Figure:
        """Inclusion probabilities."""
        return self._figure("inclusion")

    def plot_models(self) -> Figure:
        """Probabilities of the leading models."""
        return self._figure("models")

    def plot_coefficients(self) -> Figure:
        """Densities of parameters."""
        return self._figure("coefficients")

    def plot_pairs(self) -> Figure:
        """Parameters of the leading model, two by two."""
        return self._figure("pairs")

    def plot_fit(self) -> Figure:
        """Whether the model fits the data."""
        return self._figure("fit")

    def plot_training(self) -> Figure:
        """The bound and the entropy, step by step."""
        return self._figure("training")

    def plot_graph(self) -> Figure:
        """The graph of probable edges."""
        return self._figure("graph")

    def plot_edges(self) -> Figure:
        """Probabilities of all edges, as a matrix."""
        return self._figure("edges")

    def plot_numbers(self) -> Figure:
        """Probabilities of numbers of components."""
        return self._figure("numbers")

    def plot_curves(self) -> Figure:
        """Curves with their bands over what was observed."""
        return self._figure("curves")

    def plot_positions(self) -> Figure:
        """Where components are."""
        return self._figure("positions")

    def _figure(self, section: str) -> Figure:
        svg = self._run.figure(section)
        if svg is None:
            raise ValueError(f"an answer of kind {self.kind} has nothing to plot about {section}")
        return Figure(svg)

    def to_arviz(self, draws: int = 2000, models: int = 5, chains: int = 4) -> xarray.DataTree:
        """Equally weighted draws for ArviZ: `posterior` has every parameter, 0 where the model does not have it; `sample_stats` has
        the `model` of each draw, which parameters are `active` in it, log densities and weights; `model_1`, `model_2`, … are the
        leading models, each with the draws of its own parameters.

        Draws are in random order, as so many chains of equal length; copies of a draw that weighed more than others follow each
        other, so that effective sample sizes heed weights. ArviZ 1 takes the tree as it is, `az.summary(tree)` and
        `az.summary(tree["model_1"])`; earlier ones, the only ones for Python 3.11, take `az.from_datatree(tree)`.
        """
        from ._arviz import tree

        if chains < 1 or draws < chains:
            raise ValueError(f"{draws} draws in {chains} chains: at least one draw in each is needed")
        return tree(self._run.equal_draws(draws), [model["word"] for model in self.summary["models"][:models]], chains)

    def __repr__(self) -> str:
        return self._run.text()

    def _repr_html_(self) -> str:
        page = html.escape(self.report(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:1px solid #ccc" title="{self.kind}"></iframe>'

    def __getstate__(self) -> dict[str, Any]:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for file in sorted(self.path.iterdir()):
                archive.add(file, file.name)
        return {"files": packed.getvalue(), "notes": self.notes, "stopped": self.stopped}

    def __setstate__(self, state: dict[str, Any]) -> None:
        place = Place()
        with tarfile.open(fileobj=io.BytesIO(state["files"])) as archive:
            archive.extractall(place.path, filter="data")
        Answer.__init__(self, Run.open(place.path), place, state["notes"], state["stopped"])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _frame(rows: list[dict[str, Any]], texts: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> pandas.DataFrame:
    import pandas

    frame = pandas.DataFrame(rows)
    numbers = [name for name in frame.columns if name not in texts and name not in whole]
    return frame.astype(dict.fromkeys(numbers, float))


def _indexed(rows: dict[str, Any], index: str, columns: list[str]) -> pandas.DataFrame:
    import pandas

    names = pandas.Index(list(rows), name=index, dtype=object)
    values = {column: [row[column] for row in rows.values()] for column in columns}
    return pandas.DataFrame(values, index=names, dtype=float)


def _draws(found: dict[str, Any]) -> pandas.DataFrame:
    import numpy as np
    import pandas

    frame = pandas.DataFrame(found["values"], columns=found["columns"])
    for place, name in enumerate(("model", "word")):
        texts = np.array(found["labels" if name == "model" else "words"], dtype=object)
        frame.insert(place, name, texts[found["model"]] if len(texts) else texts)
    for place, name in enumerate(("log_q", "log_target", "log_weight"), 2):
        frame.insert(place, name, found[name])
    return frame
