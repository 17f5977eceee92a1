"""Tables from whatever holds one: Arrow streams, data frames, mappings, arrays, files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._vti import Table

if TYPE_CHECKING:
    import numpy as np


def as_table(data: Any, names: Sequence[str] | None = None) -> Table:
    """The columns of `data`, copied. `names` are for arrays without names, or take the place of those there are."""
    if isinstance(data, Table):
        return data
    if hasattr(data, "reset_index") and hasattr(data, "columns"):
        return _of_pandas(data, names)
    if hasattr(data, "__arrow_c_stream__") and names is None:
        return Table.from_arrow(data)
    if isinstance(data, Mapping):
        return _of_columns(data.items())
    return _of_array(data, names)


def is_file(data: Any) -> bool:
    """Whether the table is in a file, which the command reads itself."""
    return isinstance(data, (str, os.PathLike))


def of_values(data: Any, name: str) -> Any:
    """Values one after the other as a table of one column, called as they are or else by this name; other data as they are."""
    import numpy as np

    is_list = isinstance(data, (list, tuple)) and np.ndim(data) == 1
    if not is_list and (len(getattr(data, "shape", ())) != 1 or getattr(getattr(data, "dtype", None), "names", None)):
        return data
    return {str(getattr(data, "name", None) or name): data}


def _of_pandas(frame: Any, names: Sequence[str] | None) -> Table:
    # The index is no column of the table.
    frame = frame.reset_index(drop=True).set_axis([str(name) for name in names or frame.columns], axis=1)
    if hasattr(frame, "__arrow_c_stream__") and frame.columns.is_unique:
        try:
            return Table.from_arrow(frame)
        except (ImportError, ValueError, TypeError):
            # Without pyarrow, or with a column that Arrow has no type for: column by column.
            pass
    return _of_columns((name, frame.iloc[:, place]) for place, name in enumerate(frame.columns))


def _of_array(data: Any, names: Sequence[str] | None) -> Table:
    import numpy as np

    array = np.asanyarray(data)
    if array.dtype.names:
        return _of_columns((name, array[name]) for name in array.dtype.names)
    if array.ndim != 2:
        raise TypeError(
            f"a table has rows and columns; this is a {type(data).__name__} of shape {array.shape}\n"
            "hint: a data frame, a mapping of names to columns, a two-dimensional array, or the path of a file"
        )
    count = array.shape[1]
    if names is not None and len(names) != count:
        raise ValueError(f"{len(names)} names for {count} columns")
    names = list(names) if names is not None else [f"x{number}" for number in range(1, count + 1)]
    return _of_columns((name, array[:, place]) for place, name in enumerate(names))


def _of_columns(columns: Any) -> Table:
    return Table.from_columns([(str(name), *_column(str(name), values)) for name, values in columns])


def _column(name: str, values: Any) -> tuple[str, Any]:
    """What a column holds, and its values as the extension reads them."""
    import numpy as np

    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"column {name} has shape {array.shape}, not one number for each row")
    if array.dtype.kind in "fiu":
        return "numbers", np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "b":
        return "truths", array.tolist()
    if array.dtype.kind == "M":
        return "times", np.ascontiguousarray(array.astype("M8[us]").view(np.int64))
    if array.dtype.kind in "OUTS":
        return _objects(name, array.tolist())
    raise TypeError(f"column {name} holds {array.dtype}, which are neither numbers nor texts nor times")


def _objects(name: str, values: list[Any]) -> tuple[str, Any]:
    """A column of Python objects: numbers or truths if all of them are, texts otherwise."""
    import numpy as np

    values = [None if _is_missing(value) else value for value in values]
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return "truths", [None if value is None else bool(value) for value in values]
    for value in present:
        if isinstance(value, (list, tuple, dict, set, np.ndarray, complex)):
            raise TypeError(f"column {name} holds {type(value).__name__}, which are neither numbers nor texts nor times")
    if all(not isinstance(value, (str, bytes)) for value in present):
        try:
            return "numbers", np.array([np.nan if value is None else float(value) for value in values])
        except (TypeError, ValueError):
            pass
    return "texts", [None if value is None else value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _is_missing(value: Any) -> bool:
    # `None`, not a number, `NaT` and pandas' `NA`; the last has no truth of its own.
    return value is None or (not isinstance(value, (str, bytes)) and type(value).__name__ in ("NAType", "NaTType")) or (
        isinstance(value, float) and value != value
    )
