"""Densities of one's own: spaces of models, what is known of parameters, and functions for whole batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._vti import Space as Space

if TYPE_CHECKING:
    import numpy as np

# From words, parameters and mask of a batch to values, or to values and gradients.
Density = Callable[[Any, Any, Any], Any]
# "real", "positive", ("interval", low, high), ("simplex", parts).
Constraint = str | tuple[Any, ...]


def Subsets(
    things: int | Sequence[str],
    *,
    always: int = 0,
    each: int | Sequence[int] = 1,
    sizes: tuple[int, int] | None = None,
) -> Space:
    """Subsets of optional things: a word has a bit for each.

    Each thing owns `each` coordinates of θ, one by default; `always` coordinates that every model has come first. `sizes` are
    the smallest and the largest subset.
    """
    names = [f"x{number}" for number in range(1, things + 1)] if isinstance(things, int) else list(things)
    blocks = [each] * len(names) if isinstance(each, int) else list(each)
    if len(blocks) != len(names):
        raise ValueError(f"{len(blocks)} numbers of coordinates for {len(names)} things")
    return Space.subsets(names, blocks, always, sizes)


def OneOf(models: Mapping[str, int | Sequence[int]] | Sequence[int | Sequence[int]]) -> Space:
    """One of several models: a word is its number.

    Of each model, the coordinates of θ that it uses, or how many of the first; with names where it is a mapping.
    """
    names = list(models) if isinstance(models, Mapping) else None
    listed = list(models.values()) if isinstance(models, Mapping) else list(models)
    used = [list(range(model)) if isinstance(model, int) else list(model) for model in listed]
    return Space.one_of(max((max(model, default=-1) + 1 for model in used), default=0), used, names)


def Product(first: Space, second: Space) -> Space:
    """A model of each of two spaces: their words, and their coordinates, one after the other."""
    return Space.product(first, second)


def described(
    space: Space,
    parameters: Sequence[str] | None = None,
    constraints: Sequence[Constraint] | None = None,
    reference: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
    log_prior: Callable[[Any], Any] | None = None,
) -> Space:
    """A space with what else is known of the problem."""
    written = None if constraints is None else json.dumps([_written(constraint) for constraint in constraints])
    each: list[tuple[float, float]] | None = None
    if reference is not None:
        pairs: list[Any] = list(reference)
        if len(pairs) == 2 and not isinstance(pairs[0], (tuple, list)):
            pairs = [(pairs[0], pairs[1])] * space.coordinates
        each = [(float(mean), float(sd)) for mean, sd in pairs]
    return space.described(None if parameters is None else list(parameters), written, each, log_prior)


def _written(constraint: Constraint) -> dict[str, Any]:
    """A constraint as settings write it."""
    if isinstance(constraint, str):
        return {"kind": constraint}
    kind, *numbers = constraint
    keys = {"interval": ("low", "high"), "simplex": ("parts",)}.get(kind)
    if keys is None or len(keys) != len(numbers):
        raise ValueError(f"{constraint} is no constraint: there are 'real', 'positive', ('interval', low, high), ('simplex', parts)")
    return {"kind": kind, **dict(zip(keys, numbers))}


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called, for people."""
    return f"{getattr(function, '__module__', None) or 'function'}:{getattr(function, '__qualname__', type(function).__name__)}"


def jax(log_density: Callable[[Any, Any, Any], Any]) -> Density:
    """A density for batches, with gradients, of a JAX function of one row: word, θ (all parameters) and mask.

    It is compiled for numbers of rows that are powers of two: a batch is filled up to the next with copies of its last row.
    """
    import jax as library
    import numpy as np

    both = library.jit(library.vmap(library.value_and_grad(log_density, argnums=1)))

    def of_batch(words: np.ndarray, theta: np.ndarray, mask: np.ndarray) -> tuple[Any, Any]:
        rows = len(theta)
        more = (1 << max(rows - 1, 0).bit_length()) - rows
        padded = (np.pad(array, ((0, more), (0, 0)), mode="edge") for array in (words, theta, mask))
        with _double(library):
            values, gradients = both(*padded)
        return np.asarray(values)[:rows], np.asarray(gradients)[:rows]

    return of_batch


def _double(library: Any) -> Any:
    """In which JAX computes with double precision, under its newer and its older name."""
    return library.enable_x64(True) if hasattr(library, "enable_x64") else library.experimental.enable_x64()


def torch(log_density: Callable[[Any, Any, Any], Any]) -> Density:
    """A density for batches, with gradients, of a PyTorch function of one row: word, θ (all parameters) and mask."""
    import numpy as np
    import torch as library

    both = library.func.vmap(library.func.grad_and_value(log_density, argnums=1))

    def of_batch(words: np.ndarray, theta: np.ndarray, mask: np.ndarray) -> tuple[Any, Any]:
        rows = (library.from_numpy(words.astype(np.int64)), library.from_numpy(theta), library.from_numpy(mask))
        gradients, values = both(*rows)
        return values.detach().numpy(), gradients.detach().numpy()

    return of_batch
