# SPDX-License-Identifier: Apache-2.0
"""Receivers that let too little data be in flight: a closed window, a small one, or one without scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.causes.cause import Certainty, Match, Matches, Place, cause
from wiretale.analyzer.causes.ends.talk import middle, parts_str
from wiretale.analyzer.findings.model import duration_of, endpoint_str
from wiretale.analyzer.findings.shared.sharing import ethernet_speed
from wiretale.analyzer.findings.throughput_limit import (
    UNSCALED_MAX,
    UNSCALED_SHARE,
    carries,
    not_scaled,
    queue_grows,
    usual_window,
)
from wiretale.analyzer.units import plural, show_bytes, show_duration, show_rate, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.causes.case import Case, Numbered
    from wiretale.analyzer.findings.transfers import Transfer
    from wiretale.analyzer.rows import DirectionRow, FlowRow

CLOSED_SHARE = 0.5  # of the time that a window limited: with more it was closed, else small
SHUT_NS = 5_000_000_000  # a window that stayed shut for so long at the end failed
LOW_LEAST_NS = 200_000_000
FILLED = 0.8  # of the window: a flight at this level is held by it
SHRUNK, GROWN, BINS_LEAST = 0.4, 0.8, 10  # of the largest window; time bins with a window
LONG_NS = 60_000_000_000  # of a connection: servers limit the time of an answer to a minute or more
LATE_SHARE = 0.25  # of the time that a transfer waited for a window that the path would refill sooner
NOPS_OF_DEVICE = 3  # in a row: no end pads with so many
PROBED_LEAST, PROBED_SHARE = 5, 0.8  # openings in answer to probes; of all
LOW_SHARE = 0.1  # of the life of the flow
AT_RECEIVER_NS = 100_000  # a round trip to the receiver: the capture point is at its host, or at the switch before it
DECIDES = "a capture at the other end shows whether its SYNs have the option"


def low_ns(row: DirectionRow) -> int:
    """Returns the time in which a receiver had no room for a segment, ns."""
    return max(row["zero_window_ns"] or 0, row["low_window_ns"] or 0)


def low_flows(case: Case) -> dict[tuple[int, int], list[Numbered]]:
    """Returns the directions of receivers that had no room, with the findings about their windows."""
    sides: dict[tuple[int, int], list[Numbered]] = {}
    for each in case.findings(
        "zero-window", "receive-window-limited", "timeout-stalls", "retransmission-unlocated", "window-full"
    ):
        for flow, direction in each.finding.flows:
            if direction is not None and flow not in case.transfers.legs:
                receiver = direction if each.finding.code == "zero-window" else 1 - direction
                sides.setdefault((flow, receiver), []).append(each)
    return sides


def opened_by_probes(case: Case, flow: int, side: int) -> int:
    """Returns how often a closed window opened, if it did so in answers to probes, and hardly ever by itself; else 0."""
    back = case.direction(flow, side)
    opened, probed = back["window_openings"] or 0, back["probed_openings"] or 0
    return probed if probed >= max(PROBED_LEAST, PROBED_SHARE * opened) else 0


@cause(
    code="no-window-update",
    title="Window updates are missing",
    sentence="{receiver} never says that its window is open again: it was full {times}, and each time "
    "{sender} learned by a probe that there was room. {waited} were spent waiting so.",
    advice="Update the TCP stack of {host}: it should send a window update when its program has read (RFC 9293 section "
    "3.8.6.2.2). A larger receive buffer makes such waits fewer.",
    shows="A window of 0 opened again at least five times, and in 80% or more of these in answer to a probe (at most 1.25 "
    "round trips and 5 ms after it). A receiver that sends updates opens it when its program has read.",
    rivals={
        "zero-window": "the first probe finds room, so that the program had read before",
        "small-window": "the sender waits for a timer, not for a round trip",
    },
    unknown="Whether the receiver sends no updates, or they are lost before the capture point.",
    explains=(
        *("zero-window", "receive-window-limited", "window-full", "timeout-stalls", "suspected-timeout"),
        *("retransmission-unlocated", "recovery-limited", "sender-idle", "path-limited", "slow-start", "delayed-ack"),
    ),
)
def no_window_update(case: Case) -> Matches:
    for (flow, side), findings in low_flows(case).items():
        back, row, times = (
            case.direction(flow, side),
            case.direction(flow, 1 - side),
            opened_by_probes(case, flow, side),
        )
        closed_ns, life_ns = low_ns(back), duration_of(case.flow(flow)) or 0
        if not times or closed_ns < max(LOW_LEAST_NS, LOW_SHARE * life_ns):
            continue
        yield Match(
            certainty="proven",
            place="client" if side == case.flow(flow)["client"] else "server",
            findings=findings,
            flows=[(flow, 0), (flow, 1)],
            waited_ns=closed_ns,
            members=times,
            proof=f"{times:,} of {plural(back['window_openings'] or 0, 'opening')} of the window answer a probe",
            excluded={
                "zero-window": f"a probe found room after {show_duration(closed_ns / times)}, on average",
                "small-window": "the sender sent a probe each time, not data",
            },
            receiver=endpoint_str(back["source"], back["source_port"]),
            sender=row["source"],
            host=back["source"],
            times=plural(times, "time"),
            waited=parts_str(closed_ns, life_ns),
        )


@cause(
    code="zero-window",
    title="The receiver does not read",
    sentence="{receiver} {probably}reads too slowly: {window}{end}.",
    advice="Look at the program that should read on {receiver}, not at the network: `ss -tm` (Recv-Q), a busy CPU, a slow "
    "disk, a printer without paper.",
    shows="The receiver announced a window of 0, or below one full segment and half of its largest, for at least half of the "
    "time in which its window limited the sender. Or the window shrank to 40% of its first size. Or, captured at the receiver "
    "(0.1 ms to it and back), it acknowledged data late while all of its window was full. A failure if it stayed shut for the "
    "last 5 s.",
    rivals={
        "bottleneck": "a capture at the receiver has no queue after it, and the data under way fills the window",
        "tail-loss": "the sender had no leave to send, so that no timer of a loss ran",
        "small-window": "the window shrinks as data comes, and opens later",
        "no-window-update": "the window opens without a probe",
        "both-blocked": "the other end's window is open",
        "peer-gone": "the receiver answers while its window is shut",
    },
    unknown="Why the program does not read.",
    explains=(
        *("zero-window", "receive-window-limited", "window-full", "timeout-stalls", "suspected-timeout"),
        *("retransmission-unlocated", "recovery-limited", "sender-idle", "request-unanswered"),
        *("path-limited", "bufferbloat", "jitter", "shared-queue", "slow-start"),
    ),
)
def zero_window(case: Case) -> Matches:
    for (flow, side), findings in low_flows(case).items():
        back, row = case.direction(flow, side), case.direction(flow, 1 - side)
        closed_ns, shut_ns, life_ns = low_ns(back), back["window_shut_ns"] or 0, duration_of(case.flow(flow)) or 0
        window_ns = max(row["time_window_ns"] or 0, shut_ns)
        if closed_ns < max(LOW_LEAST_NS, CLOSED_SHARE * window_ns) or not life_ns:
            continue
        is_shut = shut_ns >= SHUT_NS and case.flow(flow)["state"] != "closed"
        yield Match(
            certainty="proven",
            place="client" if side == case.flow(flow)["client"] else "server",
            findings=findings,
            flows=[(flow, 0), (flow, 1)],
            failed=int(is_shut),
            asked=1 if is_shut else None,
            waited_ns=closed_ns,
            proof=window_proof(back),
            excluded=not_of_window(back, is_shut),
            receiver=endpoint_str(back["source"], back["source_port"]),
            window=f"its receive window had no room for a segment for {parts_str(closed_ns, life_ns)}",
            end=window_end(is_shut, case.flow(flow), row, back),
        )

    for each, transfer in transfers_of(case, "receive-window-limited"):
        shrunk = shrunk_window(case, transfer)
        if shrunk:
            yield shrunk_match(case, each, transfer, *shrunk)
    explained = case.flows_of("zero-window")
    for transfer in case.transfers.limited():
        window = full_at_receiver(case, transfer) if transfer.row["flow"] not in explained else None
        if window:
            yield late_reader(case, transfer, window)


def closed_str(flow: FlowRow, row: DirectionRow, back: DirectionRow) -> str:
    """`; 10.0.0.2 closed first`: a sender that closes a long connection to a slow reader, and has the last word then."""
    is_by_sender = flow["state"] == "closed" and (row["last_ns"] or 0) > (back["last_ns"] or 0)
    if (duration_of(flow) or 0) < LONG_NS or not (is_by_sender or (row["resets"] and not back["fins"])):
        return ""
    return f"; {row['source']} closed first, perhaps before all was sent"


def full_at_receiver(case: Case, transfer: Transfer) -> float | None:
    """Returns the receive window if a capture at the receiver shows that it was full all along, and that the receiver took its
    time with each segment; else None."""
    trips = transfer.round_trips
    is_near = trips is not None and trips.least <= AT_RECEIVER_NS and queue_grows(transfer)
    return full_window(case, transfer) if is_near else None


def full_window(case: Case, transfer: Transfer) -> float | None:
    """Returns the receive window if it was full all along, without a loss; else None. Rate times round trip is what was in flight
    (Little)."""
    trips = transfer.round_trips
    if trips is None or transfer.lost:
        return None
    window = usual_window(case.transfers, transfer)
    active_ns = max(transfer.waited_ns - transfer.times.get("pause", 0), 1)
    return window if window and transfer.unique_bytes * trips.median / active_ns >= FILLED * window else None


def late_reader(case: Case, transfer: Transfer, window: float) -> Match:
    """Returns the match about a receiver that acknowledges what its program has read."""
    trips, waited_ns = transfer.round_trips, transfer.waited_ns - transfer.times.get("pause", 0)
    usual, least = (trips.median, trips.least) if trips else (0, 0)
    return Match(
        certainty="likely",
        place="client" if transfer.row["direction"] != case.flow(transfer.row["flow"])["client"] else "server",
        flows=[transfer.side],
        waited_ns=waited_ns,
        proof=f"rate times round trip is {show_bytes(window)}, its window, and the capture point is {show_duration(least)} away",
        excluded={"tail-loss": "nothing was lost"},
        undecided={
            "bottleneck": f"`ss -tm` at {transfer.row['destination']}: Recv-Q holds data while the program does not read"
        },
        receiver=endpoint_str(transfer.row["destination"], transfer.row["destination_port"]),
        window=f"its window of {show_bytes(window)} was full all along, and it acknowledged data only {show_duration(usual)} "
        f"after it had come, though it is {show_duration(least)} away",
        end="",
    )


def shrunk_window(case: Case, transfer: Transfer) -> tuple[float, float] | None:
    """Returns the largest window and the usual one of the second half, if it shrank; None if it stayed or grew."""
    windows = [window for window in case.transfers.bins(transfer).window_bytes if window == window]
    if len(windows) < BINS_LEAST:
        return None
    if len(set(windows[1:])) == 1:  # a window that never moves is a limit: the program reads
        return None
    half = len(windows) // 2
    most, second = max(*windows[:half], transfer.back["window_max"] or 0), sorted(windows[half:])
    later, upper = middle(second), second[len(second) * 3 // 4]  # it opens when all has been read
    return (most, later) if later < SHRUNK * most and upper < GROWN * most else None


def shrunk_match(case: Case, finding: Numbered, transfer: Transfer, first: float, later: float) -> Match:
    """Returns the match about a receiver that lets its window shrink."""
    waited_ns = transfer.times["window"]
    return Match(
        certainty="proven",
        place="client" if transfer.row["direction"] != case.flow(transfer.row["flow"])["client"] else "server",
        findings=[finding],
        flows=[transfer.side],
        waited_ns=waited_ns,
        severity="info" if finding.finding.severity == "info" else None,
        proof=f"the window was {show_bytes(first)} at first, and {show_bytes(later)} (median) in the second half",
        excluded={"small-window": f"it was {show_bytes(first)} at first, and shrank as data came"},
        receiver=endpoint_str(transfer.row["destination"], transfer.row["destination_port"]),
        window=f"its window shrank from {show_bytes(first)} to {show_bytes(later)}, and the sender waited for room for "
        f"{parts_str(waited_ns, transfer.waited_ns)}",
        end="",
    )


def window_end(is_shut: bool, flow: FlowRow, row: DirectionRow, back: DirectionRow) -> str:
    """Returns what came of a window that stayed shut, or of a long connection with one."""
    if not is_shut:
        return closed_str(flow, row, back)
    return "; then it stopped answering" if row["unacked_bytes"] else ", and it never opened again"


def not_of_window(back: DirectionRow, is_shut: bool) -> dict[str, str]:
    """Returns the facts that exclude rivals of a closed window."""
    most, least = back["window_max"], back["window_min"] or 0
    return {
        "tail-loss": "the window never opened again" if is_shut else "data left right after the window update",
        "small-window": f"from {show_bytes(most)} down to {show_bytes(least)}" if most else "it was 0",
    }


def window_proof(back: DirectionRow) -> str:
    """Returns how often a receiver closed its window, and how low it was."""
    closed = back["zero_windows"] or 0
    if closed:
        return f"{plural(closed, 'segment')} with a window of 0"
    return f"a window of {show_bytes(back['window_min'] or 0)}, of {show_bytes(back['window_max'] or 0)} at most"


def transfers_of(case: Case, *codes: str) -> list[tuple[Numbered, Transfer]]:
    """Returns the transfers that findings are about."""
    by_side = {transfer.side: transfer for transfer in case.transfers.limited()}
    pairs = (
        (each, by_side.get((flow, direction or 0)))
        for each in case.findings(*codes)
        for flow, direction in each.finding.flows[:1]
    )
    return [(each, transfer) for each, transfer in pairs if transfer]


def limited_transfers(case: Case, *codes: str) -> list[tuple[Numbered, Transfer]]:
    """Returns those in which no queue stood: the path did not limit them."""
    return [(each, transfer) for each, transfer in transfers_of(case, *codes) if not queue_grows(transfer)]


def window_bound(case: Case) -> list[tuple[Numbered, Transfer, int]]:
    """Returns the transfers that the receive window limited, and for how long. A flight that stays at one level limits a transfer
    like a send buffer; if that level is the window, it is the window that does."""
    bound = [
        (each, transfer, transfer.times["window"])
        for each, transfer in limited_transfers(case, "receive-window-limited")
    ]
    for each, transfer in limited_transfers(case, "send-buffer-limited"):
        if fills_window(case, transfer):
            bound.append((each, transfer, transfer.times["window"] + transfer.times["send_buffer"]))
    return bound


def fills_window(case: Case, transfer: Transfer) -> bool:
    """Returns whether the level of a flight is that of the receive window."""
    window = usual_window(case.transfers, transfer) or transfer.back["window_max"]
    return bool(window) and (transfer.row["send_buffer_bytes"] or 0) >= FILLED * (window or 0)


class Unscaled(NamedTuple):
    """Who left window scaling out of a handshake, and what shows it."""

    who: str
    place: Place
    proof: str
    certainty: Certainty = "likely"


def unscaled(case: Case, flow: int) -> Unscaled:
    """Returns who left window scaling out of the handshake of a flow."""
    syn, answer = case.direction(flow, 0), case.direction(flow, 1)
    nops = max((row["syn_nops"] or 0 for row in (syn, answer) if row["window_scale"] is None), default=0)
    if nops >= NOPS_OF_DEVICE:
        who = "A device on the way strips window scaling from SYNs"
        return Unscaled(who, "device", f"{nops} NOPs stand in place of the option", "proven")
    if syn["window_scale"] is None:
        return Unscaled(f"{syn['source']} probably does not offer window scaling", "client", "its SYN lacks the option")
    host = endpoint_str(answer["source"], answer["source_port"])
    if answer["timestamps"] or answer["sack_permitted"]:
        who = f"The SYN-ACK of {host} lacks the window scaling that the client offers, probably because a device strips it"
        return Unscaled(who, "device", "it has SACK or timestamps, as only newer stacks do, but no window scaling")
    proof = "its SYN-ACK is without window scaling, SACK and timestamps, which the client offered"
    return Unscaled(f"{host} probably cannot scale its window", "server", proof)


def is_below_unscaled(most: int) -> bool:
    """Returns whether a receiver never offers as much as it may without window scaling."""
    return most < UNSCALED_SHARE * UNSCALED_MAX


def not_of_scaling(transfer: Transfer) -> str:
    """Returns the fact that excludes window scaling as the reason of a small window."""
    shift, most = transfer.back["window_scale"], transfer.back["window_max"] or 0
    if shift is not None:
        return f"a shift of {shift}"
    if not_scaled(transfer) and is_below_unscaled(most):
        return f"{show_bytes(most)} at most, of 64 KiB that need no scaling"
    return "no SYN shows that it is off"


@cause(
    code="no-window-scaling",
    title="Window scaling is off",
    sentence="{who}: at most 64 KiB can be in flight, {most} at a round trip of {rtt}. {waited} were spent waiting for the "
    "window.",
    advice="Look at the TCP normalizer of the firewall, and at `net.ipv4.tcp_window_scaling` (1) of both ends.",
    shows="One of both SYNs lacks the option (RFC 7323 section 2.2). The window of 64 KiB (48 KiB at least) limited the "
    "transfer for 10% of the time or more. Three or more NOPs in a row in the SYN stand where a device removed it.",
    rivals={
        "small-window": "both SYNs would have the option",
        "zero-window": "the window stays open",
    },
    unknown="Before the device, its work shows only in the answer.",
    explains=("window-full", "path-limited", "slow-start", "window-scaling-off"),
)
def no_window_scaling(case: Case) -> Matches:
    for each, transfer, waited_ns in window_bound(case):
        most = transfer.back["window_max"] or 0
        if (
            not not_scaled(transfer)
            or not transfer.path_rtt_ns
            or is_below_unscaled(most)
            or not carries(transfer, most)
        ):
            continue
        side = unscaled(case, transfer.row["flow"])
        yield Match(
            certainty=side.certainty,
            place=side.place,
            findings=[each],
            flows=[transfer.side],
            waited_ns=waited_ns,
            severity="info" if each.finding.severity == "info" else None,
            frames=case.transfers.span(transfer.row["flow"])[:1],
            proof=side.proof,
            excluded={
                "zero-window": f"closed for {show_duration(transfer.back['zero_window_ns'] or 0)}",
            },
            undecided={} if side.certainty == "proven" else {"small-window": DECIDES},
            who=side.who,
            most=show_rate(UNSCALED_MAX * 8e9 / transfer.path_rtt_ns),
            rtt=show_duration(transfer.path_rtt_ns),
            waited=parts_str(waited_ns, transfer.waited_ns),
        )


@cause(
    code="small-window",
    title="Small receive window",
    sentence="The receive window of {receiver}, {window}, holds the transfer to {rate}: {reason}. {waited} were spent waiting "
    "for it.",
    advice="Do not set SO_RCVBUF at {receiver}; raise `net.ipv4.tcp_rmem` to twice the rate times the round trip "
    "(Windows: `autotuninglevel=normal`).",
    shows="The next segment did not fit the window for 10% of the time or more (finding receive-window-limited), though the "
    "window was open. Both SYNs scale, or the window never reached 75% of the 64 KiB that need no scaling. No queue stood. If "
    "the round trip would let more pass (25% of the time), the receiver probably opens the window late.",
    rivals={
        "zero-window": "the window stays open",
        "no-window-scaling": "both SYNs have the option, or the window is smaller than it may be without",
        "bottleneck": "no queue stood",
    },
    unknown="What the path would carry.",
    explains=("window-full", "path-limited", "slow-start", "window-scaling-off"),
)
def small_window(case: Case) -> Matches:
    for each, transfer, waited_ns in window_bound(case):
        window = usual_window(case.transfers, transfer) or transfer.back["window_max"]
        if not window or not transfer.path_rtt_ns or not transfer.row["goodput_bps"]:
            continue
        is_carried = carries(transfer, window)
        if not is_carried and (
            waited_ns < LATE_SHARE * transfer.waited_ns or ethernet_speed(case.transfers, [transfer])
        ):
            continue
        rtt = show_duration(transfer.path_rtt_ns)
        yield Match(
            certainty="proven" if is_carried else "likely",
            place="client" if transfer.row["direction"] != case.flow(transfer.row["flow"])["client"] else "server",
            findings=[each],
            flows=[transfer.side],
            waited_ns=waited_ns,
            severity="info" if each.finding.severity == "info" else None,
            proof=f"it was full for {show_share(waited_ns, transfer.waited_ns)} of the time, and open all along",
            excluded={
                "zero-window": f"closed for {show_duration(low_ns(transfer.back))}",
                "no-window-scaling": not_of_scaling(transfer),
            },
            receiver=endpoint_str(transfer.row["destination"], transfer.row["destination_port"]),
            window=show_bytes(window),
            rate=show_rate(transfer.row["goodput_bps"]),
            reason=f"at a round trip of {rtt} no more can be in flight"
            if is_carried
            else f"it is full, and its program probably makes room only long after the round trip of {rtt}",
            waited=parts_str(waited_ns, transfer.waited_ns),
        )
