# SPDX-License-Identifier: Apache-2.0
"""A cause: what one thing explains findings of one or many conversations, and the rule that finds it.

`@cause(...)` above a function makes it a Cause. The function yields a Match for each occurrence. Its words must fill the
templates of sentence and advice, in the language of findings (analyzer/findings/model.py). A match names for each rival the
fact that excludes it, or what would decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from wiretale.analyzer.findings.evidence import MEMBERS_MAX, Cited, EvidenceFields, Side, evidence_fields
from wiretale.analyzer.findings.model import Words, fill, shorter_forms

if TYPE_CHECKING:
    from typing import TypeAlias

    from wiretale.analyzer.causes.case import Case, Numbered

Certainty = Literal["proven", "likely", "possible"]
Place = Literal["client", "server", "device", "before", "after", "path", "capture"]
Severity = Literal["error", "warning", "info"]
CERTAINTIES: tuple[Certainty, ...] = ("proven", "likely", "possible")
#: the words of a certainty in a sentence: {probably} with a space behind it, {may} before a verb
PROBABLY: dict[Certainty, str] = {"proven": "", "likely": "probably ", "possible": "possibly "}


class Match:
    """One occurrence of a cause."""

    def __init__(
        self,
        *,
        certainty: Certainty,
        place: Place,
        findings: Sequence[Numbered] = (),
        flows: Sequence[int | Side] = (),
        failed: int | None = None,
        attempts: int | None = None,
        waited_ns: float | None = None,
        saving_ns: float | None = None,
        bytes: int | None = None,
        members: int | None = None,
        frames: Sequence[Cited] = (),
        packets: int | None = None,
        filter: str | None = None,
        proof: str | None = None,
        excluded: Mapping[str, str] | None = None,
        undecided: Mapping[str, str] | None = None,
        unjudged: float | None = None,
        severity: Severity | None = None,
        **words: Any,
    ) -> None:
        self.certainty = certainty
        self.place = place
        self.findings = findings  # that it explains, beside the effects that the rule names
        #: those that it is about; none: those of the findings
        self.flows = [(side, None) if isinstance(side, int) else side for side in flows[:MEMBERS_MAX]]
        self.failed = failed or None
        self.attempts = attempts
        self.waited_ns = waited_ns
        self.saving_ns = saving_ns
        self.bytes = bytes
        self.members = members
        self.frames = frames  # packets that prove it; none: those of the findings
        self.packets = packets  # number of all of these packets; None: unknown, or as the findings have it
        self.filter = filter
        self.proof = proof
        self.excluded = dict(excluded or {})  # code of a rival: the fact that excludes it
        self.undecided = dict(undecided or {})  # code of a rival: the measurement that would decide
        self.unjudged = unjudged  # by a fault of the capture: share of the packets
        self.severity = severity  # None: error if something failed, else warning
        self.words: Words = {"probably": PROBABLY[certainty], **words}

    @property
    def sides(self) -> list[Side]:
        """The flows that it is about."""
        if self.flows:
            return self.flows
        return list(dict.fromkeys(side for finding in self.findings for side in finding.finding.flows))[:MEMBERS_MAX]

    def evidence(self) -> EvidenceFields:
        """Returns its span, packets and flows."""
        frames = self.frames or [frame for each in self.findings for frame in each.finding.frames]
        packets = self.packets or (self.findings[0].finding.packets if len(self.findings) == 1 else None)
        fields = evidence_fields(frames, None, packets, self.sides)
        if self.frames or not self.findings:
            return fields
        firsts = [ns for each in self.findings if (ns := each.finding.first_ns) is not None]
        lasts = [ns for each in self.findings if (ns := each.finding.last_ns) is not None]
        return fields._replace(first_ns=min(firsts, default=None), last_ns=max(lasts, default=None))


Matches = Iterator[Match]


class Cause(NamedTuple):
    """One cause: the function that looks for it, and its page in docs/causes.md."""

    matches: Callable[[Case], Matches]
    code: str
    title: str
    sentence: str
    advice: str
    shows: str  # how it shows and how it is computed, with thresholds
    rivals: Mapping[str, str]  # code: the fact that decides
    unknown: str = ""  # what cannot be told from where
    explains: tuple[str, ...] = ()  # codes of findings that are effects of it, if they are of its flows

    def texts(self, match: Match) -> tuple[str, str]:
        """Returns sentence and advice of a match."""
        return next(shorter_forms(self.sentence, match.words)), fill(self.advice, match.words)


if TYPE_CHECKING:
    Decorator: TypeAlias = Callable[[Callable[[Case], Matches]], Cause]


def cause(**page: Any) -> Decorator:
    """Makes a cause of the function below it; `page` is the other members of Cause. The registry collects the causes."""
    return partial(Cause, **page)
