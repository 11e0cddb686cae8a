# SPDX-License-Identifier: Apache-2.0
"""The plan of a model: its sessions as TOML, with the patterns beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.printable import printable
from wiretale.reports.export.destination import check_outputs, output_file
from wiretale.traffic.pattern import write_pattern
from wiretale.version import __version__

Value = str | int | bool


@dataclass
class ModelSession:
    """A session of the plan: keys of docs/experiments.md, and the lines of the file of one of them, "pattern" or "turns"."""

    start_ns: int
    keys: dict[str, Value]
    remark: str
    lines: Sequence[tuple[int, ...]] = field(default_factory=list)
    key: str = "pattern"

    @property
    def label(self) -> str:
        """The label, from which --check finds the flow again."""
        return str(self.keys["label"])


def comment(text: str) -> str:
    """Returns a comment in one line, whatever names it has."""
    return f"# {printable(text)}"


def toml(value: Value) -> str:
    """Returns a value as TOML: a JSON string is one of TOML, too, if DEL and pairs of surrogates are not in it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def session_text(session: ModelSession, first_ns: int) -> str:
    """Returns the table of a session, which starts as long after the first one as its flow."""
    start = f"{max(session.start_ns - first_ns, 0) // 1000}us"
    keys = {**session.keys, "start": start}
    return "\n".join([comment(session.remark), "[[test.session]]", *(f"{k} = {toml(v)}" for k, v in keys.items()), ""])


def pattern_folder(plan: Path) -> Path:
    """Returns the directory of the patterns of a plan."""
    return plan.with_name(f"{plan.stem}.d")


def pattern_name(label: str) -> str:
    """Returns the name of the pattern of a session."""
    return f"{label.replace(' ', '-')}.txt"


def plan_text(source: str, sessions: Sequence[ModelSession], remarks: Iterable[str]) -> str:
    """Returns the plan."""
    first_ns = min(session.start_ns for session in sessions)
    head = [
        comment(f"Made by wiretale {__version__} from {source}: docs/model.md has the model and its limits."),
        *(comment(remark) for remark in remarks),
        f"title = {toml(printable(f'Model of {source}'))}",
        "",
        "[[test]]",
        'name = "model"',
        "",
    ]
    return "\n".join([*head, *(session_text(session, first_ns) for session in sessions)])


def write_plan(
    plan: Path, inputs: Iterable[str], source: str, sessions: Sequence[ModelSession], remarks: Iterable[str]
) -> None:
    """Writes the patterns, then the plan. UsageError if one would replace an input, or has a wrong name."""
    if not plan.name.isprintable():
        raise UsageError(f"-o {printable(str(plan))}: expected a printable name in UTF-8, because the plan contains it")
    folder = pattern_folder(plan)
    written = {folder / pattern_name(session.label): session for session in sessions if session.lines}
    check_outputs([plan], inputs := list(inputs))
    for path, session in written.items():
        session.keys = {**session.keys, session.key: f"{folder.name}/{path.name}"}
    if written:
        folder.mkdir(parents=True, exist_ok=True)
        check_outputs(list(written), inputs)
    for path, session in written.items():
        write_pattern(path, printable(f"{session.label} of {source}"), session.lines)
    with output_file(plan) as out:
        out.write(plan_text(source, sessions, remarks).encode())
