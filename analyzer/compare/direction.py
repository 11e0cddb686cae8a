# SPDX-License-Identifier: Apache-2.0
"""Finds the heading of each direction of a flow: 1 from the first capture point to the last, or -1.

Evidence, strongest first: routers decrement the TTL; request and answer are further apart in time at the requesting end;
a host that sends in one heading with one flow does so with all; the sender sends more than it receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# `ttl`: the point nearer to a packet's source has the higher TTL. `answer`: time from the first packet of a direction to
# the first of the other.
HEADINGS = """
CREATE TABLE headings AS
WITH heights_differ AS (SELECT a.flow, a.direction, sign(a.ttl - b.ttl) AS heading FROM heights AS a
        JOIN heights AS b USING (flow, direction) WHERE a.point = 0 AND b.point = {last}),
    ttl AS (SELECT flow, sum(CASE direction WHEN 0 THEN heading ELSE -heading END) AS vote FROM heights_differ GROUP BY flow),
    asked AS (SELECT flow, min(t0) FILTER (direction = 0) AS a0, min(t0) FILTER (direction = 1) AS b0,
            min(t{last}) FILTER (direction = 0) AS a1, min(t{last}) FILTER (direction = 1) AS b1
        FROM grouped WHERE n0 = 1 AND n{last} = 1 GROUP BY flow),
    answer AS (SELECT flow, sign((b0 - a0) - (b1 - a1)) AS vote FROM asked),
    sizes AS (SELECT flow, sign(sum(CASE direction WHEN 0 THEN bytes ELSE -bytes END)) AS vote FROM heights GROUP BY flow),
    votes AS (SELECT flow, coalesce(nullif(sign(ttl.vote), 0), nullif(answer.vote, 0)) AS vote,
            coalesce(nullif(sizes.vote, 0), 1) AS guess
        FROM (SELECT DISTINCT flow FROM members) LEFT JOIN ttl USING (flow) LEFT JOIN answer USING (flow)
            LEFT JOIN sizes USING (flow)),
    hosts AS (SELECT flow, point, list_sort([fields[2], fields[4]]) AS pair,
            CASE WHEN (fields[2] <= fields[4]) != flip THEN 1 ELSE -1 END AS sense
        FROM ({ends}) QUALIFY row_number() OVER (PARTITION BY flow ORDER BY point) = 1),
    known AS (SELECT point, pair, sign(sum(vote * sense)) AS vote FROM votes JOIN hosts USING (flow) WHERE vote IS NOT NULL
        GROUP BY point, pair),
    settled AS (SELECT flow, coalesce(votes.vote, nullif(known.vote, 0) * sense, guess) AS heading,
            CASE WHEN votes.vote IS NOT NULL THEN 'packets' WHEN nullif(known.vote, 0) IS NOT NULL THEN 'host' ELSE 'bytes' END
            AS evidence, regexp_matches(' ' || array_to_string(pair, ' '), ' (ff.2:|224[.]0[.]0[.])') AS local
        FROM votes JOIN hosts USING (flow) LEFT JOIN known USING (point, pair))
SELECT flow, 0::TINYINT AS direction, heading::INTEGER AS heading, evidence, local FROM settled
UNION ALL SELECT flow, 1, -heading::INTEGER, evidence, local FROM settled
"""
ENDS = """
SELECT flow, {point} AS point, fields, flip FROM members JOIN conversations{point} USING (conversation, incarnation)
WHERE point = {point}
"""


def find_headings(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Fills `headings`: flow, direction, heading, evidence, and whether the destination is link-local multicast."""
    ends = " UNION ALL ".join(ENDS.format(point=point) for point in range(points))
    connection.execute(HEADINGS.format(ends=ends, last=points - 1))
