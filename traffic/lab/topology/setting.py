# SPDX-License-Identifier: Apache-2.0
"""Settings of a direction in a profile, as arguments of wiretale-link, and the traces that they name."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.units import split_number
from wiretale.traffic.experiment.plan_value import PlanTable

SETTING = re.compile(r"[a-z][a-z-]*")


def setting_text(value: Any) -> str:
    """Returns the value of a setting as an argument of wiretale-link."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(setting_text, value))
    text = str(value)
    if split_number(text):  # "10 Mbit": blanks separate settings
        text = re.sub(r"\s", "", text)
    if not isinstance(value, (str, int, float)) or not text.isprintable() or not text or " " in text:
        raise ValueError("expected a number or a text without blanks")
    return text


def schedule_text(value: Any) -> str:
    """Returns a schedule as an argument of wiretale-link: `[{at = "5s", rate = "2Mbit"}, ...]`."""
    if isinstance(value, str):
        return setting_text(value)
    if not isinstance(value, list) or not value or not all(isinstance(step, dict) for step in value):
        raise ValueError('expected steps, such as [{at = "5s", rate = "2Mbit"}]')
    steps = []
    for number, step in enumerate(value, start=1):
        if "at" not in step or not set(step) - {"at"} <= {"rate", "delay", "loss"} or len(step) < 2:
            raise ValueError(f"step {number}: expected at, and one or more of rate, delay and loss")
        for name, setting in step.items():
            if isinstance(setting, list):
                raise ValueError(f"step {number}: {name}: expected a number or a text, no list")
        words = [setting_text(step["at"]), *(f"{name}={setting_text(step[name])}" for name in step if name != "at")]
        steps.append(":".join(words))
    return ",".join(steps)


def shipped_traces() -> list[str]:
    """Returns the names of the traces that are part of wiretale."""
    folder = files("wiretale.traffic.lab").joinpath("traces")
    return sorted(entry.name[:-6] for entry in folder.iterdir() if entry.name.endswith(".trace"))


def trace_path(text: str, folder: Path | None) -> Path:
    """Returns the file of a trace: one that is part of wiretale, by its name, or one beside the profile."""
    if text in shipped_traces():
        return Path(str(files("wiretale.traffic.lab").joinpath("traces", f"{text}.trace")))
    return folder / text if folder else Path(text)


def check_readable(path: Path, where: str) -> None:
    """Raises InputError if a file of a setting cannot be read."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{where}: {path}: {error.strerror}") from None


def settings(table: PlanTable, both: dict[str, Any], folder: Path | None) -> str:
    """Returns the settings of a direction: those of both directions, then its own."""
    table.data = {**both, **table.data}
    parts = []
    for name in list(table.data):
        key, parse = name.replace("_", "-"), schedule_text if name == "schedule" else setting_text
        text = table.need(name, parse)
        if not SETTING.fullmatch(key):
            raise table.error(name, "expected a setting of wiretale-link")
        if key == "trace" and (folder or text in shipped_traces()):
            text = str(trace_path(text, folder))
            if re.search(r"\s", text):
                raise table.error(name, f"{text}: expected a path without blanks")
            check_readable(Path(text), ": ".join(filter(None, (table.file, table.where, name))))
        parts.append(f"{key}={text}")
    return " ".join(parts)
