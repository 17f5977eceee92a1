"""Draws as ArviZ reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import xarray


def tree(found: dict[str, Any], words: list[str], chains: int) -> xarray.DataTree:
    """All draws, and those of each of some models on their own."""
    import numpy as np
    import xarray

    names = found["names"]
    labels = np.array(found["labels"], dtype=str)
    active = found["active"][found["model"]]
    # As averages over models count it.
    values = np.where(active, found["values"], 0.0)

    def parameters(rows: np.ndarray, places: list[int]) -> xarray.Dataset:
        return xarray.Dataset({names[place]: (("chain", "draw"), values[rows, place]) for place in places}, _axes(rows))

    def stats(rows: np.ndarray) -> xarray.Dataset:
        columns = {
            # As variables here and no coordinates of parameters, where ArviZ would take their texts for numbers.
            "model": (("chain", "draw"), labels[found["model"][rows]]),
            "active": (("chain", "draw", "parameter"), active[rows]),
            "log_q": (("chain", "draw"), found["log_q"][rows]),
            "log_target": (("chain", "draw"), found["log_target"][rows]),
            "weight": (("chain", "draw"), np.full(rows.shape, 1.0 / max(rows.size, 1))),
        }
        return xarray.Dataset(columns, _axes(rows) | {"parameter": np.array(names, dtype=str)})

    everything = _dealt(np.arange(len(values)), chains)
    groups = {"/posterior": parameters(everything, list(range(len(names)))), "/sample_stats": stats(everything)}
    for number, word in enumerate((word for word in words if word in found["words"]), 1):
        model = found["words"].index(word)
        rows = _dealt(np.flatnonzero(found["model"] == model), chains)
        own = parameters(rows, [place for place in range(len(names)) if found["active"][model, place]])
        groups[f"/model_{number}/posterior"] = own.assign_attrs(model=str(labels[model]), word=word)
        groups[f"/model_{number}/sample_stats"] = stats(rows)
    return xarray.DataTree.from_dict(groups)


def _axes(rows: np.ndarray) -> dict[str, range]:
    """Numbers of chains, and of draws in each."""
    return {"chain": range(rows.shape[0]), "draw": range(rows.shape[1])}


def _dealt(rows: np.ndarray, chains: int) -> np.ndarray:
    """So many chains of equal length, without the few draws that are left over."""
    length = len(rows) // chains
    return rows[: chains * length].reshape(chains, length)
