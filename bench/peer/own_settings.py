"""DAGMA and DiBS with their own settings, on many cores and a GPU: what `graphs.py` cannot wait for on a laptop.

    python own_settings.py run DATA --out FILE.jsonl [--processes N] [--lambdas 0.01,0.1]
    python own_settings.py score DATA FILE.jsonl...

DATA holds pairs of `NAME.csv` and `NAME-truth.csv` as `vti simulate dag --out --truth-out` writes them.
`run` has DAGMA fit every λ of every data set in a process of its own, and DiBS meanwhile every data
set on what JAX finds; an answer is a line of FILE as soon as it is there, and is not asked for again.
`score` prints the paper's four scores as means over data sets, by the conventions of `cargo xtask
paper figure3`: DAGMA's λ is chosen by an oracle for each data set.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import json
import math
import multiprocessing
import pathlib
import statistics
import threading
from typing import Any

import graphs

Graph = list[list[int]]


def data_sets(folder: pathlib.Path) -> list[str]:
    """Names of the data sets that have a truth."""
    truths = sorted(folder.glob("*-truth.csv"))
    return [path.name.removesuffix("-truth.csv") for path in truths]


def identity(name: str, method: str, value: float | None) -> str:
    """What tells jobs apart."""
    return f"{name}/{method}" if value is None else f"{name}/{method}/{value:g}"


def run(folder: pathlib.Path, out: pathlib.Path, processes: int, lambdas: list[float]) -> None:
    """Asks for every answer that is not there yet."""
    done = {answer["id"] for answer in read([out])} if out.exists() else set()

    def asked(name: str, method: str, value: float | None) -> dict[str, Any] | None:
        key = identity(name, method, value)
        settings = {} if value is None else {"lambdas": [value]}
        path = str(folder / f"{name}.csv")
        whole = {"id": key, "csv": path, "method": method, "seed": 1, "settings": settings}
        return None if key in done else whole

    names = data_sets(folder)
    dagma = [asked(name, "dagma", value) for value in lambdas for name in names]
    dibs = [asked(name, "dibs", None) for name in names]
    graphs.limit_threads(1)
    start = multiprocessing.get_context("spawn")
    lock = threading.Lock()
    with (
        out.open("a", encoding="utf-8") as file,
        concurrent.futures.ProcessPoolExecutor(processes, mp_context=start) as pool,
    ):

        def keep(answer: dict[str, Any]) -> None:
            with lock:
                file.write(json.dumps(answer) + "\n")
                file.flush()
                said = answer.get("error", f"{answer.get('seconds', 0.0):.0f} s")
                print(answer["id"], said, flush=True)

        for job in dagma:
            if job:
                waiting = pool.submit(graphs.answer, json.dumps(job))
                waiting.add_done_callback(lambda done: keep(done.result()))
        for job in dibs:
            if job:
                keep(graphs.answer(json.dumps(job)))


def read(files: list[pathlib.Path]) -> list[dict[str, Any]]:
    """All sound answers."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines(True)]
    # A line without an end was being written when the power went.
    answers = [json.loads(line) for line in lines if line.endswith("\n")]
    return [answer for answer in answers if "error" not in answer]


def read_truth(folder: pathlib.Path, name: str) -> Graph:
    """The adjacency matrix of a data set's truth."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        nodes = next(csv.reader(file))
    graph = [[0] * len(nodes) for _ in nodes]
    with (folder / f"{name}-truth.csv").open(newline="", encoding="utf-8") as file:
        for source, target, *_ in list(csv.reader(file))[1:]:
            graph[nodes.index(source)][nodes.index(target)] = 1
    return graph


def scores(truth: Graph, weighted: list[tuple[Graph, float]]) -> dict[str, float]:
    """The paper's scores of weighted graphs: means over graphs, but Brier of the edge probabilities."""
    entries = [(i, j) for i in range(len(truth)) for j in range(len(truth))]
    found = {"F1": 0.0, "SHD": 0.0, "Brier": 0.0, "AUROC": 0.0}
    for graph, weight in weighted:
        hits = sum(graph[i][j] * truth[i][j] for i, j in entries)
        said, true = (sum(map(sum, matrix)) for matrix in (graph, truth))
        quiet = len(entries) - true
        found["F1"] += weight * (2.0 * hits / (said + true) if said + true else 1.0)
        found["SHD"] += weight * (said + true - 2 * hits)
        found["AUROC"] += weight * 0.5 * (hits / max(true, 1) + (quiet - said + hits) / quiet)
    for i, j in entries:
        probability = sum(weight * graph[i][j] for graph, weight in weighted)
        found["Brier"] += (probability - truth[i][j]) ** 2
    return found


def best(answers: list[dict[str, float]], score: str) -> float:
    """The best of one score alone: more than any user could choose."""
    choose = min if score in ("SHD", "Brier") else max
    return choose(answer[score] for answer in answers)


def table(folder: pathlib.Path, files: list[pathlib.Path]) -> str:
    """Means and standard errors over data sets."""
    rows: dict[str, list[dict[str, float]]] = {}
    answers = read(files)
    for name in data_sets(folder):
        truth = read_truth(folder, name)
        own = [answer for answer in answers if answer["id"].startswith(f"{name}/")]
        path = []
        for answer in own:
            for point in answer.get("path", []):
                path.append(scores(truth, [(point["graph"], 1.0)]))
                rows.setdefault(f"DAGMA, λ = {point['lambda']:g}", []).append(path[-1])
            for method, title in (("dibs", "DiBS"), ("dibs+", "DiBS+")):
                if answer.get(method, {}).get("weights"):
                    weighted = list(zip(answer["particles"], answer[method]["weights"]))
                    rows.setdefault(title, []).append(scores(truth, weighted))
        if path:
            chosen = max(path, key=lambda scored: scored["F1"])
            rows.setdefault("DAGMA, λ of best F1", []).append(chosen)
            each = {score: best(path, score) for score in chosen}
            rows.setdefault("DAGMA, best λ for each score", []).append(each)
    lines = ["| method | data sets | F1 | SHD | Brier | AUROC |", "|---|---|---|---|---|---|"]
    for title, found in sorted(rows.items()):
        cells = []
        for score in ("F1", "SHD", "Brier", "AUROC"):
            values = [scored[score] for scored in found]
            spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
            cells.append(f"{statistics.mean(values):.2f} ± {spread:.2f}")
        lines.append(f"| {title} | {len(found)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Runs or scores."""
    parser = argparse.ArgumentParser(description="DAGMA and DiBS with their own settings")
    commands = parser.add_subparsers(required=True, dest="command")
    running = commands.add_parser("run")
    running.add_argument("data", type=pathlib.Path)
    running.add_argument("--out", type=pathlib.Path, required=True)
    running.add_argument("--processes", type=int, default=2)
    lambdas = ",".join(f"{value:g}" for value in graphs.LAMBDAS)
    running.add_argument("--lambdas", default=lambdas)
    scoring = commands.add_parser("score")
    scoring.add_argument("data", type=pathlib.Path)
    scoring.add_argument("answers", type=pathlib.Path, nargs="+")
    given = parser.parse_args()
    if given.command == "run":
        values = [float(value) for value in given.lambdas.split(",")]
        run(given.data, given.out, given.processes, values)
    else:
        print(table(given.data, given.answers))


if __name__ == "__main__":
    main()
