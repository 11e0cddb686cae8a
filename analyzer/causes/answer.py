# SPDX-License-Identifier: Apache-2.0
"""The answer: what the person should hear first, in one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from wiretale.analyzer.causes.groups import WORDS_MOST, Group, groups
from wiretale.analyzer.causes.harmless import marks_of
from wiretale.analyzer.causes.rank import BLIND, FAILED, NOTED, class_of, rank_of
from wiretale.analyzer.causes.what_happened import what_happened
from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.rows import CauseRow
    from wiretale.analyzer.trace import Trace

FRAMES_SHOWN = 20
MATTERS_LEAST = 0.01  # of the capture
LIMIT, BUSY_LEAST = "bottleneck", 0.5  # of the time of all flows
BUSY_PARTS = ("transfer", "queue")


class Explained(NamedTuple):
    """An entry of the list of causes: a cause, or findings that none explains."""

    cause: CauseRow | None
    group: Group  # of a cause, the findings that it explains

    @property
    def row(self) -> dict[str, Any]:
        """The columns that its rank follows from."""
        return self.group.as_cause() if self.cause is None else {**self.cause}

    @property
    def code(self) -> tuple[bool, str]:
        """Whether it is a cause, and its code or that of its findings."""
        return (False, self.group.first["code"]) if self.cause is None else (True, self.cause["code"])

    @property
    def sentence(self) -> str:
        """The entry in one or two sentences."""
        return self.group.short_sentence() if self.cause is None else self.cause["sentence"]

    @property
    def advice(self) -> str:
        """What to do."""
        return str(self.group.main["advice"]) if self.cause is None else self.cause["advice"]


class AnswerFrame(TypedDict):
    """A packet that shows the answer: number of the capture, frame, and what it shows."""

    capture: int
    frame: int
    role: str


class Answer(NamedTuple):
    """The answer, and what it follows from. JSON has the same members.

    >>> import wiretale
    >>> answer = wiretale.analyze("sample_pcaps/tcp_losses.pcap").answer
    >>> answer.cause, answer.certainty, answer.findings
    ('tail-loss', 'proven', [1, 2, 3])
    >>> answer.sentence.partition(":")[0]
    'The last segment of a burst from 192.0.2.10 to 198.51.100.20'
    """

    sentence: str
    caveat: str | None  # a fault of the capture that weakens it
    cause: str | None  # code of the cause; None: findings that none explains, or nothing stands out
    number: int | None  # of the cause in the table
    findings: list[int]  # numbers of those that it follows from
    certainty: str | None
    place: str | None
    cost: dict[str, int | None]  # failed, attempts, waited_ns, saving_ns, bytes
    advice: str | None
    frames: list[AnswerFrame]  # that prove it
    next_steps: list[str]  # measurements that would make it certain


NO_COST: dict[str, int | None] = dict.fromkeys(("failed", "attempts", "waited_ns", "saving_ns", "bytes"))


def entries(trace: Trace) -> list[Explained]:
    """Returns causes and unexplained findings, the best explanation first."""
    findings = trace.findings.rows()
    members: dict[int, list[int]] = {}
    for row in trace.cause_findings:
        members.setdefault(row["cause"], []).append(row["finding"])
    explained = {number for numbers in members.values() for number in numbers}
    causes = [
        Explained(row, Group([findings[number - 1] for number in members.get(row["cause"], ())]))
        for row in trace.causes
    ]
    return sorted(
        [*causes, *(Explained(None, group) for group in groups(findings, explained))],
        key=lambda entry: rank_of(entry.row),
    )


class Heads(NamedTuple):
    """The entry that gives the answer, and the fault of the capture that weakens it."""

    first: Explained | None
    caveat: Explained | None


def heads_of(trace: Trace, listed: list[Explained]) -> Heads:
    """Returns the heads of entries(). Without anything that stands out, that is a link that is busy most of the time; a fault of
    the capture beside which nothing stands out has no caveat.
    """
    first = next((entry for entry in listed if matters(trace, entry)), None) or busy_link(trace, listed)
    is_fault = first is not None and first.row["place"] == "capture" and class_of(first.row) != BLIND
    caveats = (entry for entry in listed if is_caveat(entry) and entry is not first)
    return Heads(first, None if is_fault else next(caveats, None))


def answer(trace: Trace) -> Answer:
    """Returns the answer of a trace."""
    listed = entries(trace)
    first, caveat = heads_of(trace, listed)
    text = caveat and caveat.sentence
    if first is None:
        sentence = with_marks(what_happened(trace), marks_of(trace))
        return Answer(sentence, text, None, None, [], None, None, NO_COST, None, [], [])
    reply = answer_of(trace, first, text)
    more = more_such(listed, first)
    if more:
        reply = reply._replace(sentence=f"{reply.sentence} {more}")
    if class_of(first.row) == NOTED or (first.row["place"] == "capture" and class_of(first.row) != BLIND):
        return reply._replace(sentence=f"{reply.sentence} {what_happened(trace)}")
    return reply


def with_marks(sentence: str, marks: list[str]) -> str:
    """Returns a sentence with as many words about packets that only seem wrong as may head a screen."""
    for count in range(len(marks), 0, -1):
        longer = f"{sentence} Harmless: {', and '.join(marks[:count])}."
        if len(longer.split()) <= WORDS_MOST:
            return longer
    return sentence


def more_such(listed: list[Explained], first: Explained) -> str:
    """Returns how many other failures are like the first, `49 more cases like this: 18,726 failures.`; empty without any."""
    if class_of(first.row) != FAILED:
        return ""
    alike = [entry.row["failed"] or 0 for entry in listed if entry.code == first.code and entry.row["failed"]]
    return (
        f"{plural(len(alike) - 1, 'more case')} like this: {plural(sum(alike), 'failure')}." if len(alike) > 1 else ""
    )


def busy_link(trace: Trace, listed: list[Explained]) -> Explained | None:
    """Returns the note about a link or shaper that is busy for half of the time of all flows, or of the capture; None without
    one."""
    turns = trace.transfers.turns
    limit = next((entry for entry in listed if entry.cause is not None and entry.cause["code"] == LIMIT), None)
    if limit is None or limit.cause is None:
        return None
    flows = {row["flow"] for row in trace.cause_flows if row["cause"] == limit.cause["cause"]}
    busy_ns = math.fsum(turns.account(flow)[part] for flow in flows for part in BUSY_PARTS)
    streams = flows - turns.accounts.keys()  # of UDP, which have no account
    return limit if streams or busy_ns >= BUSY_LEAST * min(turns.life_ns, turns.capture_ns) else None


def matters(trace: Trace, entry: Explained) -> bool:
    """Returns whether an entry is above a note, and no finding by itself that is about a hundredth of the capture at most: of its
    time, or, of a fault of the capture, of its packets. A jump of the capture's clock seems a wait: what is not proven and took
    less time is not the answer beside it.
    """
    row = entry.row
    if class_of(row) == NOTED or row["failed"]:
        return class_of(row) != NOTED
    jumped_ns = max((jump.ns for jump in trace.transfers.clock_jumps), default=0)
    if row["waited_ns"] and row["waited_ns"] < jumped_ns and (entry.cause is None or row["certainty"] != "proven"):
        return False
    if entry.cause is not None:
        return True
    if row["place"] == "capture":
        return (entry.group.sum_of("packets") or math.inf) >= MATTERS_LEAST * trace.totals["packets"]
    return not row["waited_ns"] or row["waited_ns"] >= MATTERS_LEAST * trace.transfers.turns.capture_ns


def is_caveat(entry: Explained) -> bool:
    """Returns whether a fault of the capture weakens what is said."""
    return entry.row["place"] == "capture" and class_of(entry.row) in (BLIND, BLIND + 3)


def answer_of(trace: Trace, entry: Explained, caveat: str | None) -> Answer:
    """Returns the answer that an entry gives."""
    row, cause, numbers = entry.row, entry.cause, [finding["finding"] for finding in entry.group.rows]
    if cause is None:
        evidence = evidence_of(trace)
        frames, decide = [frame_of(frame) for number in numbers for frame in evidence[number - 1].frames], []
    else:
        frames = [frame_of(frame) for frame in trace.cause_frames if frame["cause"] == cause["cause"]]
        rivals = (rival for rival in trace.cause_rivals if rival["cause"] == cause["cause"])
        decide = [rival["fact"] for rival in rivals if not rival["excluded"]]
    return Answer(
        entry.sentence,
        caveat,
        cause and cause["code"],
        cause and cause["cause"],
        numbers,
        row["certainty"],
        row["place"] if cause else None,
        {name: row.get(name) for name in NO_COST},
        entry.advice,
        frames[:FRAMES_SHOWN],
        decide,
    )


def frame_of(row: Any) -> AnswerFrame:
    """Returns capture, frame and role of a row."""
    return {"capture": row["capture"], "frame": row["frame"], "role": row["role"]}
