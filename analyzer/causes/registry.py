# SPDX-License-Identifier: Apache-2.0
"""All causes in the order of their tests, the findings that each explains, and their rank.

The lowest layer that failed is tested first, because each layer hides the next. A finding belongs to the first cause that
explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer.causes import broken, captured, ended, ends, path, services, unanswered
from wiretale.analyzer.causes.case import Case
from wiretale.analyzer.causes.cause import Cause, Match, Severity
from wiretale.analyzer.causes.rank import rank_of
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.cost import NOTE_SHARE, Span, union_ns
from wiretale.analyzer.findings.evidence import MEMBERS_READ, Cited, Side

if TYPE_CHECKING:
    from wiretale.analyzer.findings.model import Finding
    from wiretale.analyzer.findings.transfers import Transfers

#: in the order of tests, as are the modules of each
FAMILIES = (unanswered, broken, services, ended, ends, path, captured)
CHAPTERS: dict[str, tuple[Cause, ...]] = {
    family.CHAPTER: tuple(
        rule for module in family.MODULES for rule in vars(module).values() if isinstance(rule, Cause)
    )
    for family in FAMILIES
}
CAUSES: dict[str, Cause] = {rule.code: rule for rules in CHAPTERS.values() for rule in rules}


def cause_of(code: str) -> Cause:
    """Returns the cause of a code. Raises UsageError if there is none."""
    if code not in CAUSES:
        near = "".join(get_close_matches(code, CAUSES, 1))
        hint = f" (did you mean {near}?)" if near else ""
        raise UsageError(f"there is no cause {code!r}{hint}; `wiretale analyze --list` lists all")
    return CAUSES[code]


def example_of(code: str) -> dict[str, Any] | None:
    """Returns the example of a cause (.ci/make_docs.py makes them); None without one."""
    import json

    by_code: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
    return by_code.get(code)


OWN_PACE = ("app-limited", "client-pause")
OWN_PACE_SHARE = 0.1
FELT_NS, FELT_SHARE = 1_000_000_000, 0.1  # of a wait
CLOCK = "clock-step"
SILENT, WAITED_FOR_NAME = ("dns-silent", "filtered", "host-down"), ("late-greeting", "name-lookup")


class Explanation(NamedTuple):
    """A row of the causes table without its number, and its rows of the other tables of causes."""

    code: str
    severity: Severity
    certainty: str
    place: str
    flow: int | None
    sentence: str
    proof: str | None
    advice: str
    failed: int | None
    attempts: int | None
    waited_ns: int | None
    saving_ns: int | None
    bytes: int | None
    members: int | None
    share: float | None
    unjudged: float | None
    first_ns: int | None
    last_ns: int | None
    packets: int | None
    filter: str | None
    frames: tuple[Cited, ...] = ()
    flows: tuple[Side, ...] = ()
    findings: tuple[int, ...] = ()
    rivals: tuple[tuple[str, bool, str], ...] = ()

    def rows(self, number: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yields table and row of the cause, its packets, flows, findings and rivals, as the core takes them."""
        yield "causes", (number, *self[: self._fields.index("frames")])
        for packet in self.frames:
            yield "cause_frames", (number, packet.capture, packet.frame, packet.role)
        for side in self.flows:
            yield "cause_flows", (number, *side)
        for finding in self.findings:
            yield "cause_findings", (number, finding)
        for rival in self.rivals:
            yield "cause_rivals", (number, *rival)


def life_of(case: Case, sides: Sequence[Side]) -> float:
    """Returns the time in which any of these flows lived, or of the capture without flows, ns; 0 without times."""
    rows = [case.flow(flow) for flow in {flow for flow, _ in sides}] if sides else case.trace.interfaces.rows()
    pairs = ((row["first_ns"], row["last_ns"]) for row in rows)
    return union_ns(Span(first, last) for first, last in pairs if first is not None and last is not None) or 0.0


def share_of(case: Case, match: Match, sides: Sequence[Side]) -> float | None:
    """Returns the share of the time of its flows that somebody waited, or else of their bytes; None if it is unknown."""
    life_ns = life_of(case, sides)
    if match.waited_ns is not None and life_ns:
        return round(min(match.waited_ns / life_ns, 1.0), 6)
    carried = sum(case.flow(flow)["wire_bytes"] for flow, _ in sides)
    return round(min(match.bytes / carried, 1.0), 6) if match.bytes is not None and carried else None


def is_felt(case: Case, match: Match, sides: Sequence[Side]) -> bool:
    """Returns whether a person notices a wait in flows that are idle most of the time: 1 s or more, and a tenth of all
    waits there."""
    turns = case.transfers.turns
    accounts = (
        [turns.account(flow) for flow in {flow for flow, _ in sides}] if (match.waited_ns or 0) >= FELT_NS else []
    )
    return bool(accounts) and (match.waited_ns or 0) >= FELT_SHARE * sum(sum(account.values()) for account in accounts)


def severity_of(case: Case, match: Match, sides: Sequence[Side], share: float | None) -> Severity:
    """Returns the severity: a cost below 1% and no failure is a note, unless it is felt."""
    if match.severity:
        return match.severity
    if match.failed:
        return "error"
    return "info" if share is not None and share < NOTE_SHARE and not is_felt(case, match, sides) else "warning"


def explanation(case: Case, rule: Cause, match: Match) -> Explanation:
    """Returns the cause of a match, and marks the findings that it explains."""
    evidence, sides = match.evidence(), match.sides
    named = {each.number for each in match.findings}
    effects = {each.number for each in case.effects(rule.explains, (flow for flow, _ in sides))}
    case.explain(named | effects)
    case.note_flows(rule.code, (flow for flow, _ in sides))
    flows, (sentence, advice), read = {flow for flow, _ in sides}, rule.texts(match), sides[:MEMBERS_READ]
    share = share_of(case, match, read)
    return Explanation(
        rule.code,
        severity_of(case, match, read, share),
        match.certainty,
        match.place,
        next(iter(flows)) if len(flows) == 1 else None,
        sentence,
        match.proof,
        advice,
        match.failed,
        match.attempts,
        None if match.waited_ns is None else round(match.waited_ns),
        None if match.saving_ns is None else round(match.saving_ns),
        match.bytes,
        match.members or len(flows) or None,
        share,
        match.unjudged,
        evidence.first_ns,
        evidence.last_ns,
        evidence.packets,
        match.filter,
        evidence.frames,
        evidence.flows,
        tuple(sorted(named | effects)),
        (
            *((rival, True, fact) for rival, fact in match.excluded.items()),
            *((rival, False, fact) for rival, fact in match.undecided.items()),
        ),
    )


def explain(transfers: Transfers, findings: Sequence[Finding]) -> list[Explanation]:
    """Returns the causes of findings, the best explanation first."""
    case = Case(transfers, findings)
    causes = [explanation(case, rule, match) for rule in CAUSES.values() for match in rule.matches(case)]
    case.release()
    is_minor = (is_at_own_pace, is_inside)
    causes = [row._replace(severity="info") if any(test(row, causes) for test in is_minor) else row for row in causes]
    return sorted(causes, key=lambda row: rank_of(row._asdict()))


def is_inside(row: Explanation, causes: Sequence[Explanation]) -> bool:
    """Returns whether all that stayed silent is what a server asked while its own clients waited."""
    flows = {flow for flow, _ in row.flows}
    return row.code in SILENT and any(
        other.code in WAITED_FOR_NAME and flows and flows <= {flow for flow, _ in other.flows} for other in causes
    )


def is_at_own_pace(row: Explanation, causes: Sequence[Explanation]) -> bool:
    """Returns whether a cause says only that an end took its time, while somebody waited for something else on other flows, or
    the capture's clock was set, which seems a pause: an end that has nothing to send is, as a rule, as fast as it means to be."""
    if row.code not in OWN_PACE:
        return False
    is_clock_set = any(other.code == CLOCK and other.severity != "info" for other in causes)
    return is_clock_set or any(is_waited_for(other, row) for other in causes)


def is_waited_for(other: Explanation, row: Explanation) -> bool:
    """Returns whether another cause is above a note, and costs about as much on other flows."""
    flows = {flow for flow, _ in row.flows}
    return bool(
        other.severity != "info"
        and other.code not in OWN_PACE
        and other.place != "capture"
        and other.flows
        and flows.isdisjoint(flow for flow, _ in other.flows)
        and (other.failed or (other.waited_ns or 0) >= OWN_PACE_SHARE * (row.waited_ns or 0))
    )
