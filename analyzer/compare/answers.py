# SPDX-License-Identifier: Apache-2.0
"""The result in sentences: losses by place, and whether the tracer captured everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.compare.loss_location import PLACES, REMEDIES, Ledger, Stage
from wiretale.analyzer.units import agreeing, plural, show_duration, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.comparison import Comparison


NOTHING_SHARED = (
    "The captures have no packet in common: their traffic or times differ, or the path changed too much of the packets. "
    "Losses below are packets that only one capture has."
)

DIFFERENT_TRAFFIC = (
    "Each capture lacks a quarter or more of the packets that the other one proves: they probably show different traffic, or "
    "parts of it. Don't trust the losses below."
)
LACKING_SHARE, PACKETS_LEAST = 0.25, 20


def tracer_stage(ledger: Ledger) -> Stage | None:
    """Returns the tracer's stage of a ledger."""
    return next((stage for stage in ledger.stages if stage.role == "tracer"), None)


def saw_all(ledger: Ledger) -> bool | None:
    """Returns whether the tracer captured all that was sent; None if that cannot be determined."""
    stage = tracer_stage(ledger)
    if stage is None or len(ledger.stages) < 2:
        return None
    if stage.missed:
        return False
    return True if stage.seen == ledger.sent and ledger.stages[0] is not stage else None


def stages_of(ledger: Ledger) -> tuple[object, ...]:
    """Returns what two ledgers of the same packets share: the counts of their stages, and the losses."""
    return *((stage.role, stage.had, stage.seen, stage.missed) for stage in ledger.stages), *ledger.lost.items()


def distinct(ledgers: Sequence[Ledger]) -> list[Ledger]:
    """Returns the ledgers without packets that are the blocks of one test, and nothing else."""
    blocks = {stages_of(ledger) for ledger in ledgers if ledger.unit == "blocks"}
    return [ledger for ledger in ledgers if ledger.unit != "packets" or stages_of(ledger) not in blocks]


def counted(ledger: Ledger, count: int) -> str:
    """`1 packet`, `2 blocks`."""
    return plural(count, ledger.unit.removesuffix("s"))


def loss_sentence(ledger: Ledger) -> str:
    """Returns the losses by place."""
    if not ledger.lost:
        arrived = agreeing(ledger.sent, "the only one", f"all {ledger.sent:,}")
        return f"{ledger.title}: {arrived} arrived." if ledger.sent else f"{ledger.title}: none."
    parts = ", ".join(f"{count:,} {PLACES[place]}" for place, count in ledger.lost.items())
    total = sum(ledger.lost.values())
    fate = f"{agreeing(total, 'is', 'are')} missing" if "capture" in ledger.lost else "did not arrive"
    return f"{ledger.title}: {total:,} of {ledger.sent:,} ({show_share(total, ledger.sent)}) {fate}: {parts}."


def tracer_sentence(ledger: Ledger) -> str | None:
    """Returns whether the tracer captured everything, as a sentence; None if that cannot be determined."""
    stage = tracer_stage(ledger)
    if stage is None or len(ledger.stages) < 2:
        return None
    if stage.missed:
        return f"The tracer missed {counted(ledger, stage.missed)} that passed it ({ledger.title})."
    if saw_all(ledger):
        return f"The tracer captured everything: {counted(ledger, stage.seen)} ({ledger.title})."
    short = ledger.sent - stage.seen
    if not short:
        return None
    return (
        f"The tracer captured {counted(ledger, stage.seen)}, all that is known to have passed it; {short:,} more "
        f"{agreeing(short, 'was', 'were')} to be sent and reached neither tracer nor receiver ({ledger.title})."
    )


def missing_sentences(comparison: Comparison) -> Iterator[str]:
    """Yields between which hosts the missing packets of a way went, and when: by the clock of the first point on the way."""
    ends = {(row["flow"], row["direction"]): row["ends0"] or row.get("ends1") or [] for row in comparison.flows}
    for heading, point in ((1, comparison.points[0]), (-1, comparison.points[-1])):
        time_ns = f"t{point.number}"
        counts: Counter[tuple[str, str]] = Counter()
        times: dict[tuple[str, str], list[int]] = {}
        rows = comparison.rows(
            f"SELECT flow, direction, count(*) AS packets, min({time_ns}) AS start, max({time_ns}) AS stop FROM outcomes "
            f"WHERE place IS NOT NULL AND sign(heading) = {heading} GROUP BY ALL ORDER BY ALL"
        )
        for row in rows:
            _, source, _, destination, *_ = ends.get((row["flow"], row["direction"])) or [""] * 4
            counts[source, destination] += row["packets"]
            times.setdefault((source, destination), []).extend(
                row[name] for name in ("start", "stop") if row[name] is not None
            )
        (most, packets), *_ = counts.most_common(1) or [(("", ""), 0)]
        total = sum(counts.values())
        if not most[0]:
            continue
        who = "The missing packet" if total == 1 else "The missing packets"
        if packets < total:
            who = f"{packets:,} of the {total:,} missing packets"
        yield f"{who} went from {most[0]} to {most[1]}{when(times[most], point)}."


def when(times: Sequence[int], point: CapturePoint) -> str:
    """`, between 121 ms and 164 ms after the sender's first packet`; empty if unknown."""
    if not times or point.first_ns is None:
        return ""
    least, most = (show_duration(moment - point.first_ns) for moment in (min(times), max(times)))
    span = least if least == most else f"between {least} and {most}"
    return f", {span} after the {point.role}'s first packet"


def remedy(comparison: Comparison) -> str | None:
    """Returns advice for the place with most losses of the first traffic that has any."""
    lost = next((ledger.lost for ledger in comparison.ledgers if ledger.lost), {})
    place = max(lost, key=lambda name: lost[name], default="")
    if place not in REMEDIES:
        return None
    where = PLACES[place] if place == "never_sent" else f"lost {PLACES[place]}"
    return f"For those {where}: {REMEDIES[place]}."


def of_different_traffic(comparison: Comparison) -> bool:
    """Returns whether, in a direction, every capture lacks so many packets that losses of captures don't explain it."""
    return not any(point.dropped for point in comparison.points) and any(
        ledger.unit == "packets"
        and len(ledger.stages) > 1
        and all(stage.had >= PACKETS_LEAST and stage.missed >= LACKING_SHARE * stage.had for stage in ledger.stages)
        for ledger in comparison.ledgers
    )


def answers(comparison: Comparison) -> Iterator[str]:
    """Yields the answers, one sentence each."""
    is_same = False
    if len(comparison.points) > 1 and all(clock.evidence == "none" for clock in comparison.clocks):
        yield NOTHING_SHARED
    elif of_different_traffic(comparison):
        yield DIFFERENT_TRAFFIC
    else:
        is_same = True
    ledgers = distinct(comparison.ledgers)
    for ledger in ledgers:
        yield loss_sentence(ledger)
    if is_same and len(comparison.points) > 1:
        yield from missing_sentences(comparison)
    for ledger in ledgers:
        sentence = tracer_sentence(ledger)
        if sentence and (ledger.unit != "packets" or len(comparison.ledgers) <= 2):
            yield sentence
    advice = remedy(comparison)
    if advice:
        yield advice
