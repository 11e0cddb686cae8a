# SPDX-License-Identifier: Apache-2.0
"""The look of a flow's figure on paper: the panels and series of the report that it has, their heights and colors."""

from __future__ import annotations

from collections.abc import Iterable

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.units import one_of
from wiretale.reports.html.figures import PANELS, SERIES, Panel

# Colors of the page for paper (page.css).
COLORS = {
    **{"sender": "#2a3540", "receiver": "#008a7a", "network": "#b93a06", "muted": "#55626f", "axis": "#77838f"},
    **{"server": "#6b4aa8", "client": "#ecc04d", "transfer": "#a7b7c6", "network-deep": "#461202"},
    **{"transfer-deep": "#202b3c", "line": "#dfe4e9", "evidence": "#fdf0e7"},
}
# Of the parts of the time, by the class of the page (capture.css).
PART_COLORS = {
    **{f"part-{name}": name for name in ("server", "network", "client", "transfer", "network-deep", "transfer-deep")},
    **{"part-idle": "line", "part-unknown": "axis"},
}
INK, GRID = "#15202b", "#e9edf1"
TALL_PX = {"sequence": 420, "numbers": 360}
HEIGHT_PX, LANE_PX = 150, 20  # of the other panels, and of the lane of the time
# Their axes do not begin at 0.
POSITIONS = ("sequence", "numbers")
# Only the scripts of the page compute these series, packet by packet or for a flow without packets.
PAGE_ONLY = {"cwnd", "progress"}
DRAWN = tuple(series for series in SERIES if series.key not in PAGE_ONLY)
DRAWN_PANELS = tuple(panel for panel in PANELS if any(series.panel == panel.name for series in DRAWN))
LANE = "parts"
ALIASES = {"throughput": "rate"}

# Verdicts as shapes on the sequence panel: the mark that stands for an events.kind, if it has another name.
MARK_OF = {
    **dict.fromkeys(("mirror_duplicate", "network_duplicate", "unknown_duplicate", "wlan_retry"), "copy"),
    **dict.fromkeys(("zero_window", "window_full"), "window_closed"),
    **dict.fromkeys(("keep_alive_ack", "window_probe"), "keep_alive"),
    **dict.fromkeys(("captured_out_of_order", "sack_gap"), "acked_unseen_segment"),
}


def panel_names(names_asked: Iterable[str]) -> set[str]:
    """Returns the names of panels without aliases. UsageError if one does not exist."""
    panels = [panel.name for panel in DRAWN_PANELS]
    names = {ALIASES.get(name, name) for name in names_asked}
    for name in sorted(names - set(panels)):
        raise UsageError(f"panel {name!r}: expected {one_of(panels)}")
    return names


def title_of(panel: Panel) -> str:
    """Returns the title of a panel with its unit."""
    return f"{panel.title}, {panel.unit}" if panel.unit else panel.title


def height_of(panel: Panel) -> int:
    """Returns the height of a panel in px."""
    return LANE_PX if panel.name == LANE else TALL_PX.get(panel.name, HEIGHT_PX)
