# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale diff --store`: the verdict, each measure of the new run among those of the baseline, and a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.baseline import LEVEL, SCORE_LEAST, label_of, shown_p
from wiretale.reports.changes import baseline_lines, percent_text
from wiretale.reports.html import offline_page
from wiretale.reports.html.figures import BLUE, GREEN, GREY, ORANGE, RED, plot, scatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.diff.baseline import AgainstBaseline, Standing

RUNS_DRAWN = 100  # of each measure, at equal ranks
MEASURES_DRAWN = 40  # the most unusual
ROW = 24  # px
COLORS = {"worse": RED, "better": GREEN, "different": ORANGE}
FARTHEST = 12.0  # spreads from the median; points beyond are drawn at the edge


def signed_scores(one: Standing) -> list[tuple[float, float]]:
    """Returns distance from the median in spreads, and value, of the baseline's runs, then of the new one, sorted but for it."""
    middle = one.quantile(0.5) or 0.0
    pairs = [
        (score if value >= middle else -score, value)
        for score, value in zip(one.scores, [*one.runs, one.value], strict=True)
        if score is not None and value is not None
    ]
    known = sorted(pairs[:-1])
    step = max(1, -(-len(known) // RUNS_DRAWN))
    return [*known[::step], pairs[-1]]


def standing_figure(standings: Sequence[Standing]) -> dict[str, Any]:
    """Returns a row of points for each measure: the runs of the baseline, and the new one."""
    points: dict[str, tuple[list[float], list[str], list[str]]] = {"runs": ([], [], []), "B": ([], [], [])}
    colors = []
    for one in standings:
        *runs, new = signed_scores(one)
        for name, each in (("runs", runs), ("B", [new])):
            for score, value in each:
                x, y, text = points[name]
                x.append(round(max(-FARTHEST, min(FARTHEST, score)), 4))
                y.append(label_of(one))
                text.append(one.measure.unit.show(value))
        colors.append(COLORS.get(one.verdict or "", BLUE))
    looks = {
        "runs": {"color": GREY, "size": 6, "opacity": 0.5},
        "B": {"color": colors, "size": 11, "symbol": "diamond", "line": {"width": 1, "color": "#ffffff"}},
    }
    traces = [
        scatter(
            "runs of the baseline" if name == "runs" else "B",
            x,
            y,
            "%{y}: %{text}, %{x:.2f} spreads from the median",
            mode="markers",
            text=text,
            marker=looks[name],
        )
        for name, (x, y, text) in points.items()
    ]
    names = [label_of(one) for one in standings]
    return plot(
        traces,
        height=90 + ROW * len(names),
        margin={"l": 8, "r": 16, "t": 8, "b": 44},
        showlegend=True,
        xaxis={
            "title": {"text": "distance from the median, in spreads"},
            "range": [-FARTHEST - 0.6, FARTHEST + 0.6],
            "zeroline": True,
        },
        yaxis={"type": "category", "categoryarray": names[::-1], "automargin": True, "fixedrange": True},
    )


def row_of(one: Standing) -> list[str]:
    """Returns the row of a measure; its verdict is last."""
    show = one.measure.unit.show
    spread = [show(one.quantile(share)) for share in (0.5, 0.05, 0.95)]
    chances = ["" if p is None else shown_p(p) for p in (one.p_alone, one.p)]
    mark = one.verdict if one.is_unusual else "outside all runs" if one.is_outside and one.p is not None else ""
    label = f"{one.measure.label} of {one.service}" if one.service else one.measure.label
    return [label, show(one.value), percent_text(one.change), *spread, f"{len(one.known):,}", *chances, mark or ""]


def render(found: AgainstBaseline) -> str:
    """Returns the page."""
    drawn = sorted(found.tested, key=lambda one: (not one.is_unusual, -one.score))[:MEASURES_DRAWN]
    return offline_page.render(
        "baseline.html",
        {"figures": {"standing": standing_figure(drawn)} if drawn else {}},
        style=offline_page.part("diff.css"),
        title=f"{Path(found.after.path).name} and {Path(found.store).name}",
        heading=found.sentence(),
        found=found,
        drawn=len(drawn),
        measures=MEASURES_DRAWN,
        level=LEVEL,
        least=SCORE_LEAST,
        lines=list(baseline_lines(found)),
        rows=[row_of(one) for one in found.standings],
    )


def write_report(found: AgainstBaseline, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(found), path)
