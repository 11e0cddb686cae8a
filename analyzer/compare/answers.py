# SPDX-License-Identifier: Apache-2.0
"""What several capture points answer, in sentences: what was lost where, and whether the tracer saw it all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wiretale.analyzer.compare.loss_location import PLACES, Ledger, Stage
from wiretale.analyzer.units import agreeing, plural, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage


NOTHING_SHARED = (
    "The captures have no packet in common: they are of other traffic or other times, or too much was changed on the way. "
    "What seems lost below is what one capture alone has."
)


def tracer_stage(ledger: Ledger) -> Stage | None:
    """The tracer's part in a ledger."""
    return next((stage for stage in ledger.stages if stage.role == "tracer"), None)


def saw_all(ledger: Ledger) -> bool | None:
    """Whether the tracer saw all that was sent. None when nothing tells what was sent, or where the rest was lost."""
    stage = tracer_stage(ledger)
    if stage is None or len(ledger.stages) < 2:
        return None
    if stage.missed:
        return False
    return True if stage.seen == ledger.sent and ledger.stages[0] is not stage else None


def counted(ledger: Ledger, count: int) -> str:
    """With what it counts: `1 packet`, `2 blocks`."""
    return plural(count, ledger.unit.removesuffix("s"))


def loss_sentence(ledger: Ledger) -> str:
    """Of how many how many were lost where."""
    if not ledger.lost:
        arrived = agreeing(ledger.sent, "the only one", f"all {ledger.sent:,}")
        return f"{ledger.title}: {arrived} arrived." if ledger.sent else f"{ledger.title}: none."
    parts = ", ".join(f"{count:,} {PLACES[place]}" for place, count in ledger.lost.items())
    whole = sum(ledger.lost.values())
    fate = f"{agreeing(whole, 'is', 'are')} missing" if "capture" in ledger.lost else "did not arrive"
    return f"{ledger.title}: {whole:,} of {ledger.sent:,} ({show_share(whole, ledger.sent)}) {fate}: {parts}."


def tracer_sentence(ledger: Ledger) -> str | None:
    """Did the tracer see it all?"""
    stage = tracer_stage(ledger)
    if stage is None or len(ledger.stages) < 2:
        return None
    if stage.missed:
        return f"The tracer did not see it all: {counted(ledger, stage.missed)} passed it unseen ({ledger.title})."
    if saw_all(ledger):
        return f"The tracer saw it all: {counted(ledger, stage.seen)} ({ledger.title})."
    short = ledger.sent - stage.seen
    if not short:
        return None
    return (
        f"The tracer saw all that is known to have come by: {counted(ledger, stage.seen)}; {short:,} more "
        f"{agreeing(short, 'was', 'were')} to be sent and came neither by it nor to the receiver ({ledger.title})."
    )


def answers(vantage: Vantage) -> Iterator[str]:
    """One sentence each."""
    if len(vantage.points) > 1 and all(clock.evidence == "none" for clock in vantage.clocks):
        yield NOTHING_SHARED
    for ledger in vantage.ledgers:
        yield loss_sentence(ledger)
    for ledger in vantage.ledgers:
        sentence = tracer_sentence(ledger)
        if sentence and (ledger.unit != "packets" or len(vantage.ledgers) <= 2):
            yield sentence
