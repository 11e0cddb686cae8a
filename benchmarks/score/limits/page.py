# SPDX-License-Identifier: Apache-2.0
"""The section of docs/measured/accuracy.md on limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from score.limits.parts import PARTS
from score.limits.rows import GOAL, SHAPED, Row, listed
from score.limits.scenarios import CONTROLS, DRAWN_LIMITS, KINDS
from score.limits.truth import dominant
from score.runs.scenarios import NO_TIMESTAMPS
from score.runs.testbed import POINTS
from shared.markdown import table

TEXT = Path(__file__).parents[1] / "text" / "limits.md"
PLACES = ("sender", SHAPED, *POINTS[1:])
SECTION = re.compile(r"^## Limits\n.*?(?=^## |\Z)", re.M | re.S)
HEADS = "capture | rows | not known | right | near | right of known | near of known"


def with_timestamps(row: Row) -> bool:
    return row.scenario.sysctl != NO_TIMESTAMPS


def share(count: int, total: int) -> str:
    return f"{count / total:.3f}" if total else "–"


def summary(name: str, rows: Sequence[Row]) -> tuple[object, ...]:
    claimed = [row for row in rows if row.claimed]
    right, near = sum(row.right for row in claimed), sum(row.near for row in claimed)
    return name, len(rows), len(rows) - len(claimed), right, near, share(right, len(claimed)), share(near, len(claimed))


def groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yields the rows of each capture point, timestamp setting and congestion control, with a small send buffer, and all."""
    for place in PLACES:
        yield place, [row for row in rows if row.place == place]
    for name, setting in (("with timestamps", True), ("without timestamps", False)):
        yield name, [row for row in rows if with_timestamps(row) == setting]
    for control in CONTROLS:
        yield control, [row for row in rows if row.scenario.control == control]
    for name, small in (("small send buffer", True), ("the others", False)):
        yield name, [row for row in rows if bool(row.scenario.talk.send_buffer) == small]
    yield "**all**", list(rows)


def mean_shares(rows: Sequence[Row]) -> str:
    """Returns the kernel's shares, the mean of the rows."""
    return listed({name: sum(row.true[name] for row in rows) / len(rows) for name in rows[0].true})


def cell(rows: Sequence[Row]) -> str:
    claimed = [row for row in rows if row.claimed]
    if not claimed:
        return "not known"
    most = max(row.difference or 0 for row in claimed)
    return f"{sum(row.right for row in claimed)} of {len(claimed)}, {100 * most:.0f}"


def kind_of(row: Row) -> str:
    """Returns the name of a scenario without the congestion control and the setting of timestamps."""
    return row.scenario.name.removeprefix("limits-").rsplit(f"-{row.scenario.control}", 1)[0]


def kind_rows(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for kind in KINDS:
        if members := [row for row in rows if kind_of(row) == kind.name]:
            cells = (cell([row for row in members if row.point == point]) for point in POINTS)
            yield f"`{kind.name}`", kind.description, mean_shares(members), *cells


def is_drawn(row: Row) -> bool:
    return row.scenario.group == DRAWN_LIMITS


def drawn_rows(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    """Yields a line for each drawn run."""
    for name in dict.fromkeys(row.scenario.name for row in rows):
        members = [row for row in rows if row.scenario.name == name]
        scenario = members[0].scenario
        settings = f"{scenario.control}{'' if with_timestamps(members[0]) else ', timestamps off'}"
        cells = (cell([row for row in members if row.point == point]) for point in POINTS)
        yield name.removeprefix("limits-drawn-"), scenario.description, settings, mean_shares(members), *cells


def shortfalls(rows: Sequence[Row]) -> Iterator[str]:
    """Yields a line for each capture point at which too few of the known rows are right or near, with its misses.

    Drawn runs are apart."""
    yield from places_below_goal([row for row in rows if not is_drawn(row)], "limits")
    yield from places_below_goal([row for row in rows if is_drawn(row)], "drawn limits")
    yield from parts_below_goal(rows)


def places_below_goal(rows: Sequence[Row], title: str) -> Iterator[str]:
    for place in PLACES:
        claimed = [row for row in rows if row.place == place and row.claimed]
        right, near = sum(row.right for row in claimed), sum(row.near for row in claimed)
        if min(right, near) >= GOAL * len(claimed):
            continue
        wrong = Counter(
            f"`{kind_of(row)}` ({dominant(row.true)} taken for {dominant(row.claimed)})"
            for row in claimed
            if row.claimed and not row.right
        )
        far = Counter(f"`{kind_of(row)}`" for row in claimed if row.right and not row.near)
        counts = f"{right} of {len(claimed)} right{counted(wrong)}; {near} near{counted(far, 'right, but far: ')}"
        yield f"- **{title}, {place}**: {counts}"


def counted(misses: Counter[str], heading: str = "wrong: ") -> str:
    return f" ({heading}{', '.join(f'{name} {count}' for name, count in misses.most_common())})" if misses else ""


def parts_groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yields the rows of each capture point whose parts of time the log decides; drawn runs are apart."""
    for name, drawn in (("parts of time", False), ("drawn parts of time", True)):
        for place in POINTS:
            yield (
                f"{name}, {place}",
                [row for row in rows if row.true_parts and row.place == place and is_drawn(row) == drawn],
            )


def parts_rows(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for name, scored in parts_groups(rows):
        right = sum(row.parts_right is True for row in scored)
        decided = sum(row.parts_right is not None for row in scored)
        yield name, len(scored), len(scored) - decided, right, share(right, decided)


def parts_below_goal(rows: Sequence[Row]) -> Iterator[str]:
    for name, scored in parts_groups(rows):
        decided = sum(row.parts_right is not None for row in scored)
        wrong = Counter(
            f"`{kind_of(row)}` ({dominant(row.true_parts, PARTS)} taken for {dominant(row.claimed_parts, PARTS)})"
            for row in scored
            if row.true_parts and row.claimed_parts and not row.parts_right
        )
        right = decided - wrong.total()
        if right < GOAL * decided:
            yield f"- **{name}**: {right} of {decided} right{counted(wrong)}"


def limits_section(rows: Sequence[Row]) -> str:
    """Returns the section, empty without rows."""
    if not rows:
        return ""
    committed, drawn = ([row for row in rows if is_drawn(row) == at_random] for at_random in (False, True))
    kinds = "run | sender does | kernel, mean | sender | tracer | receiver"
    runs = "run | sender does; path | TCP | kernel | sender | tracer | receiver"
    parts = {
        "GOAL": f"{GOAL:.0%}",
        "ROWS": len(committed),
        "RUNS": len({row.scenario.name for row in committed}),
        "PLACES": table(HEADS, (summary(name, members) for name, members in groups(committed) if members)),
        "KINDS": table(kinds, kind_rows(committed), 3),
        "DRAWNROWS": len(drawn),
        "DRAWNRUNS": len({row.scenario.name for row in drawn}),
        "DRAWNPLACES": table(HEADS, (summary(name, members) for name, members in groups(drawn) if members)),
        "DRAWNKINDS": table(runs, drawn_rows(drawn), 4),
        "PARTS": table("capture | rows | not known | right | right of known", parts_rows(rows)),
        "SHORT": "\n".join(shortfalls(rows)) or "None in this run.",
    }
    text = TEXT.read_text("utf-8")
    for name, value in parts.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def replace_section(rows: Sequence[Row], path: Path) -> None:
    """Replaces the section in a page, or adds it before that on earlier work."""
    page, section = path.read_text("utf-8"), limits_section(rows)
    if SECTION.search(page):
        page = SECTION.sub(lambda _: section, page, count=1)
    else:
        before = page.index("## Earlier work")
        page = page[:before] + section + page[before:]
    path.write_text(page, "utf-8")
