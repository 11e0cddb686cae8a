# SPDX-License-Identifier: Apache-2.0
"""Compares claims with labels, and sums precision and recall by kind and capture point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from score.claims import Claim
from score.labels import Label

PLACES = ("sender", "tracer", "receiver", "mirrored")
TOOLS = ("wiretale", "Wireshark", "tcptrace")
BOTH = TOOLS[:2]
NOTHING = Claim()


@dataclass
class Score:
    """Counts of one tool, kind and capture point."""

    claimed: int = 0
    right: int = 0
    there: int = 0  # true, and the capture can show it
    detected: int = 0

    def add(self, claimed: int, right: int, there: int, detected: int) -> None:
        self.claimed += claimed
        self.right += right
        self.there += there
        self.detected += detected

    @property
    def precision(self) -> float | None:
        return self.right / self.claimed if self.claimed else None

    @property
    def recall(self) -> float | None:
        return self.detected / self.there if self.there else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, None if there is no case."""
        if not self.there:
            return None
        precision, recall = self.precision or 0.0, self.recall or 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True)
class Kind:
    """A verdict: if a claim makes it, if it is true (None: not counted), and if the capture can show it."""

    name: str
    claimed: Callable[[Claim], bool]
    true: Callable[[Label], bool | None]
    decidable: Callable[[Label], bool] = lambda label: label.decidable
    tools: tuple[str, ...] = ("wiretale",)
    of_acks: bool = False  # a verdict on ACKs, not on data

    def applies_to(self, label: Label) -> bool:
        return label.what == "mirror" or self.of_acks == (label.what == "ack")


def simple(name: str, word: str, tools: tuple[str, ...] = ("wiretale",)) -> Kind:
    """Returns a kind that has the same word in claims and labels."""
    return Kind(name, lambda claim: word in claim.verdicts, lambda label: label.what == word, tools=tools)


def of_cause(name: str, cause: str, tools: tuple[str, ...] = BOTH) -> Kind:
    def is_cause(label: Label) -> bool | None:
        if label.what != "retransmission":
            return False
        return None if not label.cause or (len(label.causes) > 1 and cause in label.causes) else label.cause == cause

    return Kind(name, lambda claim: claim.cause == cause, is_cause, tools=tools)


def of_place(place: str, unclear: Callable[[Label], bool]) -> Kind:
    """Returns the kind of a loss on one side of the capture point. `unclear` labels that are not true are not counted."""

    def is_lost(label: Label) -> bool | None:
        if label.what != "retransmission" or label.place == place:
            return label.what == "retransmission"
        return None if unclear(label) else False

    return Kind(
        f"lost {place}",
        lambda claim: "retransmission" in claim.verdicts and claim.place == place,
        is_lost,
        lambda label: label.place_decidable,
        BOTH,
    )


KINDS = (
    simple("retransmitted", "retransmission", BOTH),
    of_place("upstream", lambda label: False),
    of_place("downstream", lambda label: label.ack_lost or label.spurious is None),
    Kind(
        "spurious",
        lambda claim: claim.spurious,
        lambda label: label.spurious if label.what == "retransmission" else False,
        lambda label: label.spurious_decidable,
        BOTH,
    ),
    of_cause("fast", "fast"),
    of_cause("timeout", "timeout"),
    of_cause("tail-loss probe", "probe", ("wiretale",)),
    simple("reordered", "reordered", BOTH),
    simple("duplicated by the network", "duplicate"),
    simple("duplicated by the mirror", "mirror"),
    simple("datagrams reordered", "datagram reordered"),
    simple("datagrams duplicated", "datagram duplicate"),
    Kind(
        "missed by the capture",
        lambda claim: "unseen" in claim.verdicts,
        lambda label: label.unseen > 0,
        tools=BOTH,
        of_acks=True,
    ),
)
DATAGRAMS_LOST = "datagrams lost"  # scored by counts
# Kinds for which tcptrace reports counts.
COUNTED = {"retransmission": "retransmitted", "reordered": "reordered"}


@dataclass
class Miss:
    """A frame with a wrong or missing claim."""

    kind: str
    frame: int
    wrong: bool  # claimed but not true; otherwise true but not claimed
    label: Label
    claim: Claim


@dataclass
class Tally:
    """Scores by kind, capture point and tool."""

    scores: dict[tuple[str, str, str], Score] = field(default_factory=lambda: defaultdict(Score))
    undecidable: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, other: Tally) -> None:
        for key, score in other.scores.items():
            self.scores[key].add(score.claimed, score.right, score.there, score.detected)
        for place, answers in other.undecidable.items():
            self.undecidable[place].update(answers)

    def take(self, point: str, tool: str, labels: Iterable[Label], claims: Mapping[int, Claim]) -> list[Miss]:
        """Adds the claims of a tool about one capture, and returns its misses."""
        misses: list[Miss] = []
        for label in labels:
            claim = claims.get(label.frame, NOTHING)
            for kind in KINDS:
                if tool in kind.tools and kind.applies_to(label):
                    misses += self.take_kind(kind, point, tool, label, claim)
        return misses

    def take_kind(self, kind: Kind, point: str, tool: str, label: Label, claim: Claim) -> list[Miss]:
        true, claimed = kind.true(label), kind.claimed(claim)
        if true is None:
            return []
        detectable = true and kind.decidable(label)
        self.scores[kind.name, point, tool].add(claimed, claimed and true, detectable, detectable and claimed)
        if true and not detectable and tool == "wiretale":
            self.undecidable[kind.name, point][answer_of(kind, claim, claimed)] += 1
        wrong, silent = claimed and not true, detectable and not claimed
        return [Miss(kind.name, label.frame, wrong, label, claim)] if wrong or silent else []

    def take_counts(self, point: str, labels: Iterable[Label], counts: Mapping[str, int]) -> None:
        """Adds the counts of tcptrace. A count is right up to the number of true cases, because no frame proves it."""
        labels = list(labels)
        true = Counter(label.what for label in labels)
        there = Counter(label.what for label in labels if label.decidable)
        for what, name in COUNTED.items():
            claimed, detectable = counts[what], there[what]
            self.scores[name, point, "tcptrace"].add(
                claimed, min(claimed, true[what]), detectable, min(claimed, detectable)
            )

    def take_lost_datagrams(self, point: str, lost: int, claimed: int) -> None:
        self.scores[DATAGRAMS_LOST, point, "wiretale"].add(claimed, min(claimed, lost), lost, min(claimed, lost))


def total(tallies: Iterable[Tally]) -> Tally:
    together = Tally()
    for tally in tallies:
        together.add(tally)
    return together


def answer_of(kind: Kind, claim: Claim, claimed: bool) -> str:
    """Returns how a claim answers a question that the capture cannot decide: right, wrong or unknown."""
    if claimed:
        return "right"
    if kind.name.startswith("lost "):
        return "wrong" if claim.place else "unknown"
    if kind.name in ("fast", "timeout", "tail-loss probe"):
        return "wrong" if claim.cause else "unknown"
    compatible = {"duplicated by the mirror": {"duplicate", "mirror"}, "spurious": {"retransmission"}}
    contradicting = {"retransmission", "reordered", "duplicate", "mirror"} - compatible.get(kind.name, set())
    return "wrong" if claim.verdicts & contradicting else "unknown"
