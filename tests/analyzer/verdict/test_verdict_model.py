# SPDX-License-Identifier: Apache-2.0
"""Verdicts against the log of a model that sends through random loss, reordering and duplication."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

import wiretale
from transfer_model import SIZE, Fate, Transfer, truth_of

fates = st.builds(
    Fate,
    lost=st.sampled_from(["", "", "", "upstream", "downstream"]),
    late=st.sampled_from([0, 0, 0, 0, 300, 900, 30_000]),
    copied=st.sampled_from([False, False, False, False, True]),
)
troubled = st.dictionaries(st.tuples(st.integers(0, 29), st.integers(0, 2)), fates, max_size=12)


def judge(transfer: Transfer) -> wiretale.Trace:
    """Analyzes the capture."""
    with tempfile.TemporaryDirectory() as folder:
        return wiretale.analyze(transfer.talk().write(Path(folder)))


@settings(max_examples=75)
@example({(0, 0): Fate(copied=True), (1, 0): Fate(late=900), (1, 1): Fate(late=900)}, 100, 14)
@example({(0, 0): Fate(late=900), (0, 1): Fate(lost="downstream")}, 100, 5)
@given(troubled, st.sampled_from([100, 4000, 9900]), st.integers(5, 30))
def test_verdicts_equal_the_log(troubled: dict[tuple[int, int], Fate], near: int, segments: int) -> None:
    plain = Fate()
    transfer = Transfer(segments, lambda s, a: troubled.get((s, a), plain), near, 10_000 - near).run()
    truth, trace = truth_of(transfer), judge(transfer)
    out = trace.directions.rows()[0]
    assert len(trace.flows) == 1
    assert out["unique_bytes"] == len({sent.segment for sent in transfer.stored}) * SIZE
    parts = ("unique_bytes", "retransmitted_bytes", "duplicate_bytes", "probe_bytes")
    assert out["payload_bytes"] == sum(out[part] for part in parts)
    assert out["unseen_bytes"] == 0 and out["ambiguous"] == 0
    if truth.hidden:
        return  # they arrived in order, so the late one is unknown
    copies = out["mirror_duplicates"] + out["network_duplicates"] + out["unknown_duplicates"]
    assert (out["retransmissions"], out["out_of_order"], copies) == (truth.again, truth.late, truth.copies)
    assert out["lost_upstream"] <= truth.upstream
    needless = {row["frame"] for row in trace.events.rows() if row["spurious"]}
    assert len(needless) == out["spurious_retransmissions"]
    assert bool(needless) <= bool(truth.needless)


@settings(max_examples=40)
@given(st.sets(st.integers(0, 29)), st.sampled_from([100, 4000, 9900]), st.integers(5, 30))
def test_packets_dropped_by_the_capture_are_unseen_and_no_loss(dropped: set[int], near: int, segments: int) -> None:
    transfer = Transfer(segments, lambda s, a: Fate(), near, 10_000 - near).run()
    transfer.stored = [sent for sent in transfer.stored if sent.segment not in dropped]
    out = judge(transfer).directions.rows()[0]
    seen = len(transfer.stored)
    if not seen:
        return  # nothing of this direction's data: nothing can be said of it
    assert (out["unique_bytes"], out["unseen_bytes"], out["gap_bytes"]) == (seen * SIZE, (segments - seen) * SIZE, 0)
    verdicts = ("retransmissions", "lost_upstream", "lost_downstream", "out_of_order", "ambiguous", "capture_reordered")
    assert [out[name] for name in verdicts] == [0] * 6


@settings(max_examples=40)
@given(troubled, st.sets(st.tuples(st.integers(0, 29), st.integers(0, 2)), max_size=8), st.integers(5, 30))
def test_every_byte_is_seen_unseen_or_a_gap(
    troubled: dict[tuple[int, int], Fate], dropped: set[tuple[int, int]], segments: int
) -> None:
    """Whatever the network and the capture do."""
    plain = Fate()
    transfer = Transfer(segments, lambda s, a: troubled.get((s, a), plain), 4000, 6000).run()
    transfer.stored = [sent for sent in transfer.stored if (sent.segment, sent.attempt) not in dropped]
    if not transfer.stored:
        return
    out = judge(transfer).directions.rows()[0]
    parts = ("unique_bytes", "unseen_bytes", "gap_bytes", "unknown_bytes")
    assert sum(out[part] for part in parts) == segments * SIZE
    assert out["payload_bytes"] == sum(
        out[part] for part in ("unique_bytes", "retransmitted_bytes", "duplicate_bytes", "probe_bytes")
    )
