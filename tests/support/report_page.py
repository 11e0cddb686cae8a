# SPDX-License-Identifier: Apache-2.0
"""A report in a real browser, used as a person does: with the mouse at drawn pixels, and with keys."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

VIEW = {"width": 1280, "height": 1500}  # the figure of a flow fits it
# Points drawn in a plot: trace, panel and pixel in the window. A mark's pixel is that of its element; a line has no
# elements for its points, so their pixels follow from the axes.
DRAWN = """id => {
  const plot = document.getElementById(id), layout = plot._fullLayout, box = plot.getBoundingClientRect(), found = [];
  const put = (trace, x, y, frame, value) =>
    found.push({trace: trace.meta || trace.name, panel: trace.yaxis || 'y', x, y, frame: frame ?? null, value});
  const inPanel = (trace, y) => {
    const axis = layout[(trace.yaxis || 'y').replace('y', 'yaxis')], top = box.y + axis._offset;
    return y >= top - 1 && y <= top + axis._length + 1;
  };
  for (const node of plot.querySelectorAll('.scatterlayer .trace, .barlayer .trace')) {
    const trace = node.__data__[0].trace;
    for (const point of node.querySelectorAll('path.point, .point path')) {
      const at = point.getBoundingClientRect(), own = point.__data__;
      if (trace.hoverinfo === 'skip' || !inPanel(trace, at.y + at.height / 2)) continue;
      put(trace, at.x + at.width / 2, at.y + at.height / 2, own.data, trace.type === 'bar' ? own.s : own.y);
    }
  }
  for (const trace of plot._fullData) {
    if (trace.visible !== true || trace.type !== 'scatter') continue;
    if (trace.mode.includes('markers') || trace.hoverinfo === 'skip' || trace.fill === 'toself') continue;
    const xaxis = layout[(trace.xaxis || 'x').replace('x', 'xaxis')], yaxis = layout[(trace.yaxis || 'y').replace('y', 'yaxis')];
    trace.x.forEach((x, i) => {
      if (trace.y[i] === null || trace.y[i] === undefined) return;
      const left = xaxis.d2p(x), top = yaxis.d2p(trace.y[i]);
      if (left < 0 || left > xaxis._length || top < 0 || top > yaxis._length) return;
      const frame = trace.customdata && trace.customdata[i];
      put(trace, box.x + xaxis._offset + left, box.y + yaxis._offset + top, frame, trace.y[i]);
    });
  }
  return found;
}"""


# The tip of the crosshair and the values in the head of a panel, if the crosshair goes through every panel.
TIP = """axis => {
  const heads = [...document.querySelectorAll('.panel-head')], tip = document.querySelector('.cross-tip');
  if (!tip || document.querySelectorAll('.cross').length !== heads.length) return '';
  const head = heads[axis === 'y' ? 0 : Number(axis.slice(1)) - 1];
  return [...tip.querySelectorAll('p'), head.querySelector('.value')].map(part => part.textContent).join(' ');
}"""


WHOLE = """async () => {
  await choose({ range: null, vertical: {}, finding: null, frame: null });
  document.getElementById('packet-rows').scrollTop = 0;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


class Point(NamedTuple):
    """A drawn point and its pixel."""

    trace: str
    panel: str
    x: float
    y: float
    frame: Any
    value: float | None = None


class Page:
    """An open report and the browser's messages about it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.listeners: dict[str, Any] = {
            "console": lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None,
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self.listeners.items():
            page.on(event, listener)

    def ignore(self) -> None:
        """Ends the collection of messages and requests, before another test gets the tab."""
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)

    def clear(self) -> Page:
        """Makes the tab as a new one is: empty, of the usual size, light, and without a held key or the mouse over a part."""
        self.page.goto("about:blank")
        for key in ("Shift", "Control", "Alt"):
            self.page.keyboard.up(key)
        self.page.mouse.up()
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(VIEW)
        self.page.emulate_media(media="null", color_scheme="light")
        self.complaints.clear()
        self.requests.clear()
        return self

    def open(self, path: Path, fragment: str = "") -> Page:
        self.page.goto(path.as_uri() + fragment)
        self.until("document.body.dataset.ready")
        return self

    def whole_flow(self) -> Page:
        """Leaves the evidence at which a report opens: the whole flow is shown, without a mark and a frame."""
        self.page.evaluate(WHOLE)
        return self

    def visit(self, other: Page) -> Page:
        """The report that another tab shows."""
        self.page.goto(other.page.url)
        self.until("document.body.dataset.ready")
        return self

    def until(self, expression: str, seconds: float = 90) -> Any:
        """The value of an expression as soon as it is true; polled, since the page's policy forbids more, and ever less often,
        since each look takes time from the page."""
        until, pause = time.monotonic() + seconds, 0.01
        while time.monotonic() < until:
            value = self.page.evaluate(expression)
            if value:
                return value
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        raise AssertionError(f"never true: {expression}; {self.complaints}")

    def points(self) -> int:
        """Marks and lines that are drawn."""
        drawn = "path => path.getBoundingClientRect().width + path.getBoundingClientRect().height > 0"
        paths = "document.querySelectorAll('#plot .scatterlayer .point, #plot .scatterlayer .js-line')"
        return int(self.page.evaluate(f"[...{paths}].filter({drawn}).length"))

    def frames(self, meta: str) -> list[int]:
        """Frame numbers of a trace of the figure; a bar has two points and a gap."""
        numbers = self.page.evaluate(f"document.getElementById('plot').data.find(t => t.meta === '{meta}')?.customdata")
        return [int(frame) for frame in dict.fromkeys(numbers or []) if frame is not None]

    def drawn(self, plot: str = "plot") -> list[Point]:
        """Points drawn in a plot, which is brought into view."""
        self.page.evaluate(f"document.getElementById('{plot}').scrollIntoView()")
        return [Point(**point) for point in self.page.evaluate(DRAWN, plot)]

    def hover(self, point: Point, plot: str = "plot") -> str:
        """The tooltip at a point's pixel, in the panels of a flow with the values of its head; "" when none appears."""
        self.page.mouse.move(2, 2)
        # Not from afar, because Plotly would show what lies halfway for 50 ms.
        self.page.mouse.move(point.x + 1, point.y)
        self.page.mouse.move(point.x, point.y)
        if self.page.evaluate(f"document.getElementById('{plot}').parentElement.id === 'stack'"):
            return str(self.page.evaluate(TIP, point.panel))
        lines = "[...t.querySelectorAll('tspan.line')].map(line => line.textContent).join(' ') || t.textContent"
        tooltip = f"[...document.querySelectorAll('#{plot} .hoverlayer text')].map(t => {lines}).join(' ').trim()"
        try:
            return str(self.until(tooltip, 3))
        except AssertionError:
            return ""

    def click(self, point: Point) -> None:
        self.page.wait_for_timeout(400)  # two clicks in short order are a double-click
        self.page.mouse.click(point.x, point.y)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draws a box with the mouse, and waits until the page has taken it."""
        before = self.hash()
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=5)
        self.page.mouse.up()
        self.until(f"location.hash !== '{before}'")

    def hash(self) -> str:
        """The part of the link that holds flow and ranges."""
        return str(self.page.evaluate("location.hash"))

    def range(self, axis: str = "xaxis") -> list[float]:
        """The range that an axis of the figure shows."""
        bounds: list[float] = self.page.evaluate(f"document.getElementById('plot')._fullLayout.{axis}.range")
        return bounds

    def panel(self, name: str) -> str:
        """The axis of a panel of the flow, such as "yaxis2"."""
        number = 1 + self.page.evaluate(f"view.used.findIndex(panel => panel.name === '{name}')")
        return "yaxis" if number == 1 else f"yaxis{number}"

    def pixel(self, axis: str, value: float) -> float:
        """Where a value of an axis is in the window; if the axis is logarithmic, an exponent of ten."""
        side = "x" if axis.startswith("x") else "y"
        return float(
            self.page.evaluate(
                f"(v => {{ const plot = document.getElementById('plot'), axis = plot._fullLayout.{axis};"
                f" return plot.getBoundingClientRect().{side} + axis._offset + axis.l2p(v); }})({value})"
            )
        )


def frame_in(tooltip: str) -> int | None:
    """The frame that a tooltip names."""
    match = re.search(r"frame ([\d,]+)", tooltip)
    return int(match[1].replace(",", "")) if match else None


def distance(first: Point, second: Point) -> float:
    """Between two points, in pixels."""
    return math.hypot(first.x - second.x, first.y - second.y)


def loneliest(points: list[Point], most: int) -> list[Point]:
    """Those that are the farthest from any other: the mouse can mean only them."""

    def room(point: Point) -> float:
        return min((distance(point, neighbor) for neighbor in points if neighbor is not point), default=math.inf)

    return sorted(points, key=room, reverse=True)[:most]
