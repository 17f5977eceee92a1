"""What a density of Python's costs beside its own time: `python densities.py [--json]`, in an environment with the package.

For each library: milliseconds of a batch of 1,024 rows and 8 parameters as a run asks for it, of the function alone, and the difference, which is
ours. JAX and PyTorch are measured where they are installed.
"""

import json
import sys
import time

import numpy as np

import vti
from vti._vti import seconds_per_batch

ROWS, PARAMETERS, BATCHES, TIMES = 1024, 8, 20, 60
# Milliseconds of our own that a batch may take.
LIMIT = 0.2


def numpy_density():
    return lambda words, theta, mask: (-0.5 * np.einsum("np,np->n", theta, theta), -theta)


def jax_density():
    import jax.numpy as jnp

    return vti.jax(lambda word, theta, mask: -0.5 * jnp.sum(jnp.where(mask, theta, 0.0) ** 2))


def torch_density():
    import torch

    return vti.torch(lambda word, theta, mask: -0.5 * torch.sum(torch.where(mask, theta, 0.0) ** 2))


def alone(function) -> float:
    """Seconds of the function by itself."""
    words = np.ones((ROWS, PARAMETERS), dtype=np.uint16)
    theta = np.sin(np.arange(ROWS * PARAMETERS, dtype=float)).reshape(ROWS, PARAMETERS)
    mask = np.ones((ROWS, PARAMETERS), dtype=bool)
    function(words, theta, mask)
    start = time.perf_counter()
    for _ in range(BATCHES):
        function(words, theta, mask)
    return (time.perf_counter() - start) / BATCHES


def main() -> None:
    for name, make in [("numpy", numpy_density), ("jax", jax_density), ("torch", torch_density)]:
        try:
            function = make()
        except ImportError:
            print(f"{name}: not installed", file=sys.stderr)
            continue
        space = vti.Subsets(PARAMETERS)
        # The least of several, one after the other: others use the machine as well.
        pairs = [(seconds_per_batch(function, space, ROWS, BATCHES), alone(function)) for _ in range(TIMES)]
        whole, own = (1e3 * min(times) for times in zip(*pairs))
        ours = whole - own
        if "--json" in sys.argv:
            found = {"case": f"{name} {ROWS}x{PARAMETERS}", "ours": ours, "limit": LIMIT, "unit": "ms", "ratio": ours / LIMIT, "whole": whole, "function": own}
            print(json.dumps(found))
        else:
            print(f"{name:8} batch {whole:7.3f} ms   function {own:7.3f} ms   ours {ours:7.3f} ms   limit {LIMIT} ms")


if __name__ == "__main__":
    main()
