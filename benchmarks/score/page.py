# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md: the scores, how they were made, and where wiretale falls short."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from score.assess import Assessment
from score.differences import OUTCOMES
from score.scenarios import FIRST, SECOND, Scenario
from score.tally import DATAGRAMS_LOST, KINDS, PLACES, TOOLS, Score

GOAL = 0.99
TEXT = Path(__file__).with_name("page.md")


def shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def table(heads: tuple[str, ...], rows: list[tuple[object, ...]], left: int = 1) -> str:
    """Markdown; the first columns to the left."""
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    lines = [heads, rule, *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def kind_names() -> list[str]:
    names = [kind.name for kind in KINDS]
    names.insert(names.index("datagrams overtaken"), DATAGRAMS_LOST)
    return names


def score_cells(score: Score | None, with_parts: bool) -> list[str]:
    if score is None:
        return ["none"] if not with_parts else ["none", "", ""]
    return [shown(score.precision), shown(score.recall), shown(score.f1)] if with_parts else [shown(score.f1)]


def score_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    """A row for each kind and point where there was something to tell."""
    for name in kind_names():
        for point in PLACES:
            scores = [found.tally.scores.get((name, point, tool)) for tool in TOOLS]
            own = scores[0]
            if own is None or not (own.there or own.claimed):
                continue
            yield (
                name,
                point,
                own.there,
                *score_cells(own, True),
                *score_cells(scores[1], False),
                *score_cells(scores[2], False),
            )


def false_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    """What was claimed and not so."""
    for name in kind_names():
        wrong = [
            sum(
                score.claimed - score.right
                for (kind, _, tool), score in found.tally.scores.items()
                if kind == name and tool == which
            )
            for which in TOOLS
        ]
        if any(wrong):
            yield (name, *wrong)


def untold_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    """What cannot be told, and what wiretale said of it."""
    for name in kind_names():
        for point in PLACES:
            said = found.tally.untold.get((name, point))
            if said:
                yield (name, point, said.total(), said["unknown"], said["right"], said["wrong"])


def shortened(settings: str) -> str:
    """Long lists by their first two places."""
    return re.sub(
        r"=([^\s,]+,[^\s,]+),(\S+,\S+,\S+)", lambda found: f"={found[1]},… ({found[0].count(',') + 1} times)", settings
    )


def link_cell(scenario: Scenario, base: tuple[str, str]) -> str:
    parts = []
    bases = (scenario.base_first, scenario.base_second)
    for number, (own, back) in enumerate(
        ((scenario.first, scenario.first_back), (scenario.second, scenario.second_back))
    ):
        said = [bases[number]] if bases[number] != base[number] else []
        said += [own] if own else []
        said += [f"back: {back}"] if back else []
        if said:
            parts.append(f"{'first' if not number else 'second'} `{shortened(' '.join(said))}`")
    return "; ".join(parts)


def scenario_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    for fact in found.facts:
        scenario = fact.scenario
        control = "UDP" if scenario.talk.udp_bps else scenario.control
        settings = ", ".join(f"{name.rsplit('_', 1)[1]} off" for name in scenario.sysctl)
        variants = [name for name, has in (("missing", scenario.capture_loss), ("mirrored", scenario.mirror)) if has]
        yield (
            *(f"`{scenario.name}`", f"{scenario.what}. {link_cell(scenario, (FIRST, SECOND))}"),
            *(f"{control}{', ' + settings if settings else ''}", ", ".join(["whole", *variants])),
            *(f"{fact.packets:,}", fact.lost["link 1"], fact.lost["link 2"], fact.sent_again),
        )


def kernel_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    """The kernel's counters beside what its trace told of each packet."""
    counted = Counter[str]()
    traced = Counter[str]()
    for fact in found.facts:
        if fact.causes_known and not fact.scenario.talk.udp_bps:
            counted.update(fact.counters)
            traced.update(fact.causes)
    yield "sent again", counted["RetransSegs"], traced.total(), "RetransSegs"
    yield "fast", counted["TCPFastRetrans"], traced["fast"], "TCPFastRetrans"
    yield (
        "timeout",
        counted["TCPTimeouts"] + counted["TCPSlowStartRetrans"],
        traced["timeout"],
        "TCPTimeouts + TCPSlowStartRetrans",
    )
    yield "probe", counted["TCPLossProbes"], traced["probe"], "TCPLossProbes (with probes of new data)"


def difference_rows(found: Assessment) -> Iterator[tuple[object, ...]]:
    """By reason and verdicts, most first."""
    by_case: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for (reason, ours, theirs, settled), count in found.settled.counts.items():
        by_case[reason, ours, theirs][settled] += count
    for (reason, ours, theirs), outcomes in sorted(by_case.items(), key=lambda item: (-item[1].total(), item[0])):
        yield (
            f"`{reason}`",
            ours.replace("_", " "),
            theirs.replace("_", " "),
            *(outcomes[name] or "" for name in OUTCOMES),
        )


def outcome_total(found: Assessment) -> Counter[str]:
    total = Counter[str]()
    for (*_, settled), count in found.settled.counts.items():
        total[settled] += count
    return total


def shortfalls(found: Assessment) -> Iterator[str]:
    """Each kind and place below the goal, or behind a peer."""
    for name in kind_names():
        for point in PLACES:
            own, *others = (found.tally.scores.get((name, point, tool)) for tool in TOOLS)
            if own and own.f1 is not None:
                yield from shortfall(found, name, point, own, others)


def shortfall(found: Assessment, name: str, point: str, own: Score, others: Sequence[Score | None]) -> Iterator[str]:
    """One of them: by how much, and in which scenarios."""
    peers = zip(TOOLS[1:], others, strict=True)
    best, peer = max(((other.f1 or 0.0, tool) for tool, other in peers if other), default=(0.0, ""))
    own_f1 = own.f1 or 0.0
    if own_f1 >= max(GOAL, best):
        return
    where = Counter(
        f"`{scenario}`{' (' + variant + ')' if variant != 'whole' else ''}"
        for scenario, at, variant, miss in found.misses
        if at == point and miss.kind == name
    )
    behind = f", behind {peer}'s {best:.3f}" if best > own_f1 else ""
    cases = ", ".join(f"{case} {count}" for case, count in where.most_common(6))
    yield (
        f"- **{name}, {point}**: {own_f1:.3f}{behind} ({own.claimed - own.right} wrong, "
        f"{own.there - own.found} of {own.there} not found): {cases}"
    )


def write_page(found: Assessment, wireshark: str, path: Path) -> None:
    """The whole page; its unchanging text is page.md."""
    total = outcome_total(found)
    parts = {
        "WIRESHARK": wireshark,
        "GOAL": GOAL,
        "FIRST": FIRST,
        "SECOND": SECOND,
        "PACKETS": f"{sum(fact.packets for fact in found.facts):,}",
        "RUNS": len(found.facts),
        "SCORES": table(
            ("kind", "capture", "cases", "precision", "recall", "**F1**", "Wireshark F1", "tcptrace F1"),
            list(score_rows(found)),
            2,
        ),
        "FALSE": table(("kind", *TOOLS), list(false_rows(found))),
        "UNTOLD": table(("kind", "capture", "cases", "unknown", "right", "wrong"), list(untold_rows(found)), 2),
        "SCENARIOS": table(
            ("scenario", "what", "TCP", "captures", "packets", "lost on 1", "lost on 2", "sent again"),
            list(scenario_rows(found)),
            4,
        ),
        "KERNEL": table(("sent again", "counted", "traced", "counters"), list(kernel_rows(found))),
        "DIFFERENCES": table(("reason", "wiretale", "Wireshark", *OUTCOMES), list(difference_rows(found)), 3),
        "SETTLED": ", ".join(f"{name} {total[name]:,}" for name in OUTCOMES),
        "SHORT": "\n".join(shortfalls(found)) or "Nowhere in this run.",
    }
    text = TEXT.read_text("utf-8")
    for name, value in parts.items():
        text = text.replace(f"@{name}@", str(value))
    path.write_text(text, "utf-8")
