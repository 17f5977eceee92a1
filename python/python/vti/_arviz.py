"""Draws as ArviZ reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray


def tree(found: dict[str, Any], words: list[str]) -> xarray.DataTree:
    """All draws, and those of each of some models on their own."""
    import numpy as np
    import xarray

    names = found["names"]
    labels = np.array(found["labels"], dtype=str)
    active = found["active"][found["model"]]
    # As averages over models count it.
    values = np.where(active, found["values"], 0.0)
    weights = np.full(len(values), 1.0 / max(len(values), 1))

    def stats(rows: Any) -> xarray.Dataset:
        kept = {name: found[name][rows] for name in ("log_q", "log_target")} | {"weight": weights[rows]}
        return xarray.Dataset({name: (("chain", "draw"), column[None]) for name, column in kept.items()})

    def parameters(rows: Any, places: list[int]) -> xarray.Dataset:
        return xarray.Dataset({names[place]: (("chain", "draw"), values[None, rows, place]) for place in places})

    everything = slice(None)
    posterior = parameters(everything, list(range(len(names)))).assign_coords(
        model=(("chain", "draw"), labels[found["model"]][None]),
        parameter=np.array(names, dtype=str),
        active=(("chain", "draw", "parameter"), active[None]),
    )
    groups = {"/posterior": posterior, "/sample_stats": stats(everything)}
    for number, word in enumerate((word for word in words if word in found["words"]), 1):
        model = found["words"].index(word)
        rows = np.flatnonzero(found["model"] == model)
        own = parameters(rows, [place for place in range(len(names)) if found["active"][model, place]])
        groups[f"/model_{number}/posterior"] = own.assign_attrs(model=str(labels[model]), word=word)
        groups[f"/model_{number}/sample_stats"] = stats(rows)
    return xarray.DataTree.from_dict(groups)
