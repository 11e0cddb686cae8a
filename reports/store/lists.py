# SPDX-License-Identifier: Apache-2.0
"""The SQL of `wiretale store flows`, `findings` and `top`."""

from __future__ import annotations

import re

# A key of 16 bytes takes less memory in a join than 64 digits. The empty tables of a store have none.
KEY = "try_cast(substr(capture_id, 1, 32) AS UUID)"
FLOWS = f"""
SELECT day, first_ns, protocol, source, source_port, destination, destination_port, application, server_name, packets, wire_bytes,
    (epoch_ns(last_ns) - epoch_ns(first_ns)) AS duration_ns, handshake_rtt_ns, capture_id, flow, {KEY} AS key FROM flows
"""
# The columns of its directions follow those of a flow.
TROUBLE = ("retransmissions", "lost")
WITH_TROUBLE = """
SELECT * EXCLUDE (key, capture_id, flow), retransmissions, lost, capture_id, flow FROM ({flows}) LEFT JOIN (
    SELECT key, flow, sum(retransmissions)::BIGINT AS retransmissions,
        sum(coalesce(lost_upstream + lost_downstream, lost_upstream, lost_downstream))::BIGINT AS lost
    FROM (SELECT *, {key} AS key FROM directions {restriction}) GROUP BY key, flow) USING (key, flow)
"""
FLOW_ORDER = "wire_bytes DESC, capture_id, flow"
FINDINGS = """
SELECT day, severity, code, sentence, cost, cost_unit, protocol, source, source_port, destination, destination_port, frame,
    path, capture_id, finding, findings.flow AS flow
FROM findings LEFT JOIN (SELECT capture_id, finding, frame FROM finding_frames WHERE role = 'first') USING (capture_id, finding)
    LEFT JOIN (SELECT capture_id, path FROM captures) USING (capture_id)
    LEFT JOIN (SELECT capture_id, flow, protocol, source, source_port, destination, destination_port FROM flows) AS of_flow
    ON of_flow.capture_id = findings.capture_id AND of_flow.flow = findings.flow
"""
# The keys by which traffic is summed; a flow counts for both of its hosts, or for one that talks to itself.
HOSTS = "if(source = destination, [source], [source, destination])"
GROUPS = {
    "hosts": ("host", f"(SELECT *, unnest({HOSTS}) AS host FROM flows)"),
    "pairs": (
        "pair",
        "(SELECT *, least(source, destination) || ' ' || greatest(source, destination) AS pair FROM flows)",
    ),
    "ports": ("port", "(SELECT *, protocol || coalesce('/' || destination_port, '') AS port FROM flows)"),
    "applications": ("application", "flows"),
    "days": ("day", "flows"),
}
UNNAMED = {"applications": "(not recognized)", "days": "(no time)"}  # rows without a name, for readers
SEVERITIES = "CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END"


WHOLE_TIMES = "min(first_ns) AS first_ns, max(last_ns) AS last_ns"
TIMES_SHOWN = "substr(min(first_ns)::VARCHAR, 1, 19) AS first, substr(max(last_ns)::VARCHAR, 1, 19) AS last"


def end_sql(address: str, port: str) -> str:
    """Returns the SQL of an endpoint as text."""
    return f"if(contains({address}, ':'), '[' || {address} || ']', {address}) || coalesce(':' || {port}, '')"


# The columns that a terminal has room for.
FLOW_SHOWN = f"""
substr(first_ns::VARCHAR, 1, 19) AS first, protocol || ' ' || {end_sql("source", "source_port")} || ' → ' ||
    {end_sql("destination", "destination_port")} AS conversation, coalesce(server_name, application) AS application, packets,
wire_bytes, round(duration_ns / 1e9, 3) AS seconds, retransmissions, lost, capture_id AS capture
"""
FINDING_SHOWN = "day, severity, code, sentence, parse_filename(path) AS file, frame"
SPARE = {"flows": ("capture", "first"), "findings": ("day",)}  # left out first in a narrow terminal


def limited(sql: str, columns: str, where: str | None, order: str, limit: int) -> str:
    """Returns a query over the rows of another."""
    condition = f"WHERE ({where}\n)" if where else ""
    return f"SELECT {columns} FROM ({sql}) {condition} ORDER BY {order} LIMIT {limit}"


def flows_sql(where: str | None, limit: int, every_column: bool) -> str:
    """Returns the largest flows; if `whole`, with all columns.

    Unless the condition needs columns of directions, the flows are chosen before these are read. A misspelt name of one counts,
    so that the error of DuckDB has the right one.
    """
    from difflib import get_close_matches

    columns = "*" if every_column else FLOW_SHOWN
    if where and any(get_close_matches(word.lower(), TROUBLE, 1, 0.8) for word in re.findall(r"\w+", where)):
        return limited(WITH_TROUBLE.format(flows=FLOWS, key=KEY, restriction=""), columns, where, FLOW_ORDER, limit)
    condition = "SEMI JOIN largest USING (capture_id, flow)"
    rows = WITH_TROUBLE.format(flows="FROM largest", key=KEY, restriction=condition)
    first = limited(FLOWS, "*", where, FLOW_ORDER, limit)
    return f"WITH largest AS MATERIALIZED ({first}) {limited(rows, columns, None, FLOW_ORDER, limit)}"


def findings_sql(where: str | None, limit: int, every_column: bool) -> str:
    """Returns findings, the most severe and newest first; if `whole`, with all columns."""
    order = f"{SEVERITIES}, day DESC, cost DESC NULLS LAST, capture_id, code, flow"
    return limited(FINDINGS, "*" if every_column else FINDING_SHOWN, where, order, limit)


def top_sql(group: str, where: str | None, limit: int, every_column: bool) -> str:
    """Returns sums of traffic by a group, the largest first; if `whole`, with exact times."""
    name, rows = GROUPS[group]
    columns = (
        f"coalesce({name}::VARCHAR, '{UNNAMED[group]}') AS {name}" if group in UNNAMED and not every_column else name
    )
    condition = f"WHERE ({where}\n)" if where else ""
    return (
        f"SELECT {columns}, count(*) AS flows, sum(packets)::BIGINT AS packets, sum(wire_bytes)::BIGINT AS wire_bytes, "
        f"{WHOLE_TIMES if every_column else TIMES_SHOWN} FROM {rows} {condition} GROUP BY {name} "
        f"ORDER BY wire_bytes DESC, {name} LIMIT {limit}"
    )
