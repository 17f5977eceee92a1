"""The line protocol and the command line that the PyTorch peers share.

Commands of a peer:

    python PEER.py [--threads N] [--compile] serve           line protocol on stdin / stdout
    python PEER.py [--threads N] [--compile] bench CASE      median time of a step

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
import statistics
import sys
import time
from collections.abc import Callable

import torch


class Case:
    """A prepared case: how many parameters it has, and what one step of it does."""

    def __init__(self, parameters: int, step: Callable[[], object]) -> None:
        self.parameters = parameters
        self.step = step

    def times(self, steps: int) -> list[float]:
        """Seconds of each of `steps` steps."""
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return seconds


Cases = dict[str, Callable[[bool], Case]]


def prepare(cases: Cases, name: str, compiled: bool) -> Case:
    """Builds a case from a fixed seed and warms it up."""
    if name not in cases:
        raise ValueError(f"unknown case {name}; known: {' '.join(cases)}")
    torch.manual_seed(0)
    case = cases[name](compiled)
    case.times(3)
    return case


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


def serve(known: Cases, compiled: bool) -> None:
    """Answers requests on stdin until `quit` or its end."""
    cases: dict[str, Case] = {}

    def answer(request: list[str]) -> str:
        match request:
            case ["prepare", name]:
                cases[name] = prepare(known, name, compiled)
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


def bench(known: Cases, name: str, steps: int, compiled: bool) -> None:
    """Prints the median time of a step."""
    case = prepare(known, name, compiled)
    seconds = case.times(steps)
    print(
        f"{name}: median {1e3 * statistics.median(seconds):.3f} ms, "
        f"least {1e3 * min(seconds):.3f} ms, of {steps} steps; {case.parameters} parameters"
    )


def main(cases: Cases, description: str) -> None:
    """Runs the command line of a peer."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--threads", type=int, help="threads of an operation (default 2)")
    common.add_argument("--compile", action="store_true", help="use torch.compile")
    parser = argparse.ArgumentParser(description=description, parents=[common])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", parents=[common], help="answer requests on stdin")
    command = commands.add_parser("bench", parents=[common], help="time one case")
    command.add_argument("case", choices=cases)
    command.add_argument("--steps", type=int, default=10)
    # Defaults come from the namespace: those of a subparser would overwrite options given
    # before the command.
    arguments = parser.parse_args(namespace=argparse.Namespace(threads=2, compile=False))

    keep_memory()
    torch.set_num_threads(arguments.threads)
    torch.set_num_interop_threads(1)
    match arguments.command:
        case "serve":
            serve(cases, arguments.compile)
        case "bench":
            bench(cases, arguments.case, arguments.steps, arguments.compile)

