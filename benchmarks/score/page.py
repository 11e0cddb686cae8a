# SPDX-License-Identifier: Apache-2.0
"""Writes docs/measured/accuracy.md: scores, the method, and the kinds for which wiretale misses the goal.

page.md must contain each name of write_page() between @; a table is omitted if its name is missing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from score.assess import Assessment, Fact
from score.conditions import CONDITIONS
from score.differences import OUTCOMES
from score.intervals import FEW_CASES, interval, scores_by_run, summed, worst_run
from score.limits.page import limits_section
from score.offload_counts import COLUMNS
from score.reasons import Circumstance, reasons
from score.runs import second_stack
from score.runs.scenarios import COMMITTED, DRAWN, FIRST, NS3, OFFLOADS, SECOND, WITHOUT_DSACK, Scenario
from score.tally import DATAGRAMS_LOST, KINDS, PLACES, TOOLS, Miss, Score
from score.tcprs import compare_labels
from shared.markdown import table

GOAL = 0.99
TEXT = Path(__file__).with_name("text") / "page.md"
NS3_TEXT, OFFLOADS_TEXT = TEXT.with_name("second_stack.md"), TEXT.with_name("offloads.md")
SCENARIO_HEADS = "scenario | description | TCP | captures | packets | lost on 1 | lost on 2 | retransmitted"
Row = tuple[object, ...]


def score_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def kind_names() -> list[str]:
    names = [kind.name for kind in KINDS]
    names.insert(names.index("datagrams reordered"), DATAGRAMS_LOST)
    return names


def score_rows(assessment: Assessment) -> Iterator[Row]:
    """Yields a row for each kind and capture point that has cases or claims."""
    for name in kind_names():
        for point in PLACES:
            score, *peers = (assessment.tally.scores.get((name, point, tool)) for tool in TOOLS)
            if score and (score.there or score.claimed):
                cells = (score_text(score.precision), score_text(score.recall), score_text(score.f1))
                yield name, point, score.there, *cells, *(score_text(peer.f1) if peer else "none" for peer in peers)


def group_rows(assessment: Assessment, group: str) -> Iterator[Row]:
    """Yields the scores of wiretale in one group of runs, with their interval over the runs and the worst run."""
    runs = assessment.groups.get(group, {})
    for name in kind_names():
        for point in PLACES:
            by_run = scores_by_run(runs, name, point)
            score = summed(list(by_run.values()))
            if not by_run or score.f1 is None:
                continue
            spread, worst = interval(by_run), worst_run(by_run)
            yield (
                f"{name}, {group}" if group in (*CONDITIONS, *NS3, OFFLOADS, WITHOUT_DSACK) else name,
                point,
                f"{score.there}{'' if score.there >= FEW_CASES else ' (few)'}",
                *(score_text(value) for value in (score.precision, score.recall, score.f1)),
                f"{spread[0]:.3f} to {spread[1]:.3f}" if spread else "–",
                f"{worst[1]:.3f} `{worst[0]}`" if worst else "–",
            )


def group_table(assessment: Assessment, *groups: str) -> str:
    heads = "kind | capture | cases | precision | recall | **F1** | 95% of resampled runs | worst run"
    return table(heads, (row for group in groups for row in group_rows(assessment, group)), 2)


def false_rows(assessment: Assessment) -> Iterator[Row]:
    """Yields the number of false claims of each tool, by kind."""
    wrong: dict[str, Counter[str]] = defaultdict(Counter)
    for (kind, _, tool), score in assessment.tally.scores.items():
        wrong[kind][tool] += score.claimed - score.right
    for name in kind_names():
        if wrong[name].total():
            yield name, *(wrong[name][tool] for tool in TOOLS)


def undecidable_rows(assessment: Assessment) -> Iterator[Row]:
    """Yields the answers of wiretale to questions that the capture cannot decide."""
    for name in kind_names():
        for point in PLACES:
            if answers := assessment.tally.undecidable.get((name, point)):
                yield name, point, answers.total(), answers["unknown"], answers["right"], answers["wrong"]


def shortened(settings: str) -> str:
    """Returns the settings with at most two items of a long list."""
    return re.sub(
        r"=([^\s,]+,[^\s,]+),(\S+,\S+,\S+)", lambda match: f"={match[1]},… ({match[0].count(',') + 1} times)", settings
    )


def link_cell(scenario: Scenario) -> str:
    """Returns the settings of both links, as far as they differ from the usual ones."""
    parts = []
    bases = ((scenario.base_first, FIRST), (scenario.base_second, SECOND))
    for number, (name, (base, usual)) in enumerate(zip(("first", "second"), bases, strict=True)):
        settings = [base] if base != usual else []
        settings += [spec for spec in (scenario.own_spec(number, False),) if spec]
        settings += [f"back: {spec}" for spec in (scenario.own_spec(number, True),) if spec]
        if settings:
            parts.append(f"{name} `{shortened(' '.join(settings))}`")
    return "; ".join(parts)


def scenario_rows(facts: list[Fact]) -> Iterator[Row]:
    for fact in facts:
        scenario = fact.scenario
        control = "UDP" if scenario.talk.udp_bps else scenario.control
        settings = [f"{name.partition('tcp_')[2]} off" for name in scenario.sysctl if "tcp_" in name]
        variants = [name for name, has in (("missing", scenario.capture_loss), ("mirrored", scenario.mirror)) if has]
        yield (
            f"`{scenario.name}`",
            f"{scenario.description}. {link_cell(scenario)}",
            ", ".join([control, *settings]),
            ", ".join(["whole", *variants]),
            f"{fact.packets:,}",
            fact.lost["link 1"],
            fact.lost["link 2"],
            fact.retransmitted,
        )


def kernel_rows(facts: list[Fact]) -> Iterator[Row]:
    """Yields the counters of the kernel beside the causes in its trace."""
    counted = Counter[str]()
    traced = Counter[str]()
    for fact in facts:
        if fact.causes_known and not fact.scenario.talk.udp_bps:
            counted.update(fact.counters)
            traced.update(fact.causes)
    timeouts = counted["TCPTimeouts"] + counted["TCPSlowStartRetrans"]
    yield "all", counted["RetransSegs"], traced.total(), "RetransSegs"
    yield "fast", counted["TCPFastRetrans"], traced["fast"], "TCPFastRetrans"
    yield "timeout", timeouts, traced["timeout"], "TCPTimeouts + TCPSlowStartRetrans"
    yield "probe", counted["TCPLossProbes"], traced["probe"], "TCPLossProbes (includes probes of new data)"


def difference_rows(assessment: Assessment) -> Iterator[Row]:
    """Yields the outcomes of each reason and pair of verdicts, the most frequent first."""
    by_case: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for (*case, settled), count in assessment.settled.counts.items():
        by_case[tuple(case)][settled] += count
    for (reason, wiretale_verdict, wireshark_verdict), outcomes in sorted(
        by_case.items(), key=lambda item: (-item[1].total(), item[0])
    ):
        verdicts = (wiretale_verdict.replace("_", " "), wireshark_verdict.replace("_", " "))
        yield f"`{reason}`", *verdicts, *(outcomes[name] or "" for name in OUTCOMES)


def outcome_totals(assessment: Assessment) -> str:
    total = Counter[str]()
    for (*_, settled), count in assessment.settled.counts.items():
        total[settled] += count
    return ", ".join(f"{name} {total[name]:,}" for name in OUTCOMES)


def shortfalls(assessment: Assessment) -> Iterator[str]:
    """Yields a line for each kind and capture point with an F1 below the goal or below that of a peer."""
    for name in kind_names():
        for point in PLACES:
            score, *peers = (assessment.tally.scores.get((name, point, tool)) for tool in TOOLS)
            if score and score.f1 is not None:
                yield from shortfall(assessment, name, point, score, peers)


def shortfall(
    assessment: Assessment, name: str, point: str, score: Score, peer_scores: Sequence[Score | None]
) -> Iterator[str]:
    peers = zip(TOOLS[1:], peer_scores, strict=True)
    best, peer = max(((other.f1 or 0.0, tool) for tool, other in peers if other), default=(0.0, ""))
    f1 = score.f1 or 0.0
    if f1 >= max(GOAL, best):
        return
    where = Counter(
        f"`{scenario}`{' (' + variant + ')' if variant != 'whole' else ''}"
        for scenario, at, variant, miss in assessment.misses
        if at == point and miss.kind == name and not scenario.startswith(("drawn-", "ns3-"))
    )
    behind = f", behind {peer}'s {best:.3f}" if best > f1 else ""
    cases = ", ".join(f"{case} {count}" for case, count in where.most_common(6))
    yield (
        f"- **{name}, {point}**: {f1:.3f}{behind} ({score.claimed - score.right} wrong, "
        f"{score.there - score.detected} of {score.there} not found): {cases}"
    )


def below_goal(assessment: Assessment, group: str) -> Iterator[str]:
    """Yields a line for each kind and capture point of a group whose F1 or precision misses the goal, with the reasons."""
    for kind, point, cases, precision, recall, f1, *_ in group_rows(assessment, group):
        if float(str(f1)) < GOAL or float(str(precision).replace("–", "1")) < GOAL:
            name = str(kind).removesuffix(f", {group}")
            runs = assessment.groups[group]
            place = f"{point}, {group}" if group in CONDITIONS else str(point)
            under = sum((assessment.cases[run, place] for run in runs), Counter[tuple[str, tuple[Circumstance, ...]]]())
            why = reasons(name, misses_of(assessment, runs, name, place), under)
            line = f"- **{kind}, {point}**: {f1} (precision {precision}, recall {recall}, {cases} cases)"
            yield f"{line}. {why}" if why else line


def below_goal_text(assessment: Assessment, *groups: str) -> str:
    return "\n".join(line for group in groups for line in below_goal(assessment, group)) or "None in this run."


def misses_of(assessment: Assessment, runs: Collection[str], kind: str, point: str) -> list[tuple[Scenario, Miss]]:
    scenarios = {fact.scenario.name: fact.scenario for fact in assessment.facts if fact.scenario.name in runs}
    return [
        (scenarios[name], miss)
        for name, at, _, miss in assessment.misses
        if name in scenarios and at == point and miss.kind == kind
    ]


def tcprs_parts(labelled: Path) -> dict[str, object]:
    """Returns the comparison with the labels in a folder; without the folder, a sentence that says so."""
    if not labelled.is_dir():
        return {"TCPRS": f"Not compared in this run: {labelled} is missing.", "TCPRS_COUNT": "100"}
    opinion = compare_labels(labelled)
    heads = "program | labelled | of these found | others | RTOs"
    return {"TCPRS": table(heads, opinion.rows()), "TCPRS_COUNT": opinion.captures}


def ns3_section(assessment: Assessment) -> str:
    """Returns the section on the second stack, empty if ns-3 is not installed."""
    facts = [fact for fact in assessment.facts if fact.scenario.group in NS3]
    if not facts:
        return ""
    parts = {
        "VERSION": second_stack.version(),
        "GOAL": GOAL,
        "RUNS": len(facts),
        "PACKETS": f"{sum(fact.packets for fact in facts):,}",
        "SCORES": group_table(assessment, *NS3),
        "SHORT": below_goal_text(assessment, *NS3),
        "SCENARIOS": table(SCENARIO_HEADS, scenario_rows(facts), 4),
    }
    return filled(NS3_TEXT, parts)


def offloads_section(assessment: Assessment) -> str:
    """Returns the section on captures with offloads, empty if none of them was run."""
    if not assessment.offloads:
        return ""
    heads = f"scenario | capture | packets | segments | claimed | {' | claimed | '.join(COLUMNS)} | claimed"
    counts = (
        (
            f"`{offload.scenario}`",
            offload.point,
            offload.packets,
            *offload.segments,
            *chain.from_iterable(offload.by_kind.values()),
        )
        for offload in assessment.offloads
    )
    parts = {
        "GOAL": GOAL,
        "SCORES": group_table(assessment, OFFLOADS),
        "SHORT": below_goal_text(assessment, OFFLOADS),
        "COUNTS": table(heads, counts, 2),
    }
    return filled(OFFLOADS_TEXT, parts)


def filled(path: Path, parts: Mapping[str, object]) -> str:
    """Returns a text with the names between @ replaced."""
    text = path.read_text("utf-8")
    for name, value in parts.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def write_page(assessment: Assessment, wireshark: str, draw: int, labelled: Path, path: Path) -> None:
    """Writes the page: page.md with the names between @ replaced."""
    tools, outcomes = " | ".join(TOOLS), " | ".join(OUTCOMES)
    scores = "kind | capture | cases | precision | recall | **F1** | Wireshark F1 | tcptrace F1"
    facts = [fact for fact in assessment.facts if fact.scenario.group not in NS3]
    parts = {
        "WIRESHARK": wireshark,
        "GOAL": GOAL,
        "FIRST": FIRST,
        "SECOND": SECOND,
        "PACKETS": f"{sum(fact.packets for fact in facts):,}",
        "RUNS": len(facts),
        "SCORES": table(scores, score_rows(assessment), 2),
        "FALSE": table(f"kind | {tools}", false_rows(assessment)),
        "UNDECIDABLE": table("kind | capture | cases | unknown | right | wrong", undecidable_rows(assessment), 2),
        "SCENARIOS": table(SCENARIO_HEADS, scenario_rows(facts), 4),
        "KERNEL": table("retransmissions | counted | traced | counters", kernel_rows(facts)),
        "DIFFERENCES": table(f"reason | wiretale | Wireshark | {outcomes}", difference_rows(assessment), 3),
        "SETTLED": outcome_totals(assessment),
        "SHORT": "\n".join(shortfalls(assessment)) or "None in this run.",
        "DRAW": draw,
        "DRAWN": group_table(assessment, DRAWN),
        "SPREAD": group_table(assessment, COMMITTED),
        "CONDITIONS": group_table(assessment, *CONDITIONS),
        "CONDITIONS_SHORT": below_goal_text(assessment, *CONDITIONS),
        **tcprs_parts(labelled),
        "NS3": ns3_section(assessment),
        "OFFLOADS": offloads_section(assessment),
        "LIMITS": limits_section(assessment.limits),
        "DRAWN_SHORT": below_goal_text(assessment, DRAWN),
        "DSACKLESS": group_table(assessment, WITHOUT_DSACK),
        "DSACKLESS_SHORT": below_goal_text(assessment, WITHOUT_DSACK),
    }
    path.write_text(filled(TEXT, parts), "utf-8")
