# SPDX-License-Identifier: Apache-2.0
"""Figures of an experiment: medians with the range of their trials, single trials, and published figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from statistics import fmean, median
from typing import Any

from wiretale.analyzer.units import show_duration
from wiretale.reports.html.experiment.data import (
    Outcome,
    Point,
    alone,
    longest,
    mix_counts,
    mix_points,
    percentile,
    points,
    study_title,
)
from wiretale.reports.html.figures import MUTED, NETWORK, SENDER, SEVERAL, plot, scatter

Row = dict[str, Any]
MakeAxis = Callable[[Sequence[float]], Row]
COLORS = SEVERAL
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "x")
FAR_APART = 50  # ratio of values from which an axis is logarithmic
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
TOGETHER_MOST = 24  # figures of sessions over time, at most
BAND = (0.1, 0.9)  # percentiles of trials
PERCENTILES_FROM = 10  # trials; of fewer, they are the least and the greatest
SPREAD = "Lines connect the medians of the trials; bars show their range; faint points are single trials."
SESSION_SPREAD = "A point for each trial; the bar is their median."


def figure(title: str, note: str, data: list[Row], **layout: Any) -> Row:
    """Returns a figure for the script of the page."""
    drawn = plot(data, **{"height": 440, "margin": {"l": 76, "r": 16, "t": 8, "b": 52}, **layout})
    return {"title": title, "note": note, **drawn, "choices": trial_choices(data)}


def axis(title: str, **more: Any) -> Row:
    """Returns an axis; its title has the unit."""
    return {"title": {"text": title}, "zeroline": False, "exponentformat": "none", "separatethousands": True, **more}


def size_axis(sizes: Sequence[float]) -> Row:
    """Returns a logarithmic axis of block sizes. A tick must be 1.5 times the one before: 32, but not 44."""
    ticks: list[float] = []
    for size in sorted(set(sizes)):
        if not ticks or size >= 1.5 * ticks[-1]:
            ticks.append(size)
    return axis("block size, bytes (logarithmic)", type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])


def fine_ticks(low: float, high: float) -> list[float]:
    """Returns ticks for a range that has fewer than two of 1, 2 and 5: the widest even steps with two ticks in it."""
    power = 10.0 ** math.floor(math.log10(high - low))
    for step in (factor * power for factor in (2, 1, 0.5, 0.2, 0.1)):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last > first:
            return [number * step for number in range(max(1, first - 1), last + 2)]
    return [low, high]


def log_axis(title: str, values: Sequence[float]) -> Row:
    """Returns a logarithmic axis with ticks at 1, 2 and 5, or only at powers of ten if there are many."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 6 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    if low < high and sum(low <= tick <= high for tick in ticks) < 2:
        ticks = fine_ticks(low, high)
    return axis(f"{title} (logarithmic)", type="log", tickvals=ticks, ticktext=[f"{tick:,.10g}" for tick in ticks])


def fixed_axis(title: str, _: Sequence[float], **more: Any) -> Row:
    """Returns an axis that does not depend on the values."""
    return axis(title, **more)


def rate_axis(title: str, values: Sequence[float]) -> Row:
    """Returns an axis from zero, or a logarithmic one if the least value would be invisible beside the greatest."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) > FAR_APART * min(positive):
        return log_axis(title, positive)
    return axis(title, rangemode="tozero")


def values_of(traces: Sequence[Row], key: str) -> list[float]:
    """Returns all known values of some traces on the x or the y axis."""
    return [value for trace in traces for value in trace[key] if value is not None]


def error_bars(trials: Sequence[Sequence[float]]) -> Row:
    """Returns bars from the least to the greatest trial of each point, hidden if each has one trial."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(values) - median(values) for values in trials],
        "arrayminus": [median(values) - min(values) for values in trials],
        "thickness": 1.2,
        "visible": any(len(values) > 1 for values in trials),
    }


def median_line(name: str, line: Sequence[Point], number: int, hover: str) -> Row:
    """Returns medians with the range of their trials."""
    color = COLORS[number % len(COLORS)]
    spread = "median %{y:.4g}, %{customdata[0]:.4g} to %{customdata[1]:.4g} in %{customdata[2]} trials"
    return scatter(
        name,
        [point.x for point in line],
        [point.median for point in line],
        f"{name}<br>{hover}<br>{spread}",
        legendgroup=name,
        meta="summary",
        mode="lines+markers",
        error_y={**error_bars([point.values for point in line]), "width": 4},
        line={"color": color, "width": 2},
        marker={"color": color, "size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]},
        customdata=[[min(p.values), max(p.values), len(p.values)] for p in line],
    )


def trial_lines(
    name: str, line: Sequence[Point], number: int, hover: str, times: Sequence[Point] | None = None
) -> Iterator[Row]:
    """Yields each trial of a line as faint points, which the page can also show as a line; x is its elapsed time if `times`
    is given. None if each point has one trial."""
    if all(len(point.trials) < 2 for point in line):
        return
    color = COLORS[number % len(COLORS)]
    look = {"legendgroup": name, "showlegend": False, "mode": "markers", "meta": "trial", "opacity": 0.45}
    for trial in sorted({trial for point in line for trial, _ in point.trials}):
        x, y = [], []
        for point, time in zip(line, times or line, strict=True):
            if (value := dict(point.trials).get(trial)) is not None:
                x.append(dict(time.trials)[trial] if times else point.x)
                y.append(value)
        title = f"{name}, trial {trial}"
        shape = {"color": color, "width": 1, "dash": DASHES[(trial - 1) % len(DASHES)]}
        marker = {"color": color, "size": 5}
        yield scatter(title, x, y, f"{title}<br>{hover}, %{{y:.4g}}", line=shape, marker=marker, **look)


def trial_choices(data: Sequence[Row], middle: str = "medians") -> list[Row]:
    """Returns the views of a figure: their middle, or a line for each trial; none if each point has one trial."""
    if not any(trace.get("meta") == "trial" for trace in data):
        return []
    together, per_trial = [], []
    for trace in data:
        usual = {"visible": True, "showlegend": True, "opacity": 1.0, **trace}
        look = {name: usual[name] for name in ("visible", "showlegend", "mode", "opacity")}
        together.append(look)
        if trace.get("meta") == "trial":
            look = {**look, "showlegend": True, "mode": "lines+markers"}
        per_trial.append({**look, "visible": trace.get("meta") != "summary", "opacity": 1.0})
    return [
        {"label": label, "traces": {name: [look[name] for look in looks] for name in looks[0]}}
        for label, looks in ((middle, together), ("per trial", per_trial))
    ]


def published_line(line: Row, number: int, hover: str) -> Row:
    """Returns a published line, labelled so."""
    color = COLORS[number % len(COLORS)]
    text = f"{line['name']}, published<br>{hover}, %{{y:.4g}}"
    mode = "lines+markers" if len(line["x"]) > 1 else "markers"
    marker = {"color": color, "size": 8, "symbol": f"{SYMBOLS[number % 4]}-open", "line": {"width": 1.5}}
    look = {"line": {"color": color, "width": 1.5, "dash": "dot"}, "marker": marker}
    return scatter(f"{line['name']} (published)", line["x"], line["y"], text, mode=mode, **look)


def line_figure(
    outcome: Outcome,
    title: str,
    lines: dict[str, list[Point]],
    published: Sequence[Row],
    hover: str,
    axes: Iterable[MakeAxis],
    note: str = SPREAD,
    first: Sequence[Row] = (),
    **layout: Any,
) -> Row:
    """Returns medians and trials of every line, after the traces in `first` and before the published lines."""
    data = [*first]
    for number, (name, line) in enumerate(lines.items()):
        data += [median_line(name, line, number, hover), *trial_lines(name, line, number, hover)]
    data += [published_line(series, number, hover) for number, series in enumerate(published)]
    if published:
        note += (
            f" Dotted with open marks: published by {study_title(outcome.plan['study'])}, measured in its own networks."
        )
    x_axis, y_axis = axes
    both = {"xaxis": x_axis(values_of(data, "x")), "yaxis": y_axis(values_of(data, "y"))}
    return figure(title, note, data, **both, **layout)


def sent_lines(outcome: Outcome) -> list[Row]:
    """Returns the median sending rates by block size, behind the received ones: over UDP the distance between them is lost."""
    lines = points(alone(outcome.rows), lambda row: row["block_bytes"], "sending_rate_mbit_s")
    look = {"mode": "lines+markers", "line": {"color": MUTED, "width": 1.5, "dash": "dash"}}
    return [
        scatter(
            f"{name}, sent",
            [point.x for point in line],
            [point.median for point in line],
            f"{name}, sent<br>%{{x}} byte blocks, median %{{y:.4g}}",
            marker={"color": MUTED, "size": 6, "symbol": f"{SYMBOLS[number % len(SYMBOLS)]}-open"},
            **look,
        )
        for number, (name, line) in enumerate(lines.items())
    ]


def against_size(y: str, published_name: str, title: str, y_axis: MakeAxis, outcome: Outcome) -> Iterator[Row]:
    """Yields a measure by block size; throughput beside the sending rates."""
    lines = points(alone(outcome.rows), lambda row: row["block_bytes"], y)
    published = [published_row for published_row in outcome.published.get(published_name, []) if published_row["x"]]
    if longest(lines) >= 2 or (lines and published):
        axes = size_axis, y_axis
        sent = sent_lines(outcome) if published_name == "throughput" else []
        note = (
            f"{SPREAD} Dashed: sending rates. The sender's socket takes them; of UDP the network may lose the difference, of TCP "
            "the socket's buffer holds it."
            if sent
            else SPREAD
        )
        yield line_figure(
            outcome, f"{title} against block size", lines, published, "%{x} byte blocks", axes, note, first=sent
        )


def throughput_by_time(outcome: Outcome) -> Iterator[Row]:
    """Yields throughput against elapsed time: medians of each size, and every trial."""
    rows = [row for row in alone(outcome.rows) if row["elapsed_s"] and row["throughput_mbit_s"]]
    times, rates = (points(rows, lambda row: row["block_bytes"], y) for y in ("elapsed_s", "throughput_mbit_s"))
    if longest(times) < 2:
        return
    note = (
        "A mark for each block size, labelled with it in bytes: medians of its trials, with the range of both; faint points are "
        "single trials. Elapsed time is from the first to the last block."
    )
    data = []
    for number, (name, line) in enumerate(times.items()):
        data.append(time_line(name, line, rates[name], number))
        data += trial_lines(name, rates[name], number, "%{x:.4g} s", line)
    axes = {
        "xaxis": log_axis("elapsed, s", values_of(data, "x")),
        "yaxis": log_axis("throughput, Mbit/s", values_of(data, "y")),
    }
    yield figure("Throughput against elapsed time", note, data, **axes, height=480)


def time_line(name: str, times: Sequence[Point], rates: Sequence[Point], number: int) -> Row:
    """Returns marks with error bars in both directions."""
    line = median_line(name, rates, number, "%{text} byte blocks, %{x:.4g} s")
    return {
        **line,
        "mode": "markers+text",
        "x": [point.median for point in times],
        "text": [f"{point.x:g}" for point in times],
        "textposition": "top center",
        "textfont": {"size": 10},
        "error_x": {**line["error_y"], **error_bars([point.values for point in times])},
    }


def received_by_offered(outcome: Outcome) -> Iterator[Row]:
    """Yields offered against received rate of UDP."""
    rows = [row for row in alone(outcome.rows) if row["protocol"] == "udp" and row["offered_mbit_s"]]
    lines = points(rows, lambda row: row["offered_mbit_s"], "receiving_rate_mbit_s", lambda row: row["group"])
    if longest(lines) < 2:
        return
    most = max(point.x for line in lines.values() for point in line)
    look = {"mode": "lines", "line": {"color": MUTED, "width": 1}, "hoverinfo": "skip"}
    yield line_figure(
        outcome,
        "Offered against received rate",
        lines,
        outcome.published.get("offered", []),
        "offered %{x:.4g} Mbit/s",
        tuple(partial(fixed_axis, f"{name}, Mbit/s", rangemode="tozero") for name in ("offered", "received")),
        f"{SPREAD} On the grey line everything arrives.",
        [scatter("everything arrives", [0, most], [0, most], "", **look)],
    )


def rate_of_one(outcome: Outcome) -> Iterator[Row]:
    """Yields the rate of a single session of a protocol by the number of sessions of the other."""
    for protocol, line in mix_points(outcome.rows).items() if has_mix(outcome) else ():
        protocol_name, other = ("TCP", "UDP") if protocol == "tcp" else ("UDP", "TCP")
        if len(line) >= 2:
            yield line_figure(
                outcome,
                f"One {protocol_name} session beside {other} sessions",
                {f"1 {protocol_name}": line},
                [row for row in outcome.published.get("mix", []) if row["measured"] == protocol],
                f"beside %{{x}} {other} sessions",
                (partial(fixed_axis, f"{other} sessions", dtick=1), partial(rate_axis, "throughput, Mbit/s")),
                f"Throughput of the {protocol_name} session. {SPREAD}",
                height=360,
            )


def session_labels(outcome: Outcome) -> dict[tuple[str, str], list[float]]:
    """Returns trials of throughput by group and session: of tests with several sessions, and of published ones with one."""
    groups = {entry["group"] for entry in [*outcome.together, *outcome.published.get("sessions", [])]}
    rates: dict[tuple[str, str], list[float]] = {}
    for row in outcome.rows:
        if row["group"] in groups and row["throughput_mbit_s"] is not None:
            rates.setdefault((row["group"], row["session"]), []).append(row["throughput_mbit_s"])
    return rates


def session_marks(name: str, places: list[list[str]], trials: list[list[float]], color: str, symbol: str) -> list[Row]:
    """Returns a point for each trial of a session, and their median as a short line."""
    several = any(len(values) > 1 for values in trials)
    spread = [[session for session, values in zip(axis, trials, strict=True) for _ in values] for axis in places]
    look = {"legendgroup": name, "mode": "markers"}
    points_drawn = {
        **scatter(name, [], [value for values in trials for value in values], f"{name}: %{{y:.4g}} Mbit/s", **look),
        "x": spread,
        "opacity": 0.6 if several else 1.0,
        "marker": {"color": color, "size": 8, "symbol": symbol},
    }
    if not several:
        return [points_drawn]
    middle = {
        **scatter(name, [], list(map(median, trials)), f"{name}: median %{{y:.4g}} Mbit/s", **look),
        "x": places,
        "showlegend": False,
        "marker": {"color": color, "size": 28, "symbol": "line-ew-open", "line": {"width": 3, "color": color}},
    }
    return [points_drawn, middle]


def published_marks(published: Sequence[Row], rates: dict[tuple[str, str], list[float]]) -> list[Row]:
    """Returns published throughput of the same sessions, each beside the measured one."""
    labels: dict[str, list[str]] = {}
    for group, label in rates:
        labels.setdefault(group, []).append(label)
    with_label = [row for row in published if row["session"] <= len(labels.get(row["group"], []))]
    if not with_label:
        return []
    places = [[row["group"] for row in with_label], [labels[row["group"]][row["session"] - 1] for row in with_label]]
    name = f"{with_label[0]['name']} (published)"
    return session_marks(name, places, [row["trials"] for row in with_label], MUTED, "diamond-open")


def has_mix(outcome: Outcome) -> bool:
    """Returns whether sessions of both protocols run together."""
    return any(count["tcp"] and count["udp"] for count in mix_counts(outcome.rows).values())


def throughput_of_sessions(outcome: Outcome) -> Iterator[Row]:
    """Yields each session of tests that have several, with published figures."""
    if not outcome.together or has_mix(outcome):
        return
    rates = session_labels(outcome)
    published = published_marks(outcome.published.get("sessions", []), rates)
    places = [[group for group, _ in rates], [label for _, label in rates]]
    data = [*session_marks("measured", places, list(rates.values()), SENDER, "circle"), *published]
    yield figure(
        "Throughput of each session",
        SESSION_SPREAD + (" Open: published." if published else ""),
        data,
        xaxis={"type": "multicategory", "tickangle": 0},
        yaxis=rate_axis("throughput, Mbit/s", values_of(data, "y")),
        height=400,
    )


def sessions_over_time(outcome: Outcome) -> Iterator[Row]:
    """Yields rates over time of sessions that ran together, and Jain's fairness index: the trials of a group over each other."""
    groups: dict[tuple[str, float, tuple[str, ...]], list[Row]] = {}
    for entry in outcome.together:
        groups.setdefault((entry["group"], entry["bin_s"], tuple(entry["labels"])), []).append(entry)
    for (group, bin_s, labels), trials in islice(groups.items(), TOGETHER_MOST):
        data: list[Row] = []
        for number, label in enumerate(labels):
            lines = [entry["rates"][number] for entry in trials]
            data += overlaid(label, bin_s, lines, COLORS[number % len(COLORS)], "y")
        data += overlaid("Jain's fairness index", bin_s, [entry["fairness"] for entry in trials], NETWORK, "y2")
        yield figure(
            f"Sessions over time: {group}" + (f", {len(trials)} trials" if len(trials) > 1 else ""),
            time_note(trials),
            data,
            xaxis=axis("seconds since the first session's start", anchor="y2", rangemode="tozero"),
            yaxis=axis("Mbit/s", rangemode="tozero", domain=[0.34, 1]),
            yaxis2=axis("fairness", range=[0, 1.08], domain=[0, 0.24]),
            hovermode="x unified",
        )


def rate_over_time(outcome: Outcome) -> Iterator[Row]:
    """Yields the rate of each case with a single session in the captures, beside the rate that the program reports."""
    rows = {row["test"]: row for row in outcome.rows}
    for entry in outcome.courses:
        trials = [rows[test] for test in entry["tests"]]
        data = list(overlaid("in the capture", entry["bin_s"], entry["rates"], NETWORK, "y", fmean))
        reported = [row for row in trials if row["throughput_mbit_s"] and row["elapsed_s"]]
        if reported:
            rate, end = (fmean(row[name] for row in reported) for name in ("throughput_mbit_s", "elapsed_s"))
            line = {"color": SENDER, "width": 1.5, "dash": "dash"}
            data.append(scatter("as the program reports", [0, end], [rate, rate], "%{y:.4g}", mode="lines", line=line))
        name = f"{trials[0]['group']}, {trials[0]['block_bytes']:,} bytes a block"
        offered = f", {trials[0]['offered_mbit_s']:g} Mbit/s offered" if trials[0]["offered_mbit_s"] else ""
        mean = f"mean of {len(trials)} trials" if len(trials) > 1 else "one trial"
        drawn = figure(
            f"Rate over time: {name}{offered}",
            f"Payload that passed the tracer, in bins of {show_duration(entry['bin_s'] * 1e9)}; {mean}, from the first data "
            "on. Dashed: the throughput in the table of results, for as long as the transfer took.",
            data,
            xaxis=axis("seconds since the first data", rangemode="tozero"),
            yaxis=axis("throughput, Mbit/s", rangemode="tozero"),
            height=320,
            hovermode="x unified",
        )
        yield {**drawn, "choices": trial_choices(data, "means")}


def overlaid(
    name: str,
    bin_s: float,
    trials: Sequence[Sequence[float | None]],
    color: str,
    y_axis: str,
    middle_of: Callable[[Sequence[float]], float] = median,
) -> Iterator[Row]:
    """Yields a line over time; of several trials their middle, a band of their spread, and each of them, hidden."""
    bins = [[value for value in values if value is not None] for values in zip_longest(*trials)]
    times = [number * bin_s for number in range(len(bins) + 1)]
    look = {"legendgroup": name}
    if len(trials) > 1:
        low, high = ([percentile(values, share) if values else None for values in bins] for share in BAND)
        edge = {"meta": "summary", "showlegend": False, "hoverinfo": "skip", "hovertemplate": None, **look}
        for values, more in ((low, {}), (high, {"fill": "tonexty", "opacity": 0.5})):
            line = over_time(name, times, values, color, y_axis)
            yield {**line, **edge, **more, "line": {**line["line"], "width": 0}}
    middle = over_time(name, times, [middle_of(values) if values else None for values in bins], color, y_axis)
    yield {**middle, **look, **({"meta": "summary"} if len(trials) > 1 else {})}
    for number, trial in enumerate(trials if len(trials) > 1 else (), 1):
        line = over_time(f"{name}, trial {number}", times[: len(trial) + 1], trial, color, y_axis)
        dash = {**line["line"], "dash": DASHES[(number - 1) % len(DASHES)]}
        yield {**line, **look, "line": dash, "meta": "trial", "visible": False}


def time_note(trials: Sequence[Row]) -> str:
    """Returns the source of the figures, what stands for several trials, and the definition of the index."""
    entry = trials[0]
    captured = all(trial["source"] == "capture" for trial in trials)
    source = "Payload that passed the tracer" if captured else "Payload as its sender sent it (no capture)"
    values = [value for trial in trials for value in trial["fairness"] if value is not None]
    mean = f" Its mean is {fmean(values):.3f}." if values else ""
    spread = (
        "from the 10th to the 90th percentile" if len(trials) >= PERCENTILES_FROM else "from the least to the greatest"
    )
    bands = f" Lines are the medians of {len(trials)} trials, bands {spread}." if len(trials) > 1 else ""
    return (
        f"{source}, in bins of {entry['bin_s']:g} s.{bands} Jain's index over the sessions that run throughout a bin, if there "
        f"are at least two: 1 if all get the same rate, 1/n if one of n gets everything.{mean}"
    )


def over_time(name: str, times: list[float], values: Sequence[float | None], color: str, y_axis: str) -> Row:
    """Returns a line with a step for each bin."""
    line = {"color": color, "width": 1.5, "shape": "hv"}
    closed = [*values, values[-1]]  # up to the end of the last bin
    look: Row = {"hovertemplate": "%{y:.4g}", "connectgaps": False}
    return {**scatter(name, times, closed, "", mode="lines", yaxis=y_axis, line=line), **look}


PERCENT_AXIS = partial(fixed_axis, "received, % of bytes sent", range=[0, 105])
FIGURES: tuple[Callable[[Outcome], Iterator[Row]], ...] = (
    partial(against_size, "throughput_mbit_s", "throughput", "Throughput", partial(log_axis, "throughput, Mbit/s")),
    throughput_by_time,
    partial(against_size, "percent_received", "received", "Percent received", PERCENT_AXIS),
    received_by_offered,
    rate_of_one,
    throughput_of_sessions,
    sessions_over_time,
    rate_over_time,
)


def experiment_figures(outcome: Outcome) -> list[Row]:
    """Returns the figures that the experiment has data for, in the order of the page."""
    return [drawn for make in FIGURES for drawn in make(outcome)]
