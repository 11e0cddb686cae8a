# SPDX-License-Identifier: Apache-2.0
"""The circumstances under which a row has misses, and the evidence that these take from a capture.

They are properties of the run (its options and queue) and of the frame (the ACKs that had passed before it), never of the
verdict, so they hold for any program that reads the capture."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from score.labels import Label
from score.runs.scenarios import Scenario
from score.tally import KINDS, Miss

LEAST_RTO_NS = 200_000_000  # of Linux
CAUSES = ("fast", "timeout", "tail-loss probe")
SHOWN = 3  # combinations of a row
PACKET_BITS = 1500 * 8


@dataclass(frozen=True)
class Circumstance:
    name: str
    lacks: str  # the evidence that is absent, as a sentence
    holds: Callable[[Scenario, Label], bool]
    kinds: tuple[str, ...] = ()  # all if empty


def is_off(option: str) -> Callable[[Scenario, Label], bool]:
    return lambda scenario, _: any(name.endswith(f"tcp_{option}") for name in scenario.sysctl)


def queue_ns(scenario: Scenario) -> float:
    """Returns how long the full queue of the second link delays a packet, 0 if it has no rate."""
    match = re.search(r"rate=([\d.]+)Mbit.*queue=(\d+)", scenario.base_second)
    return int(match[2]) * PACKET_BITS / float(match[1]) * 1e3 if match else 0.0


CIRCUMSTANCES = (
    Circumstance("no SACK", "An ACK does not show which segments arrived.", is_off("sack")),
    Circumstance(
        "no DSACK", "No ACK shows which segment came twice.", is_off("dsack"), ("lost downstream", "spurious")
    ),
    Circumstance("no timestamps", "No packet shows which ACK its sender had received.", is_off("timestamps")),
    Circumstance(
        "a queue of 200 ms or more",
        "The answer to an ACK may take longer than an RTO.",
        lambda scenario, _: queue_ns(scenario) >= LEAST_RTO_NS,
        CAUSES,
    ),
    Circumstance(
        "its ACK had passed",
        "The signal that the retransmission answers is older than the ACKs that passed last.",
        lambda _, label: label.acked,
        CAUSES,
    ),
    Circumstance(
        "no ACK had advanced for 200 ms",
        "An RTO can have expired while duplicate ACKs came: the timer and the ACK send the same packet.",
        lambda _, label: label.waited_ns >= LEAST_RTO_NS,
        CAUSES,
    ),
    Circumstance(
        "TSval of the segment that overtook it, and no IDs that rise",
        "Only time distinguishes a late segment from a retransmission, and from a quarter to all of an RTT it cannot.",
        lambda _, label: label.unordered,
        ("retransmitted", "lost upstream", "reordered"),
    ),
    Circumstance(
        "options cut off",
        "SACK blocks, DSACKs and echoed timestamps are missing.",
        lambda _, label: label.cut,
        ("lost downstream", "spurious", *CAUSES),
    ),
    Circumstance(
        "no ACK ended at it",
        "The receiver may have held it above a gap.",
        lambda _, label: not label.place_decidable,
        ("lost upstream", "lost downstream"),
    ),
    Circumstance(
        "a copy within 1 ms that no DSACK reports",
        "The network's copy and the mirror's are the same frame.",
        lambda _, label: label.what == "duplicate" and not label.decidable,
        ("duplicated by the network", "duplicated by the mirror"),
    ),
)


def circumstances_of(scenario: Scenario, kind: str, label: Label) -> tuple[Circumstance, ...]:
    return tuple(
        circumstance
        for circumstance in CIRCUMSTANCES
        if (not circumstance.kinds or kind in circumstance.kinds) and circumstance.holds(scenario, label)
    )


Cases = Counter[tuple[str, tuple[Circumstance, ...]]]  # by kind and circumstances


def count_cases(scenario: Scenario, labels: Iterable[Label]) -> Cases:
    """Counts the cases that a capture can show, found or not."""
    return Counter(
        (kind.name, circumstances_of(scenario, kind.name, label))
        for label in labels
        for kind in KINDS
        if kind.applies_to(label) and kind.true(label) and kind.decidable(label)
    )


def reasons(kind: str, misses: Iterable[tuple[Scenario, Miss]], cases: Cases) -> str:
    """Returns how many misses of a row had which circumstances, the most frequent first, beside the number of cases that had
    them, and the evidence that is absent. Misses without any are named as such: they are errors of the rules."""
    counts = Counter(circumstances_of(scenario, kind, miss.label) for scenario, miss in misses)
    unexplained = counts.pop((), 0)
    total = counts.total() + unexplained
    if not total:
        return ""
    most = counts.most_common(SHOWN)
    parts = []
    for combination, count in most:
        names = ", ".join(circumstance.name for circumstance in combination)
        parts.append(f"{count} of {total} misses: {names} ({cases[kind, combination]} cases)")
    if remaining := counts.total() - sum(count for _, count in most):
        parts.append(f"{remaining} of {total}: other combinations")
    if unexplained:
        parts.append(f"{unexplained} of {total}: none of these, so the rules are wrong")
    lacks = dict.fromkeys(circumstance.lacks for combination, _ in most for circumstance in combination)
    return " ".join(["; ".join(parts) + ".", *lacks])
