# SPDX-License-Identifier: Apache-2.0
"""The frames that an answer, a cause, a finding or a caller names, as places: interfaces row and number in its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.evidence import evidence_of

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

Place = tuple[int, int]  # row of interfaces, number of the frame in its file
#: what names frames: None the answer, a code, a number of the only file, or rows such as those of cause_frames
Choice = str | int | Mapping[str, Any] | Iterable[int | Mapping[str, Any]] | None


def places_in(rows: Iterable[Mapping[str, Any]]) -> list[Place]:
    """Returns the places of rows with the columns capture and frame, each once, in order."""
    return sorted({(row["capture"], row["frame"]) for row in rows})


def of_findings(trace: Trace, numbers: Iterable[int]) -> list[Place]:
    """Returns the frames that show findings."""
    evidence = evidence_of(trace)
    return places_in(frame for number in numbers for frame in evidence[number - 1].frames)


def of_cause(trace: Trace, number: int) -> list[Place]:
    """Returns the frames that show a cause: its own, else those of the findings that it explains."""
    cited = places_in(row for row in trace.cause_frames if row["cause"] == number)
    return cited or of_findings(trace, [row["finding"] for row in trace.cause_findings if row["cause"] == number])


def of_answer(trace: Trace) -> list[Place]:
    """Returns the frames that show the answer."""
    answer = trace.answer
    if answer.frames:
        return places_in(answer.frames)
    return of_cause(trace, answer.number) if answer.number else of_findings(trace, answer.findings)


def of_code(trace: Trace, code: str) -> list[Place]:
    """Returns the frames of the causes or findings of a code. UsageError if there is none."""
    causes = [row["cause"] for row in trace.causes if row["code"] == code]
    findings = [row["finding"] for row in trace.findings if row["code"] == code]
    if not causes and not findings:
        raise UsageError(f"there is no cause and no finding {code!r} in this capture")
    return sorted({place for number in causes for place in of_cause(trace, number)}) or of_findings(trace, findings)


def place_of(trace: Trace, frame: int | Mapping[str, Any]) -> Place:
    """Returns the place of a number or a row. UsageError for a number if there are several files."""
    if not isinstance(frame, int):
        return frame["capture"], frame["frame"]
    if len(trace.inputs) > 1:
        raise UsageError(f"frame {frame}: several files have one: expected rows with capture and frame")
    if frame < 1:
        raise UsageError(f"frame {frame}: frames are numbered from 1")
    return 0, frame


def places_of(trace: Trace, frames: Choice) -> list[Place]:
    """Returns the frames that a choice names."""
    if frames is None:
        return of_answer(trace)
    if isinstance(frames, str):
        return of_code(trace, frames)
    if isinstance(frames, int | Mapping):
        return [place_of(trace, frames)]
    return [place_of(trace, frame) for frame in frames]
