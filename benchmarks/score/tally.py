# SPDX-License-Identifier: Apache-2.0
"""Claims held against the truth, added up by kind and place of capture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from score.claims import Claim
from score.labels import Label

PLACES = ("sender", "tracer", "receiver", "mirrored")
TOOLS = ("wiretale", "Wireshark", "tcptrace")
NOTHING = Claim()


@dataclass
class Score:
    """Of one tool, kind and place of capture."""

    claimed: int = 0
    right: int = 0
    there: int = 0  # true, and can be told here
    found: int = 0

    @property
    def precision(self) -> float | None:
        return self.right / self.claimed if self.claimed else None

    @property
    def recall(self) -> float | None:
        return self.found / self.there if self.there else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean; None where there is nothing to find."""
        if not self.there:
            return None
        precision, recall = self.precision or 0.0, self.recall or 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@dataclass(frozen=True)
class Kind:
    """A verdict: when it is claimed, when it is true (None: left out), when it can be told."""

    name: str
    claimed: Callable[[Claim], bool]
    true: Callable[[Label], bool | None]
    told: Callable[[Label], bool]
    tools: tuple[str, ...] = ("wiretale", "Wireshark")
    of_answers: bool = False  # it is said of acknowledgments

    def about(self, label: Label) -> bool:
        """Whether the kind is a question for this frame: of acknowledgments there is no other truth than what is missed."""
        return label.what == "mirror" or self.of_answers == (label.what == "ack")


def cause_is(cause: str) -> Callable[[Label], bool | None]:
    def true(label: Label) -> bool | None:
        if label.what != "again":
            return False
        return None if not label.cause or (len(label.causes) > 1 and cause in label.causes) else label.cause == cause

    return true


def told(label: Label) -> bool:
    return label.told


KINDS = (
    Kind("sent again", lambda c: "again" in c.whats, lambda t: t.what == "again", told),
    Kind(
        "lost upstream",
        lambda c: "again" in c.whats and c.place == "upstream",
        lambda t: t.what == "again" and t.place == "upstream",
        lambda t: t.place_told,
    ),
    Kind(
        "lost downstream",
        lambda c: "again" in c.whats and c.place == "downstream",
        lambda t: (
            t.what == "again" and (t.place == "downstream" or (None if t.answer_lost or t.needless is None else False))
        ),
        lambda t: t.place_told,
    ),
    Kind(
        "needless",
        lambda c: c.spurious,
        lambda t: t.needless if t.what == "again" else False,
        lambda t: t.needless_told,
    ),
    Kind("fast", lambda c: c.cause == "fast", cause_is("fast"), told),
    Kind("timeout", lambda c: c.cause == "timeout", cause_is("timeout"), told),
    Kind("tail-loss probe", lambda c: c.cause == "probe", cause_is("probe"), told, ("wiretale",)),
    Kind("overtaken", lambda c: "late" in c.whats, lambda t: t.what == "late", told),
    Kind("copied by the network", lambda c: "copy" in c.whats, lambda t: t.what == "copy", told, ("wiretale",)),
    Kind("copied by the mirror", lambda c: "mirror" in c.whats, lambda t: t.what == "mirror", told, ("wiretale",)),
    Kind(
        "datagrams overtaken",
        lambda c: "datagram late" in c.whats,
        lambda t: t.what == "datagram late",
        told,
        ("wiretale",),
    ),
    Kind(
        "datagrams copied",
        lambda c: "datagram copy" in c.whats,
        lambda t: t.what == "datagram copy",
        told,
        ("wiretale",),
    ),
    Kind("missed by the capture", lambda c: "unseen" in c.whats, lambda t: t.unseen > 0, told, of_answers=True),
)
DATAGRAMS_LOST = "datagrams lost"  # by counts
# What tcptrace says by counts alone.
COUNTED = {"again": "sent again", "late": "overtaken"}


@dataclass
class Miss:
    """A frame on which a tool was wrong, or silent."""

    kind: str
    frame: int
    wrong: bool  # claimed and not true; else true and not claimed
    label: Label
    claim: Claim


@dataclass
class Tally:
    """All scores, by kind, place of capture and tool."""

    scores: dict[tuple[str, str, str], Score] = field(default_factory=lambda: defaultdict(Score))
    untold: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def take(self, point: str, tool: str, labels: Iterable[Label], claims: Mapping[int, Claim]) -> list[Miss]:
        """One capture; returns the frames on which the tool was wrong."""
        misses = []
        for label in labels:
            claim = claims.get(label.frame, NOTHING)
            for kind in KINDS:
                if (
                    tool in kind.tools
                    and kind.about(label)
                    and (miss := self.take_kind(kind, point, tool, label, claim))
                ):
                    misses.append(miss)
        return misses

    def take_kind(self, kind: Kind, point: str, tool: str, label: Label, claim: Claim) -> Miss | None:
        true, claimed = kind.true(label), kind.claimed(claim)
        if true is None:
            return None
        score = self.scores[kind.name, point, tool]
        score.claimed += claimed
        score.right += claimed and true
        if true and not kind.told(label) and tool == "wiretale":
            self.untold[kind.name, point][said_of(kind, claim, claimed)] += 1
        if true and kind.told(label):
            score.there += 1
            score.found += claimed
        wrong = claimed and not true
        silent = true and kind.told(label) and not claimed
        return Miss(kind.name, label.frame, wrong, label, claim) if wrong or silent else None

    def take_counts(self, point: str, labels: Iterable[Label], counts: Mapping[str, int]) -> None:
        """A tool that tells counts alone: each is taken for right as far as there are so many."""
        labels = list(labels)
        true = Counter(label.what for label in labels)
        there = Counter(label.what for label in labels if label.told)
        for what, name in COUNTED.items():
            score = self.scores[name, point, "tcptrace"]
            score.claimed += counts[what]
            score.right += min(counts[what], true[what])
            score.there += there[what]
            score.found += min(counts[what], there[what])

    def take_lost_datagrams(self, point: str, lost: int, said: int) -> None:
        """Of a UDP run, by counts."""
        score = self.scores[DATAGRAMS_LOST, point, "wiretale"]
        score.claimed += said
        score.right += min(said, lost)
        score.there += lost
        score.found += min(said, lost)


def said_of(kind: Kind, claim: Claim, claimed: bool) -> str:
    """Of what cannot be told: the answer."""
    if claimed:
        return "right"
    if kind.name in ("lost upstream", "lost downstream"):
        return "wrong" if claim.place else "unknown"
    if kind.name in ("fast", "timeout", "tail-loss probe"):
        return "wrong" if claim.cause else "unknown"
    return "wrong" if claim.whats & {"again", "late", "copy", "mirror"} - own_words(kind) else "unknown"


def own_words(kind: Kind) -> set[str]:
    """Words that say nothing against the kind."""
    return (
        {"copy", "mirror"} if kind.name == "copied by the mirror" else {"again"} if kind.name == "needless" else set()
    )
