# SPDX-License-Identifier: Apache-2.0
"""The type of a row of each table (docs/tables.md): a column that can be null is `| None`. Made by .ci/make_docs.py."""

from typing import TypedDict


class InterfaceRow(TypedDict):
    """An input interface of an input file."""

    capture: int
    file: str
    format: str
    compression: str
    interface: int
    name: str | None
    link_type: int
    link_type_name: str | None
    snaplen: int | None
    time_resolution_ns: int
    clock_tick_ns: int | None
    packets: int
    bytes: int
    captured_bytes: int
    filtered_packets: int
    first_ns: int | None
    last_ns: int | None
    received: int | None
    dropped_kernel: int | None
    dropped_interface: int | None
    dropped_program: int | None
    truncated_packets: int
    wlan_frames: int | None
    wlan_retries: int | None
    wlan_station: str | None
    wlan_station_frames: int | None
    wlan_station_retries: int | None
    wlan_station_signal_dbm: int | None
    time_unknown: int
    time_unknown_frame: int | None
    time_out_of_range: int
    time_out_of_range_frame: int | None
    backward_steps: int
    backward_ns_max: int | None
    backward_frame: int | None
    backward_frame_ns: int | None
    burst_10us_bytes: int | None
    burst_100us_bytes: int | None
    burst_1ms_bytes: int | None
    burst_ns: int | None
    burst_last_ns: int | None
    burst_frame: int | None
    mirror_duplicates: int | None
    second_port_duplicates: int | None
    second_port_ns_max: int | None
    super_segments: int
    super_segment_frame: int | None
    super_segment_frame_ns: int | None
    lengths_cut: int
    length_cut_frame: int | None
    length_cut_frame_ns: int | None
    not_ip: int
    not_understood: int
    not_understood_frame: int | None
    not_understood_frame_ns: int | None
    undecoded_packets: int
    undecoded_frame: int | None
    undecoded_frame_ns: int | None
    cut_headers: int
    cut_headers_frame: int | None
    cut_headers_frame_ns: int | None
    malformed: int
    malformed_frame: int | None
    malformed_frame_ns: int | None
    no_flow_bytes: int
    damage: str | None
    damage_offset: int | None
    damage_frame: int | None
    damage_frame_ns: int | None
    hardware: str | None
    system: str | None
    capture_application: str | None
    capture_filter: str | None
    comment: str | None
    packet_comments: int
    speed_bps: int | None
    duplex: str | None
    mtu: int | None
    promiscuous: bool | None
    receive_offload: bool | None
    send_offload: bool | None
    time_stamps: str | None
    carrier_losses: int | None
    carrier_down_ns: int | None
    carrier_lost_ns: int | None
    carrier_back_ns: int | None
    clock_synchronized: bool | None
    clock_error_ns: int | None
    clock_steps: int | None
    clock_step_size_ns: int | None
    clock_step_ns: int | None
    clock_step_last_ns: int | None


class DecodeStopRow(TypedDict):
    """Packets of an interface that were not decoded to their end, by reason and protocol."""

    capture: int
    outcome: str | None
    reason: str | None
    protocol: str | None
    packets: int


class SecondPortRow(TypedDict):
    """Two ports at which an interface stored the same TCP packets."""

    capture: int
    rank: int
    packets: int
    first_capture: int | None
    first_source: str | None
    first_destination: str | None
    first_ttl_min: int
    first_ttl_max: int
    second_capture: int | None
    second_source: str | None
    second_destination: str | None
    second_ttl_min: int
    second_ttl_max: int


class NeighborRow(TypedDict):
    """An IP address and the MAC address that claims it."""

    capture: int
    address: str
    mac: str
    vlan: int | None
    first_ns: int | None
    last_ns: int | None
    first_frame: int
    last_frame: int
    claims: int
    answers: int
    conflicts: int
    conflict_ns: int | None
    conflict_frame: int | None
    other_frame: int | None


class AnnouncerRow(TypedDict):
    """A router or port that announces itself."""

    capture: int
    kind: str
    vlan: int | None
    source: str | None
    mac: str | None
    number: int | None
    value: int
    address: str | None
    prefix_length: int | None
    packets: int
    withdrawals: int
    first_ns: int | None
    last_ns: int | None
    first_frame: int
    last_frame: int


class GroupRow(TypedDict):
    """A multicast group with members."""

    capture: int
    address: str
    vlan: int | None
    reports: int
    first_ns: int | None
    last_ns: int | None
    first_frame: int
    last_frame: int
    query_ns: int | None
    query_frame: int | None


class FlowRow(TypedDict):
    """A conversation."""

    flow: int
    protocol: str
    protocol_number: int
    ip_version: int
    source: str
    source_port: int | None
    destination: str
    destination_port: int | None
    path: str | None
    path_back: str | None
    initiator_known: bool
    initiator_evidence: str
    state: str | None
    end: str
    multipath_join: bool | None
    application: str | None
    server_name: str | None
    proxy_header: bool | None
    process_id: int | None
    process_name: str | None
    first_ns: int | None
    last_ns: int | None
    first_capture: int
    first_frame: int
    last_frame: int
    packets: int
    wire_bytes: int
    payload_bytes: int | None
    handshake_rtt_ns: int | None
    one_way: bool
    icmp_errors: int
    client: int | None
    exchange: str | None
    server_talk: str | None
    time_connecting_ns: int | None
    time_client_ns: int | None
    time_server_ns: int | None
    time_loss_ns: int | None
    time_queue_ns: int | None
    time_path_ns: int | None
    time_window_ns: int | None
    time_send_buffer_ns: int | None
    time_transfer_ns: int | None
    time_idle_ns: int | None
    time_unknown_ns: int | None
    reduced_path_ns: int | None
    pause_ns: int | None
    pause_until_ns: int | None
    pause_direction: int | None
    pause_capture: int | None
    pause_frame: int | None
    pause_before_ns: int | None
    clock_jump_ns: int | None
    clock_jump_after_ns: int | None
    clock_jump_until_ns: int | None
    clock_jump_frame: int | None


class DirectionRow(TypedDict):
    """One direction of a flow; both have a row, captured or not."""

    flow: int
    direction: int
    source: str
    source_port: int | None
    destination: str
    destination_port: int | None
    packets: int
    wire_bytes: int
    ip_bytes: int
    payload_bytes: int | None
    unique_bytes: int | None
    data_packets: int | None
    retransmissions: int | None
    fast_retransmissions: int | None
    timeout_retransmissions: int | None
    timeouts: int | None
    suspected_timeouts: int | None
    probe_retransmissions: int | None
    spurious_retransmissions: int | None
    unplaced_retransmissions: int | None
    checksum_retransmissions: int | None
    retransmitted_bytes: int | None
    duplicate_bytes: int | None
    probe_bytes: int | None
    out_of_order: int | None
    ambiguous: int | None
    gaps: int | None
    gaps_filled: int | None
    network_duplicates: int | None
    mirror_duplicates: int | None
    unknown_duplicates: int | None
    lost_upstream: int | None
    lost_downstream: int | None
    lost_upstream_bytes: int | None
    lost_downstream_bytes: int | None
    syn_fin_retransmissions: int | None
    syn_fin_spurious: int | None
    syn_fin_lost_upstream: int | None
    syn_fin_lost_downstream: int | None
    wire_mss: int | None
    wire_segments: int | None
    wire_retransmissions: int | None
    wire_spurious: int | None
    wire_unplaced: int | None
    wire_lost_upstream: int | None
    wire_lost_downstream: int | None
    sack_gaps: int | None
    unseen_bytes: int | None
    missing_bytes: int | None
    missing_ns: int | None
    capture_reordered: int | None
    gap_bytes: int | None
    unacked_bytes: int | None
    sacked_bytes: int | None
    unacked_first_ns: int | None
    unknown_bytes: int | None
    duplicate_acks: int | None
    acks_lost_downstream: int | None
    sack_acks: int | None
    sacks_outside: int | None
    sack_shift_spread: int | None
    zero_windows: int | None
    window_openings: int | None
    probed_openings: int | None
    zero_window_ns: int | None
    low_window_ns: int | None
    window_shut_ns: int | None
    window_full: int | None
    window_probes: int | None
    keep_alives: int | None
    fragments: int
    fragmented_datagrams: int
    incomplete_datagrams: int
    fragment_overhead_bytes: int
    blocks: int | None
    blocks_lost: int | None
    blocks_out_of_order: int | None
    blocks_duplicate: int | None
    blocks_late: int | None
    blocks_corrupt: int | None
    block_loss_runs: int | None
    block_loss_run_max: int | None
    block_restarts: int | None
    comfort_noise: int | None
    answered_datagrams: int | None
    unanswered_datagrams: int | None
    answered_max: int | None
    unanswered_large: int | None
    unanswered_large_min: int | None
    blocks_head_of_line: int | None
    head_of_line_ns_max: int | None
    rtt_samples: int | None
    rtt_ns_min: int | None
    rtt_ns_median: int | None
    rtt_ns_p99: int | None
    rtt_ns_max: int | None
    jitter_ns: int | None
    jitter_mean_ns: int | None
    delay_variation_ns: int | None
    throughput_bps: int | None
    goodput_bps: int | None
    mss: int | None
    window_scale: int | None
    syn_nops: int | None
    sack_permitted: bool | None
    timestamps: bool | None
    initial_sequence: int | None
    first_tsval: int | None
    multipath_token: int | None
    window_min: int | None
    window_max: int | None
    flight_max: int | None
    segment_max: int | None
    acked_segment_max: int | None
    syns: int | None
    fins: int | None
    resets: int | None
    acks_out_of_range: int | None
    ecn_ce: int
    ecn_echo: int | None
    ecn_cwr: int | None
    unusual_options: int | None
    signed_segments: int | None
    checksum_errors: int | None
    checksums_verified: int
    checksums_offloaded: int
    checksums_ignored: int | None
    ttl_min: int | None
    ttl_max: int | None
    dscp: int | None
    last_dscp: int | None
    first_ns: int | None
    last_ns: int | None
    idle_ns_max: int | None
    time_pause_ns: int | None
    time_delayed_ack_ns: int | None
    time_window_ns: int | None
    time_send_buffer_ns: int | None
    time_loss_ns: int | None
    time_network_ns: int | None
    time_unknown_ns: int | None
    slow_start_ns: int | None
    timeout_ns: int | None
    suspected_ns: int | None
    recovery_ns: int | None
    rto_idle_ns: int | None
    send_buffer_bytes: int | None


class EventRow(TypedDict):
    """An event of one packet or span of a stream."""

    flow: int | None
    direction: int | None
    capture: int
    frame: int
    time_ns: int | None
    kind: str
    bytes: int | None
    related_frame: int | None
    detail: str | None
    place: str | None
    evidence: str | None
    spurious: bool | None
    cause: str | None
    mtu: int | None
    router: str | None
    blocks: int | None
    due_ns: int | None
    due_bytes: int | None


class SeriesRow(TypedDict):
    """One direction in one time bin; at most 2,000 a direction."""

    flow: int
    direction: int
    start_ns: int
    width_ns: int
    packets: int
    wire_bytes: int
    bytes: int
    payload_bytes: int | None
    unique_bytes: int | None
    retransmitted_bytes: int | None
    lost: int | None
    rtt_ns: int | None
    flight_bytes: int | None
    window_bytes: int | None
    throughput_bps: int
    cumulative_throughput_bps: int | None
    goodput_bps: int | None


class WaitRow(TypedDict):
    """One of the longest waits of a direction."""

    flow: int
    direction: int
    kind: str
    rank: int
    waited_ns: int | None
    before_capture: int | None
    before_frame: int | None
    before_ns: int | None
    after_capture: int
    after_frame: int
    after_ns: int | None


class EndingRow(TypedDict):
    """The first FIN or RST of an end of a TCP connection, if unusual."""

    flow: int
    direction: int
    kind: str
    capture: int
    frame: int
    time_ns: int | None
    idle_ns: int | None
    reply_ns: int | None
    unacked_bytes: int | None
    late_bytes: int
    late_ns: int | None
    acknowledged: bool | None
    packets_after: int | None
    ttl: int
    ttl_before_min: int | None
    ttl_before_max: int | None
    ip_id: int | None
    ip_id_step: int | None
    window: int
    with_ack: bool
    timestamps: bool


class LoopRow(TypedDict):
    """A direction with packets that passed again and again."""

    flow: int
    direction: int
    packets: int
    passes_max: int
    ttl_step: int
    first_capture: int
    first_frame: int
    first_ns: int | None
    last_ns: int | None


class DatagramRow(TypedDict):
    """One fragmented IP datagram."""

    flow: int | None
    direction: int | None
    capture: int
    source: str
    destination: str
    protocol_number: int
    identification: int
    state: str
    fragments: int
    bytes: int | None
    received_bytes: int
    overhead_bytes: int
    missing_bytes: int | None
    missing_ranges: int | None
    missing_from: int | None
    missing: str | None
    out_of_order: int
    duplicates: int
    overlaps: int
    late: int
    first_frame: int
    last_frame: int
    first_ns: int | None
    last_ns: int | None
    complete_ns: int | None
    payload_bytes: int | None


class BlockRow(TypedDict):
    """One of wiretale's blocks."""

    flow: int
    direction: int
    capture: int
    stream: int | None
    sequence: int
    bytes: int
    sent_ns: int | None
    first_ns: int | None
    complete_ns: int | None
    latency_ns: int | None
    head_of_line_ns: int | None
    first_frame: int | None
    last_frame: int | None
    verdict: str


class HandshakeRow(TypedDict):
    """The handshake of TLS or QUIC of a flow."""

    flow: int
    protocol: str
    version: str | None
    server_name: str | None
    alpn: str | None
    resumed: bool | None
    alert: str | None
    alert_direction: int | None
    alert_frame: int | None
    alert_ns: int | None
    duration_ns: int | None
    round_trips: int | None
    server_ns: int | None
    client_ns: int | None
    client_hello_frame: int | None
    server_hello_frame: int | None
    finished_frame: int | None
    server_rtt_ns: int | None
    client_rtt_ns: int | None
    spin_rtt_ns: int | None
    spin_samples: int | None
    version_negotiation: bool | None
    retry: bool | None
    zero_rtt: bool | None
    client_direction: int | None
    ech: bool | None


class ExchangeRow(TypedDict):
    """Who asked whom for what, and what came of it."""

    flow: int | None
    direction: int | None
    kind: str
    within: int | None
    capture: int
    client: str | None
    server: str | None
    name: str | None
    type: str | None
    id: int | None
    asked_ns: int | None
    asked_frame: int | None
    attempts: int
    answered_ns: int | None
    answered_frame: int | None
    waited_ns: int | None
    outcome: str
    code: str | None
    addresses: str | None
    syn_options: str | None
    last_syn_options: str | None
    truncated: bool | None
    turn: int | None
    last_frame: int | None
    request_bytes: int | None
    announced_bytes: int | None
    request_ns: int | None
    request_pause_ns: int | None
    network_ns: int | None
    server_ns: int | None
    response_bytes: int | None
    response_announced_bytes: int | None
    response_ns: int | None
    response_pause_ns: int | None
    pause_ns: int | None
    client_network_ns: int | None
    retransmission_client_ns: int | None
    retransmission_network_ns: int | None
    retransmission_server_ns: int | None
    expects_continue: bool | None
    upgrade_header: bool | None
    response_until_close: bool | None
    closed_by: int | None
    closed_ns: int | None


class PacketRow(TypedDict):
    """An IP packet of a flow; made only on request."""

    flow: int
    direction: int
    capture: int
    frame: int
    time_ns: int | None
    ip_bytes: int
    payload_bytes: int | None
    sequence: int | None
    acknowledged: int | None
    window: int | None
    sack_start: int | None
    sack_end: int | None
    sack2_start: int | None
    sack2_end: int | None
    sack3_start: int | None
    sack3_end: int | None
    sack4_start: int | None
    sack4_end: int | None
    flags: int | None
    unique_bytes: int | None
    rtt_ns: int | None
    flight_bytes: int | None
    opposite_flight_bytes: int | None
    fragment_offset: int | None
    datagram_capture: int | None
    datagram_frame: int | None


class TimeSpanRow(TypedDict):
    """Time of a flow that went to one part; made only on request."""

    flow: int
    direction: int | None
    part: str
    start_ns: int
    end_ns: int
    merged: bool


class RelationRow(TypedDict):
    """A flow that belongs together with another one."""

    flow: int
    other: int
    kind: str
    judged: int | None
    evidence: str
    delay_ns: int | None
    hops: int | None


class FindingRow(TypedDict):
    """An explanation of an anomaly or a cost."""

    finding: int
    code: str
    severity: str
    scope: str
    flow: int | None
    direction: int | None
    sentence: str
    headline: str
    advice: str
    waited_ns: int | None
    saving_ns: int | None
    cost: float | None
    cost_unit: str | None
    bytes: int | None
    failed: int | None
    members: int | None
    impact: float | None
    first_ns: int | None
    last_ns: int | None
    explained_by: int | None
    packets: int | None
    figures: str | None
    filter: str | None


class FindingFrameRow(TypedDict):
    """A packet that shows a finding."""

    finding: int
    capture: int
    frame: int
    role: str


class FindingFlowRow(TypedDict):
    """A flow that a finding is about."""

    finding: int
    flow: int
    direction: int | None


class CauseRow(TypedDict):
    """What explains findings, and the cost of it."""

    cause: int
    code: str
    severity: str
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


class CauseFrameRow(TypedDict):
    """A packet that shows a cause."""

    cause: int
    capture: int
    frame: int
    role: str


class CauseFlowRow(TypedDict):
    """A flow that a cause is about."""

    cause: int
    flow: int
    direction: int | None


class CauseFindingRow(TypedDict):
    """A finding that a cause explains."""

    cause: int
    finding: int


class CauseRivalRow(TypedDict):
    """Another cause that shows alike, and what decides."""

    cause: int
    rival: str
    excluded: bool
    fact: str
