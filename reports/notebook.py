# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a trace: the answer, where the time went, the causes, and a small plot of a flow."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from wiretale.analyzer.causes.answer import entries
from wiretale.analyzer.units import plural, show_duration, show_share
from wiretale.reports.html.time_bands import BANDS
from wiretale.reports.phrases import cause_cost, cost_text, title_of
from wiretale.reports.time_account import PARTS, time_account

if TYPE_CHECKING:
    from wiretale.analyzer.causes.answer import Answer, Explained
    from wiretale.analyzer.trace import Trace

CAUSES_SHOWN = 5
WIDTH, HEIGHT = 720, 14
GRAY = "#77838f"  # of unknown and idle time
#: colors of page.css on white
COLORS = {
    "part-client": "#ecc04d",
    "part-server": "#6b4aa8",
    "part-network": "#b93a06",
    "part-network-deep": "#461202",
    "part-transfer": "#a7b7c6",
    "part-transfer-deep": "#202b3c",
}


def look_of(part: str) -> tuple[str, float, float]:
    """Returns the color of a part, and its top and height as in the lane of a flow."""
    name, _, half = BANDS[part].partition(" ")
    return COLORS.get(name, GRAY), HEIGHT / 2 if half == "low" else 0, HEIGHT / 2 if half else HEIGHT


def swatch(part: str) -> str:
    """Returns the mark of a part in the legend."""
    color, top, height = look_of(part)
    place = f'y="{top:g}" width="10" height="{height:g}" fill="{color}"'
    return f'<svg width="10" height="{HEIGHT}" style="vertical-align: middle"><rect {place}/></svg>'


def bar_html(trace: Trace) -> str:
    """Returns where the time went as a bar with its legend; nothing if most of it is unknown."""
    account = time_account(trace)
    if account is None:
        return ""
    total, x, parts = sum(account.parts.values()), 0.0, []
    for part, ns in account.parts.items():
        color, top, height = look_of(part)
        wide = WIDTH * ns / total
        parts.append(f'<rect x="{x:.1f}" y="{top:g}" width="{wide:.1f}" height="{height:g}" fill="{color}"/>')
        x += wide
    named = (
        f"{swatch(part)} {PARTS[part]} {show_duration(ns)} ({show_share(ns, total)})"
        for part, ns in account.named()[0].items()
    )
    image = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(parts)}</svg>'
    return f"<p>Where the time went, {escape(account.base)}<br>{image}<br>{' &nbsp; '.join(named)}</p>"


def cause_html(entry: Explained, answer: Answer) -> str:
    """Returns a cause with its cost and what to do; that of the answer with its proof, because its sentence stands above."""
    cost = cause_cost(entry.cause) if entry.cause is not None else cost_text(entry.group.main)
    title = f"<b>{escape(title_of(entry))}</b>{f', {escape(cost)}' if cost else ''}"
    is_answer = entry.cause is not None and entry.cause["cause"] == answer.number
    text = f"{entry.cause['proof']}." if is_answer and entry.cause else entry.sentence
    return f"<li>{title}: {escape(text)} {escape(entry.advice)}</li>"


def trace_html(trace: Trace) -> str:
    """Returns the answer, the bar and the causes."""
    answer, listed = trace.answer, entries(trace)
    caveat = f"<p>Caveat: {escape(answer.caveat)}</p>" if answer.caveat else ""
    causes = "".join(cause_html(entry, answer) for entry in listed[:CAUSES_SHOWN])
    left = f"<p>{plural(len(listed) - CAUSES_SHOWN, 'more cause')}</p>" if len(listed) > CAUSES_SHOWN else ""
    return "".join(
        [
            f"<p><b>{escape(answer.sentence)}</b></p>{caveat}",
            bar_html(trace),
            f"<ol>{causes}</ol>{left}" if causes else "",
        ]
    )
