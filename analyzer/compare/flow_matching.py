# SPDX-License-Identifier: Apache-2.0
"""Matches conversations of several captures by addresses and ports, else by the content of their packets.

Address translation changes the ends, but keeps TCP's initial sequence numbers, the runs of wiretale's blocks and the
payload. If a conversation reuses ports, its SYN starts a new one. A match by ends must not contradict the SYNs, and one by
content must rest on a sequence number, a run, or three payloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# Reused ports: a conversation's incarnation is the number of its different SYNs so far.
INCARNATIONS = """
CREATE TABLE incarnate{point} AS
SELECT *, coalesce(sum(fresh) OVER (PARTITION BY conversation ORDER BY packet, part ROWS UNBOUNDED PRECEDING), 0)::INTEGER
    AS incarnation
FROM (SELECT *, CASE WHEN protocol = 6 AND flags & 18 = 2 AND sequence IS DISTINCT FROM lag(sequence)
            OVER (PARTITION BY conversation, protocol = 6 AND flags & 18 = 2 ORDER BY packet)
        THEN 1 END AS fresh
    FROM loaded{point} WHERE conversation IN (SELECT conversation FROM reused{point}))
"""
REUSED = """
CREATE TABLE reused{point} AS SELECT conversation FROM loaded{point} WHERE protocol = 6 AND flags & 18 = 2
GROUP BY conversation HAVING count(DISTINCT sequence) > 1
"""
PACKETS = """
CREATE VIEW packets{point} AS
SELECT * EXCLUDE (fresh) FROM incarnate{point}
UNION ALL BY NAME
SELECT *, 0 AS incarnation FROM loaded{point} WHERE conversation NOT IN (SELECT conversation FROM reused{point})
"""
CONVERSATIONS = """
CREATE TABLE conversations{point} AS
WITH one AS (SELECT conversation, any_value(fields) AS fields FROM ends{point} GROUP BY conversation)
SELECT conversation, incarnation, any_value(protocol) AS protocol, any_value(one.fields) AS fields, count(*) AS packets,
    min(time_ns) AS first_ns, min(packet) AS first_packet,
    any_value(sequence) FILTER (protocol = 6 AND flags & 2 = 2 AND side = 0) AS isn0,
    any_value(sequence) FILTER (protocol = 6 AND flags & 2 = 2 AND side = 1) AS isn1
FROM packets{point} JOIN one USING (conversation)
GROUP BY conversation, incarnation
"""
# Pairs of conversations with the same ends, in the same order; SYNs of TCP must not contradict.
SAME_ENDS = """
WITH a AS (SELECT *, row_number() OVER (PARTITION BY fields[1:5], isn0, isn1 ORDER BY packets DESC, fields[6]) AS nth
        FROM free{earlier}),
    b AS (SELECT *, row_number() OVER (PARTITION BY fields[1:5], isn0, isn1 ORDER BY packets DESC, fields[6]) AS nth
        FROM free{later})
SELECT a.conversation AS c, a.incarnation AS i, b.conversation AS d, b.incarnation AS j, 0 AS flip, 'ends' AS evidence,
    2 * coalesce(a.isn0 = b.isn0, false)::INTEGER + 2 * coalesce(a.isn1 = b.isn1, false)::INTEGER
        - 3 * (coalesce(a.isn0 != b.isn0, false)::INTEGER + coalesce(a.isn1 != b.isn1, false)::INTEGER) AS weight,
    a.packets + b.packets AS packets
FROM a JOIN b ON a.fields[1:5] = b.fields[1:5] AND (a.nth = b.nth OR a.isn0 IS DISTINCT FROM b.isn0)
"""
# Content marks of conversations without a partner.
MARKS = """
SELECT conversation, incarnation, protocol, side, 0 AS kind, sequence::UBIGINT AS mark, 100 AS weight
FROM packets{point} JOIN free{point} USING (conversation, incarnation, protocol) WHERE protocol = 6 AND flags & 2 = 2
UNION SELECT conversation, incarnation, protocol, side, 1, run::UBIGINT * 65536 + stream, 100
FROM packets{point} JOIN free{point} USING (conversation, incarnation, protocol) WHERE run IS NOT NULL
UNION SELECT conversation, incarnation, protocol, side, 2, digest_short, 1
FROM packets{point} JOIN free{point} USING (conversation, incarnation, protocol)
WHERE payload >= 8 AND captured >= 8 AND run IS NULL
"""
# A payload that many conversations have identifies none of them.
SAME_MARKS = """
WITH a AS (FROM ({marks_earlier}) QUALIFY count(*) OVER (PARTITION BY protocol, kind, mark) <= 4),
    b AS (FROM ({marks_later}) QUALIFY count(*) OVER (PARTITION BY protocol, kind, mark) <= 4)
SELECT a.conversation AS c, a.incarnation AS i, b.conversation AS d, b.incarnation AS j,
    (a.side != b.side)::INTEGER AS flip, 'carried' AS evidence, sum(a.weight) AS weight, count(*) AS packets
FROM a JOIN b USING (protocol, kind, mark)
GROUP BY ALL HAVING sum(a.weight) >= 3
"""
BEST = """
CREATE OR REPLACE TEMP TABLE best AS
SELECT * FROM ({pairs}) WHERE weight >= 0
QUALIFY row_number() OVER (PARTITION BY c, i ORDER BY weight DESC, packets DESC, d, j) = 1
    AND row_number() OVER (PARTITION BY d, j ORDER BY weight DESC, packets DESC, c, i) = 1
"""


def free(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Creates views of the conversations of each point that have no flow number yet."""
    for point in range(points):
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW free{point} AS SELECT * FROM conversations{point} WHERE (conversation, "
            f"incarnation) NOT IN (SELECT (conversation, incarnation) FROM members WHERE point = {point})"
        )


def join_flows(connection: duckdb.DuckDBPyConnection, earlier: int, later: int, pairs: str) -> None:
    """Assigns conversations of the later point to the flow of their partners at the earlier point."""
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW free{earlier} AS SELECT c.* FROM conversations{earlier} AS c JOIN members USING "
        f"(conversation, incarnation) WHERE members.point = {earlier} AND flow NOT IN (SELECT flow FROM members WHERE "
        f"point = {later})"
    )
    connection.execute(BEST.format(pairs=pairs))
    connection.execute(
        f"INSERT INTO members SELECT m.flow, {later}, d, j, m.flip != best.flip::BOOLEAN, best.evidence FROM best "
        f"JOIN members AS m ON m.point = {earlier} AND m.conversation = c AND m.incarnation = i"
    )


def number_the_rest(connection: duckdb.DuckDBPyConnection, point: int) -> None:
    """Assigns new flows to the conversations without a partner at an earlier point."""
    connection.execute(
        f"INSERT INTO members SELECT (SELECT coalesce(max(flow) + 1, 0) FROM members) "
        f"+ row_number() OVER (ORDER BY first_packet) - 1, {point}, conversation, incarnation, false, 'alone' "
        f"FROM free{point}"
    )


def pair_flows(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Fills `members`: flow, point, conversation, incarnation, flip (its side 0 is the flow's side 1), evidence."""
    connection.execute(
        "CREATE TABLE members (flow INTEGER, point INTEGER, conversation BIGINT, incarnation INTEGER, flip BOOLEAN, "
        "evidence VARCHAR)"
    )
    for point in range(points):
        for statement in (REUSED, INCARNATIONS, PACKETS, CONVERSATIONS):
            connection.execute(statement.format(point=point))
    free(connection, points)
    for later in range(points):
        for pairs in (SAME_ENDS, SAME_MARKS):
            for earlier in reversed(range(later)):
                marks = [MARKS.format(point=point) for point in (earlier, later)]
                join_flows(
                    connection,
                    earlier,
                    later,
                    pairs.format(earlier=earlier, later=later, marks_earlier=marks[0], marks_later=marks[1]),
                )
        free(connection, points)
        number_the_rest(connection, later)
