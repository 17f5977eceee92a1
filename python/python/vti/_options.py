"""Keyword arguments as options of the command, so that names, values and defaults are its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def arguments(options: Mapping[str, Any], section: str = "problem") -> list[str]:
    """Options that were given. Lists whose items an option could not tell apart go by the setting of the same name."""
    found: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        if name == "set":
            changes = value.items() if isinstance(value, Mapping) else [change.split("=", 1) for change in value]
            found += [f"--set={key}={toml(item) if not isinstance(item, str) else item}" for key, item in changes]
        elif value is True:
            found.append(option)
        elif isinstance(value, Mapping):
            found.append(f"--set={section}.{name}={toml(value)}")
        elif isinstance(value, (list, tuple, set, frozenset)):
            items = list(value)
            if all(isinstance(item, str) and not set(item) & set(",;") for item in items):
                found += [f"{option}={','.join(items)}"] if items else []
            else:
                found.append(f"--set={section}.{name}={toml(items)}")
        else:
            found.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return found


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if hasattr(value, "item"):
        value = value.item()
    # Strings, numbers and truths are those of JSON.
    return json.dumps(value, ensure_ascii=False)
