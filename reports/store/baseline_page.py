# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale diff --store`: the verdict, each measure of the new run among those of the baseline, and a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.diff.baseline import LEVEL, SCORE_LEAST, label_of, p_text
from wiretale.reports.changes import baseline_lines, percent_text
from wiretale.reports.html import offline_page
from wiretale.reports.html.figures import MUTED, NETWORK, RECEIVER, SENDER, SERVER, plot, scatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.diff.baseline import AgainstBaseline, Standing

RUNS_DRAWN = 100  # of each measure, at equal ranks
MEASURES_DRAWN = 40  # the most unusual
ROW = 24  # px
COLORS = {"worse": NETWORK, "better": RECEIVER, "different": SERVER}
FARTHEST = 12.0  # spreads from the median; points beyond are drawn at the edge


def signed_scores(standing: Standing) -> list[tuple[float, float]]:
    """Returns distance from the median in spreads, and value, of the baseline's runs, then of the new one, sorted but for it."""
    middle = standing.quantile(0.5) or 0.0
    pairs = [
        (score if value >= middle else -score, value)
        for score, value in zip(standing.scores, [*standing.runs, standing.value], strict=True)
        if score is not None and value is not None
    ]
    ordered = sorted(pairs[:-1])
    step = max(1, -(-len(ordered) // RUNS_DRAWN))
    return [*ordered[::step], pairs[-1]]


def standing_figure(standings: Sequence[Standing]) -> dict[str, Any]:
    """Returns a row of points for each measure: the runs of the baseline, and the new one."""
    points: dict[str, tuple[list[float], list[str], list[str]]] = {"runs": ([], [], []), "B": ([], [], [])}
    colors = []
    for standing in standings:
        *runs, new = signed_scores(standing)
        for name, each in (("runs", runs), ("B", [new])):
            for score, value in each:
                x, y, text = points[name]
                x.append(round(max(-FARTHEST, min(FARTHEST, score)), 4))
                y.append(label_of(standing))
                text.append(standing.measure.unit.show(value))
        colors.append(COLORS.get(standing.verdict or "", SENDER))
    looks = {
        "runs": {"color": MUTED, "size": 6, "opacity": 0.5},
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
    names = [label_of(standing) for standing in standings]
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


def row_of(standing: Standing) -> list[str]:
    """Returns the row of a measure; its verdict is last."""
    show = standing.measure.unit.show
    spread = [show(standing.quantile(share)) for share in (0.5, 0.05, 0.95)]
    chances = ["" if p is None else p_text(p) for p in (standing.p_alone, standing.p)]
    mark = (
        standing.verdict
        if standing.is_unusual
        else "outside all runs"
        if standing.is_outside and standing.p is not None
        else ""
    )
    label = f"{standing.measure.label} of {standing.service}" if standing.service else standing.measure.label
    return [
        label,
        show(standing.value),
        percent_text(standing.change),
        *spread,
        f"{len(standing.baseline_values):,}",
        *chances,
        mark or "",
    ]


def render(difference: AgainstBaseline) -> str:
    """Returns the page."""
    drawn = sorted(difference.tested, key=lambda standing: (not standing.is_unusual, -standing.score))[:MEASURES_DRAWN]
    return offline_page.render(
        "baseline.html",
        {"figures": {"standing": standing_figure(drawn)} if drawn else {}},
        style=offline_page.part("diff.css"),
        title=f"{Path(difference.after.path).name} and {Path(difference.store).name}",
        heading=difference.sentence(),
        difference=difference,
        drawn=len(drawn),
        measures=MEASURES_DRAWN,
        level=LEVEL,
        least=SCORE_LEAST,
        lines=list(baseline_lines(difference)),
        rows=[row_of(standing) for standing in difference.standings],
    )


def write_report(difference: AgainstBaseline, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    return offline_page.write(render(difference), path)
