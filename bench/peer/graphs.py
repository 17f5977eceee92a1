"""The peers of causal graphs: DAGMA and DiBS, run from their own published packages.

    python graphs.py [--threads N]

One JSON job a line on standard input, one JSON answer a line on standard output; the first line out
says which versions answer. The process stays alive, so that data sets of one shape share what is
compiled. A job:

    {"id": 1, "csv": "data.csv", "rows": 64, "method": "dagma", "seed": 0, "settings": {"lambdas": [0.1]}}

`id` is handed back, `rows` keeps the first rows only (all of them when absent), and `settings`
replaces single defaults of `DAGMA_MLP`, `DAGMA_LINEAR` or `DIBS` below. Methods:

- `dagma` (sigmoid networks with biases: the package cannot leave them out) and `dagma-linear`: for
  every λ the raw weights and the graph of weights that reach the threshold;
- `dibs`: the particles, their weights and edge probabilities, both as DiBS (each particle counts
  the same) and as DiBS+ (by the joint density, the package's `get_mixture`): one run answers both.
  Cyclic particles have no weight, as in the package's own metrics.

`A[i][j] = 1` means i → j. The data are used as they are: centre or scale them before.
"""

from __future__ import annotations

import argparse
import csv
import functools
import importlib.metadata
import json
import os
import sys
import time
from typing import Any

REQUIREMENTS = "bench/peer/graphs-requirements.txt"
PACKAGES = ("dagma", "dibs-lib", "jax", "jaxlib", "numpy", "torch")

# DAGMA's own defaults; the λ are the paper's sweep.
LAMBDAS = [10.0 ** (-3.0 + k / 3.0) for k in range(10)]
DAGMA_MLP: dict[str, Any] = {
    "lambdas": LAMBDAS,
    "hidden": 10,
    "lambda2": 0.005,
    "T": 4,
    "mu_init": 0.1,
    "mu_factor": 0.1,
    "s": 1.0,
    "warm_iter": 50_000,
    "max_iter": 80_000,
    "lr": 2e-4,
    "checkpoint": 1_000,
    "w_threshold": 0.3,
    "dtype": "float64",
}
DAGMA_LINEAR: dict[str, Any] = {
    "lambdas": LAMBDAS,
    "T": 5,
    "mu_init": 1.0,
    "mu_factor": 0.1,
    "s": [1.0, 0.9, 0.8, 0.7, 0.6],
    "warm_iter": 30_000,
    "max_iter": 60_000,
    "lr": 3e-4,
    "checkpoint": 1_000,
    "w_threshold": 0.3,
}
# DiBS's own defaults; particles and steps are the paper's, the model is that of its simulation.
DIBS: dict[str, Any] = {
    "hidden": 10,
    "bias": False,
    "activation": "relu",
    "noise_variance": 1.0,
    "weight_scale": 1.0,
    "edge_probability": 0.5,
    "particles": 10,
    "steps": 5_000,
    "stepsize": 0.005,
    "alpha_linear": 0.05,
    "beta_linear": 1.0,
    "n_grad_mc_samples": 128,
    "n_acyclicity_mc_samples": 32,
    "h_latent": 5.0,
    "h_theta": 500.0,
}


def fail(message: str, hint: str) -> None:
    """Ends the process as a usage error."""
    print(f"error: {message}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def versions() -> dict[str, str]:
    """The installed version of every package the peers compute with."""
    found: dict[str, str] = {}
    missing: list[str] = []
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        hint = f"install them with `{sys.executable} -m pip install --requirement {REQUIREMENTS}`"
        fail(f"the peers need packages that are not installed: {', '.join(missing)}", hint)
    return found


def limit_threads(threads: int) -> None:
    """Bounds the threads of every library, to be called before the first of them is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        os.environ[name] = str(threads)
    if threads == 1:
        # XLA sizes its pool by NPROC, but Eigen's products have a switch of their own.
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    # DAGMA draws a progress bar otherwise.
    os.environ["TQDM_DISABLE"] = "1"


def read_table(path: str, rows: int | None):
    """The numbers of a CSV file with one line of names, the first `rows` of them."""
    import numpy as np

    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    if rows is not None and rows > len(lines):
        raise ValueError(f"{path} has {len(lines)} rows, {rows} are asked for")
    return np.array(lines[:rows], dtype=np.float64)


def resolve(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Defaults with single values replaced; an unknown key is an error."""
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise ValueError(f"unknown settings {', '.join(unknown)}; known: {', '.join(defaults)}")
    return {**defaults, **given}


def is_acyclic(graph) -> bool:
    """Whether removing parentless nodes one after the other removes them all."""
    left = list(range(len(graph)))
    while left:
        free = [j for j in left if not any(graph[i][j] for i in left)]
        if not free:
            return False
        left = [j for j in left if j not in free]
    return True


def dagma(data, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """DAGMA with networks, for every λ."""
    import torch
    from dagma.nonlinear import DagmaMLP, DagmaNonlinear

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dtype = getattr(torch, settings["dtype"])

    def weights(value: float, common: dict[str, Any]):
        torch.manual_seed(seed)
        network = DagmaMLP([data.shape[1], settings["hidden"], 1], bias=True, dtype=dtype)
        model = DagmaNonlinear(network, dtype=dtype)
        return model.fit(data, lambda1=value, lambda2=settings["lambda2"], **common)

    return {"path": dagma_path(settings, weights)}


def dagma_linear(data, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """DAGMA with linear equations (deterministic), for every λ."""
    from dagma.linear import DagmaLinear

    def weights(value: float, common: dict[str, Any]):
        # The package centres what it is given in place, and widens `s` in place.
        common = {**common, "s": list(common["s"])}
        return DagmaLinear("l2").fit(data.copy(), lambda1=value, **common)

    return {"path": dagma_path(settings, weights)}


def dagma_path(settings: dict[str, Any], weights) -> list[dict[str, Any]]:
    """The answer at every λ: weights before the threshold, and the graph after it."""
    import numpy as np

    passed = ("T", "mu_init", "mu_factor", "s", "warm_iter", "max_iter", "lr", "checkpoint")
    common = {name: settings[name] for name in passed}
    path = []
    for value in settings["lambdas"]:
        start = time.perf_counter()
        # Thresholded here, as the package does it, to see what was cut.
        raw = weights(value, {**common, "w_threshold": 0.0})
        seconds = time.perf_counter() - start
        graph = (np.abs(raw) >= settings["w_threshold"]).astype(int)
        path.append(
            {
                "lambda": value,
                "weights": raw.tolist(),
                "graph": graph.tolist(),
                "acyclic": is_acyclic(graph),
                "seconds": seconds,
            }
        )
    return path


@functools.lru_cache(maxsize=None)
def compiled_dibs(rows: int, nodes: int, frozen: str):
    """DiBS as one compiled function of data and key, and the seconds its compilation took.

    The package compiles anew for every data set, because the data are constants of its program;
    here they are an argument, so that data sets of one shape share it. What is computed is the same.
    """
    import jax
    from dibs.inference import JointDiBS
    from dibs.models import DenseNonlinearGaussian, ErdosReniDAGDistribution

    settings = json.loads(frozen)

    def run(x, key):
        likelihood = DenseNonlinearGaussian(
            n_vars=nodes,
            hidden_layers=(settings["hidden"],),
            obs_noise=settings["noise_variance"],
            sig_param=settings["weight_scale"],
            activation=settings["activation"],
            bias=settings["bias"],
        )
        # The package asks for the expected edges per node and makes the probability of them.
        edges_per_node = settings["edge_probability"] * (nodes - 1) / 2.0
        prior = ErdosReniDAGDistribution(nodes, n_edges_per_node=edges_per_node)
        dibs = JointDiBS(
            x=x,
            graph_model=prior,
            likelihood_model=likelihood,
            kernel_param={"h_latent": settings["h_latent"], "h_theta": settings["h_theta"]},
            optimizer_param={"stepsize": settings["stepsize"]},
            alpha_linear=settings["alpha_linear"],
            beta_linear=settings["beta_linear"],
            n_grad_mc_samples=settings["n_grad_mc_samples"],
            n_acyclicity_mc_samples=settings["n_acyclicity_mc_samples"],
        )
        graphs, theta = dibs.sample(
            key=key, n_particles=settings["particles"], steps=settings["steps"]
        )
        return graphs, dibs.get_mixture(graphs, theta).logp

    start = time.perf_counter()
    x = jax.ShapeDtypeStruct((rows, nodes), "float32")
    program = jax.jit(run).lower(x, jax.random.PRNGKey(0)).compile()
    return program, time.perf_counter() - start


def dibs(data, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    """DiBS and DiBS+: one set of particles, two sets of weights."""
    import jax
    import numpy as np

    # The first data set of a shape pays for compiling; its seconds are told apart.
    before = compiled_dibs.cache_info().misses
    program, compiling = compiled_dibs(*data.shape, json.dumps(settings, sort_keys=True))
    compiled_now = compiled_dibs.cache_info().misses > before

    start = time.perf_counter()
    graphs, log_joint = program(jax.numpy.asarray(data, "float32"), jax.random.PRNGKey(seed))
    graphs = np.asarray(graphs)
    log_joint = np.asarray(log_joint, dtype=np.float64)
    seconds = time.perf_counter() - start

    acyclic = np.array([is_acyclic(graph) for graph in graphs])
    answer: dict[str, Any] = {
        "particles": graphs.tolist(),
        "acyclic": acyclic.tolist(),
        "compile_seconds": compiling if compiled_now else 0.0,
        "sample_seconds": seconds,
    }
    for name, log_weights in (("dibs", np.zeros(len(graphs))), ("dibs+", log_joint)):
        answer[name] = mixture(graphs, acyclic, log_weights)
    return answer


def mixture(graphs, acyclic, log_weights) -> dict[str, Any]:
    """Normalised weights of the acyclic graphs, and edge probabilities; none without such a graph."""
    import numpy as np

    if not acyclic.any():
        return {"weights": None, "edges": None}
    log_weights = np.where(acyclic, log_weights, -np.inf)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    edges = np.tensordot(weights, graphs, axes=1)
    return {"weights": weights.tolist(), "edges": edges.tolist()}


METHODS = {
    "dagma": (dagma, DAGMA_MLP),
    "dagma-linear": (dagma_linear, DAGMA_LINEAR),
    "dibs": (dibs, DIBS),
}


def answer(line: str) -> dict[str, Any]:
    """The answer to one job; what goes wrong is an answer too."""
    identity = None
    try:
        job = json.loads(line)
        identity = job.get("id")
        if job["method"] not in METHODS:
            raise ValueError(f"unknown method {job['method']}; known: {', '.join(METHODS)}")
        method, defaults = METHODS[job["method"]]
        settings = resolve(defaults, job.get("settings", {}))
        data = read_table(job["csv"], job.get("rows"))
        start, processor = time.perf_counter(), time.process_time()
        result = method(data, job.get("seed", 0), settings)
        seconds = {
            "seconds": time.perf_counter() - start,
            # Of all threads: what the run costs on a machine that does something else besides.
            "processor_seconds": time.process_time() - processor,
        }
    except Exception as error:  # The next job may be sound.
        return {"id": identity, "error": f"{type(error).__name__}: {error}"}
    return {
        "id": identity,
        "method": job["method"],
        "seed": job.get("seed", 0),
        "rows": data.shape[0],
        "nodes": data.shape[1],
        "settings": settings,
        **seconds,
        **result,
    }


def main() -> None:
    """Answers jobs until the input ends."""
    parser = argparse.ArgumentParser(description="DAGMA and DiBS, a JSON job a line")
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    if threads < 1:
        fail("--threads must be at least 1", "give the number of cores the peers may use")
    limit_threads(threads)
    print(json.dumps({"ready": True, "threads": threads, "versions": versions()}), flush=True)
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(answer(line)), flush=True)


if __name__ == "__main__":
    main()
