# SPDX-License-Identifier: Apache-2.0
"""Matches packets at several capture points: one row of `crossings` for each packet that some point captured.

A TCP segment is identified by its position in the stream, counted from the SYN; segments longer than the wire's are split.
A block of wiretale is identified by run, stream and sequence, any other datagram by payload digest and length. Repeated
transmissions are distinguished by IPv4 ID if the path keeps it, else by time: a packet cannot arrive before it was sent,
and an arrival is matched with the latest transmission that is possible.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

DATA, CONTROL, BLOCK, DATAGRAM = range(4)
KEY = "flow, direction, kind, key1, key2"
PLACE = 2**40  # added to stream positions, so that those below the first byte stay positive
IDS_ALIKE = 0.9  # share of packets with equal IDs at both points, from which IDs are usable
# The least delay between two points, in the order in which packets pass them: SQL terms that are added to the time at
# the first and subtracted from the time at the second; {time} is that time.
Floors = dict[tuple[int, int], tuple[str, str]]
SLACK_NS = 200_000  # by which a packet may seem to arrive sooner than the least delay
SEQUENCE_TURN = 2**32
BUCKET = 16_384  # bytes of a stream; overlapping segments are searched within a bucket

# The beginning of each stream: its SYN, or that of another point, else sequence number 0.
BASES = """
CREATE TABLE bases AS
WITH known AS ({known})
SELECT point, flow, direction, coalesce(isn, any_value(isn) OVER (PARTITION BY flow, direction), 0)::BIGINT AS base
FROM known
"""
KNOWN = """
SELECT {point} AS point, flow, unnest([0, 1])::TINYINT AS direction,
    unnest(CASE WHEN flip THEN [isn1, isn0] ELSE [isn0, isn1] END) AS isn
FROM members JOIN conversations{point} USING (conversation, incarnation) WHERE point = {point}
"""
SEEN = """
CREATE TABLE seen{point} AS
WITH turned AS (SELECT packets{point}.*, flow, (side != flip::UTINYINT)::TINYINT AS direction
    FROM packets{point} JOIN (FROM members WHERE point = {point}) USING (conversation, incarnation))
SELECT flow, direction, packet, part, frame, interface, time_ns, payload, ip_id, stamp,
    ttl, whole, run,
    CASE WHEN protocol != 6 THEN CASE WHEN run IS NULL THEN {datagram} ELSE {block} END
        WHEN payload > 0 THEN {data} ELSE {control} END::TINYINT AS kind,
    CASE WHEN protocol = 6 THEN (sequence::BIGINT - here.base) & 4294967295 END AS position,
    CASE WHEN protocol = 6 THEN hash(digest_short, CASE WHEN flags & 16 = 16
                THEN (acknowledgment::BIGINT - back.base) & 4294967295 END)
        WHEN run IS NULL THEN {digest} ELSE number END::UBIGINT AS key1,
    CASE WHEN run IS NULL OR protocol = 6 THEN payload ELSE run * 65536 + stream END::UBIGINT AS key2,
    CASE WHEN flags & 16 = 16 AND protocol = 6 THEN (acknowledgment::BIGINT - back.base) & 4294967295 END AS acknowledged,
    CASE WHEN protocol = 6 THEN mss ELSE 0 END AS mss
FROM turned
LEFT JOIN (SELECT flow, direction, base FROM bases WHERE point = {point}) AS here USING (flow, direction)
LEFT JOIN (SELECT flow, 1 - direction AS direction, base FROM bases WHERE point = {point}) AS back USING (flow, direction)
"""
# Streams of 2 GiB and more: sequence numbers wrap, so each step to the next packet is the shorter way around.
STRETCHED = """
CREATE TABLE stretched{point} AS
SELECT flow, direction FROM seen{point} WHERE position IS NOT NULL
GROUP BY flow, direction HAVING max(position) - min(position) >= 2147483648
"""
UNWRAPPED = """
CREATE TABLE unwrapped{point} AS
SELECT packet, first_value(position) OVER way + coalesce(sum(step) OVER way, 0)::BIGINT AS position
FROM (SELECT *, ((position - lag(position) OVER (PARTITION BY flow, direction ORDER BY packet) + 2147483648)
        & 4294967295) - 2147483648 AS step
    FROM seen{point} SEMI JOIN stretched{point} USING (flow, direction))
WINDOW way AS (PARTITION BY flow, direction ORDER BY packet ROWS UNBOUNDED PRECEDING)
"""
LONG = """
CREATE VIEW long{point} AS
SELECT seen{point}.* REPLACE (coalesce(unwrapped{point}.position, seen{point}.position) AS position)
FROM seen{point} LEFT JOIN unwrapped{point} USING (packet)
"""
# If a capture began after a wrap of the sequence numbers, its positions are shifted by multiples of 2^32.
SHIFTS = """
CREATE TABLE shifts AS
SELECT *, round((first_value(start) OVER (PARTITION BY flow, direction ORDER BY point) - start) / {turn})::BIGINT * {turn}
    AS shift
FROM ({starts})
"""
STARTS = """
SELECT {point} AS point, flow, direction, arg_min(position, packet) AS start FROM {rows}{point}
WHERE position IS NOT NULL GROUP BY flow, direction
"""
# The largest segment on the wire: the least over the points of their largest segment. If every point captured longer ones
# (offload), it is the MSS option less 12 bytes of timestamps.
SIZES = """
CREATE TABLE sizes AS
WITH each AS ({each}),
    option AS (SELECT flow, 1 - direction AS direction, min(nullif(option, 0)) AS option FROM each GROUP BY flow, direction),
    least AS (SELECT flow, direction, min(largest) AS largest FROM each WHERE largest > 0 GROUP BY flow, direction)
SELECT flow, direction, largest, option,
    CASE WHEN largest > option THEN option - 12 ELSE largest END::BIGINT AS size
FROM least LEFT JOIN option USING (flow, direction)
"""
EACH_SIZE = """
SELECT flow, direction, max(payload) FILTER (kind = 0) AS largest, max(mss) AS option FROM seen{point}
WHERE position IS NOT NULL GROUP BY flow, direction
"""
UNITS = """
SELECT {point}::TINYINT AS point, flow, direction, kind,
    CASE kind WHEN 0 THEN position + shift + {place} WHEN 1 THEN key1 ELSE key1 END::UBIGINT AS key1,
    CASE kind WHEN 0 THEN payload WHEN 1 THEN position + shift + {place} ELSE key2 END::UBIGINT AS key2,
    packet, part, frame, interface, time_ns, payload::INTEGER AS bytes, coalesce(ip_id, 0)::BIGINT AS ip_id, stamp, whole
FROM long{point} LEFT JOIN (FROM shifts WHERE point = {point}) USING (flow, direction)
    LEFT JOIN sizes USING (flow, direction)
WHERE kind != 0 OR payload <= size
UNION ALL
SELECT {point}, flow, direction, kind, (position + shift + {place} + piece * size)::UBIGINT,
    least(size, payload - piece * size)::UBIGINT, packet, piece, frame, interface, time_ns,
    least(size, payload - piece * size)::INTEGER, CASE WHEN ip_id > 0 THEN (ip_id + piece) % 65536 ELSE 0 END, stamp, whole
FROM (SELECT *, unnest(range(0, (payload + size - 1) // size)) AS piece
    FROM long{point} JOIN (FROM shifts WHERE point = {point}) USING (flow, direction)
    JOIN sizes USING (flow, direction) WHERE kind = 0 AND payload > size)
"""
# Columns that later steps need.
HEIGHTS = """
SELECT {point} AS point, flow, direction, median(ttl) AS ttl, sum(payload) AS bytes FROM seen{point} GROUP BY flow, direction
"""
ACKNOWLEDGED = """
SELECT {point} AS point, flow, direction, max(acknowledged) AS upto FROM seen{point} ANTI JOIN stretched{point}
    USING (flow, direction) WHERE acknowledged IS NOT NULL GROUP BY flow, direction
"""


def columns(points: int, text: str, separator: str = ", ") -> str:
    """Returns the text for each point, in which {p} is its number."""
    return separator.join(text.format(p=point) for point in range(points))


def is_cut(connection: duckdb.DuckDBPyConnection, points: int) -> bool:
    """Returns whether the short digest must be used, because a snap length truncated some payload."""
    tests = columns(
        points,
        "SELECT bool_or(captured < least(payload, 128)) AS cut FROM loaded{p} WHERE protocol != 6 AND run IS NULL",
        " UNION ALL ",
    )
    row = connection.execute(f"SELECT coalesce(bool_or(cut), false) FROM ({tests})").fetchone()
    return bool(row and row[0])


def lay_out(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Fills `units`: each packet of each point by its identity, with super-segments split."""
    digest = "digest_short" if is_cut(connection, points) else "digest"
    connection.execute(BASES.format(known=" UNION ALL ".join(KNOWN.format(point=p) for p in range(points))))
    kinds = {"data": DATA, "control": CONTROL, "block": BLOCK, "datagram": DATAGRAM}
    for point in range(points):
        connection.execute(SEEN.format(point=point, digest=digest, **kinds))
        connection.execute(f"DROP VIEW packets{point}")
        connection.execute(f"DROP TABLE loaded{point}")
        for statement in (STRETCHED, UNWRAPPED, LONG):
            connection.execute(statement.format(point=point))
    starts = " UNION ALL ".join(STARTS.format(point=p, rows="long") for p in range(points))
    connection.execute(SHIFTS.format(starts=starts, turn=SEQUENCE_TURN))
    each = " UNION ALL ".join(EACH_SIZE.format(point=p) for p in range(points))
    connection.execute(SIZES.format(each=each))
    runs = columns(
        points, "SELECT flow, direction, run, position IS NOT NULL AS tcp FROM seen{p} WHERE run IS NOT NULL", " UNION "
    )
    connection.execute(f"CREATE TABLE runs AS {runs}")
    for name, each_point in (("heights", HEIGHTS), ("acknowledged", ACKNOWLEDGED)):
        rows = " UNION ALL ".join(each_point.format(point=p) for p in range(points))
        connection.execute(f"CREATE TABLE {name} AS {rows}")
    units = " UNION ALL ".join(UNITS.format(point=p, place=PLACE) for p in range(points))
    connection.execute(f"CREATE TABLE units AS {units}")
    for point in range(points):
        for kind, name in (("VIEW", "long"), ("TABLE", "seen"), ("TABLE", "unwrapped")):
            connection.execute(f"DROP {kind} {name}{point}")


# Most packets were sent once and captured at most once at each point: one grouping matches them all.
GROUPED = """
CREATE TABLE grouped AS
SELECT {key}, max(bytes) AS bytes, {each} FROM units GROUP BY {key}
"""
EACH_ID = """
any_value(packet) FILTER (point = {p}) AS p{p}, any_value(frame) FILTER (point = {p}) AS f{p},
any_value(time_ns) FILTER (point = {p}) AS t{p}, coalesce(bool_or(whole) FILTER (point = {p}), false) AS w{p}
"""
EACH_GROUP = (
    "count(*) FILTER (point = {p}) AS n{p}, any_value(ip_id) FILTER (point = {p}) AS i{p}, "
    f"any_value(stamp) FILTER (point = {{p}}) AS s{{p}}, {EACH_ID}"
)
# Directions that sent everything several times: IDs are usable if the first point has those of later points too.
IDS_OF_REPEATED = """
INSERT INTO ids
WITH rest AS (SELECT DISTINCT point, {key}, ip_id FROM units ANTI JOIN ids USING (flow, direction) WHERE ip_id != 0),
    earliest AS (SELECT flow, direction, min(point) AS point FROM rest GROUP BY flow, direction),
    original AS (SELECT rest.* FROM rest JOIN earliest USING (flow, direction, point))
SELECT rest.flow, rest.direction, count(original.ip_id) >= {alike} * count(*) FROM rest
JOIN earliest ON rest.flow = earliest.flow AND rest.direction = earliest.direction AND rest.point > earliest.point
LEFT JOIN original ON rest.flow = original.flow AND rest.direction = original.direction AND rest.kind = original.kind
    AND rest.key1 = original.key1 AND rest.key2 = original.key2 AND rest.ip_id = original.ip_id
GROUP BY ALL
"""
# The IPv4 ID distinguishes transmissions, else the TSval, if the path keeps it.
REPEATED = """
CREATE TABLE repeated AS
SELECT {key}, usable, stamped
FROM (SELECT grouped.*, coalesce(ids.usable, false) OR coalesce(stamps.usable, false) AS usable,
        NOT coalesce(ids.usable, false) AND coalesce(stamps.usable, false) AS stamped
    FROM grouped LEFT JOIN ids USING (flow, direction) LEFT JOIN stamps USING (flow, direction))
WHERE {several} OR (usable AND ({differ}))
"""
EACH_CROSSING = "p{p}, f{p}, t{p}, w{p}"


def group(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Fills `grouped` and `ids`."""
    connection.execute(GROUPED.format(key=KEY, each=columns(points, EACH_GROUP)))
    once = columns(points, "n{p} <= 1", " AND ")
    places = list(combinations(range(points), 2))
    for name, mark in (("ids", "i"), ("stamps", "s")):
        pairs = [
            f"SELECT flow, direction, {mark}{a} AS a, {mark}{b} AS b FROM grouped WHERE n{a} = 1 AND n{b} = 1 AND {once}"
            for a, b in places
        ]
        together = " UNION ALL ".join(pairs) or "SELECT 0 AS flow, 0 AS direction, 0 AS a, 0 AS b WHERE false"
        connection.execute(
            f"CREATE TABLE {name} AS SELECT flow, direction, count(*) FILTER (a = b) >= {IDS_ALIKE} * count(*) AS usable "
            f"FROM ({together}) WHERE a != 0 AND b != 0 GROUP BY flow, direction"
        )
    connection.execute(IDS_OF_REPEATED.format(key=KEY, alike=IDS_ALIKE))
    pairs = [
        f"(n{a} = 1 AND n{b} = 1 AND CASE WHEN stamped THEN s{a} != s{b} ELSE i{a} != i{b} AND i{a} != 0 AND i{b} != 0 END)"
        for a, b in places
    ]
    connection.execute(
        REPEATED.format(key=KEY, several=columns(points, "n{p} > 1", " OR "), differ=" OR ".join(pairs) or "false")
    )
    each = columns(points, EACH_CROSSING)
    connection.execute(
        f"CREATE TABLE crossings AS SELECT {KEY}, bytes, {each}, false AS copy FROM grouped ANTI JOIN repeated USING ({KEY})"
    )


# A packet that a point captured on two interfaces counts once: the n-th on one is the n-th on the other.
ONCE = """
CREATE TABLE once AS
SELECT * FROM (SELECT marked.*, row_number() OVER (PARTITION BY point, {key}, ip_id, interface ORDER BY packet, part) AS nth
    FROM (SELECT units.* REPLACE (CASE WHEN stamped THEN coalesce(stamp, 0) ELSE ip_id END AS ip_id), usable
        FROM units JOIN repeated USING ({key})) AS marked)
QUALIFY row_number() OVER (PARTITION BY point, {key}, ip_id, nth ORDER BY packet, part) = 1
"""
# IPv4 IDs wrap after 65,536 packets: if they rise in small steps, they are unwrapped like sequence numbers.
TURNS = """
CREATE TABLE turned AS
WITH steps AS (SELECT point, flow, direction, packet, part, ip_id,
        ((ip_id - lag(ip_id) OVER (PARTITION BY point, flow, direction ORDER BY packet, part) + 32768) & 65535) - 32768
        AS step
    FROM once WHERE usable AND kind >= 2),
    orderly AS (SELECT flow, direction FROM steps GROUP BY flow, direction
        HAVING median(abs(step)) < 1024 AND count(*) > 32768),
    counted AS (SELECT point, flow, direction, packet, part, first_value(ip_id) OVER way
            + coalesce(sum(step) OVER way, 0)::BIGINT AS turned
        FROM steps SEMI JOIN orderly USING (flow, direction)
        WINDOW way AS (PARTITION BY point, flow, direction ORDER BY packet, part ROWS UNBOUNDED PRECEDING)),
    starts AS (SELECT point, flow, direction, arg_min(turned, packet) AS start FROM counted GROUP BY ALL),
    shifts AS (SELECT *, round((first_value(start) OVER (PARTITION BY flow, direction ORDER BY point) - start) / 65536)
            ::BIGINT * 65536 AS shift FROM starts)
SELECT point, packet, part, turned + shift AS turned FROM counted JOIN shifts USING (point, flow, direction)
"""
BY_ID = """
CREATE TABLE by_id AS
SELECT {key}, turned, nth, max(bytes) AS bytes, {each}
FROM (SELECT once.* EXCLUDE (nth), coalesce(turned, ip_id) AS turned,
        row_number() OVER (PARTITION BY point, {key}, coalesce(turned, ip_id) ORDER BY packet, part) AS nth
    FROM once LEFT JOIN turned USING (point, packet, part) WHERE usable)
GROUP BY {key}, turned, nth
"""


def match_by_id(connection: duckdb.DuckDBPyConnection, points: int) -> None:
    """Matches repeated transmissions by IPv4 ID, if the path keeps it."""
    connection.execute(ONCE.format(key=KEY))
    connection.execute("DROP TABLE units; DROP TABLE grouped")
    connection.execute(TURNS)
    connection.execute(BY_ID.format(key=KEY, each=columns(points, EACH_ID)))
    # More packets than at the first point on the way are copies that the network made.
    counts = [f"nullif(count(p{point}) OVER same, 0)" for point in range(points)]
    origin = (
        f"CASE WHEN heading > 0 THEN coalesce({', '.join(counts)}) ELSE coalesce({', '.join(reversed(counts))}) END"
    )
    connection.execute(
        f"INSERT INTO crossings SELECT {KEY}, bytes, {columns(points, EACH_CROSSING)}, nth > {origin} "
        f"FROM by_id JOIN headings USING (flow, direction) WINDOW same AS (PARTITION BY {KEY}, turned)"
    )


# Repeated transmissions without usable IDs: `f` is the number of the latest transmission that an arrival can match.
BY_TIME = """
CREATE OR REPLACE TABLE received AS
WITH sent AS (SELECT {key}, time_ns + {sent} AS moment, row_number() OVER way AS nth FROM pool WHERE point = {origin}
        WINDOW way AS (PARTITION BY {key} ORDER BY time_ns, packet, part)),
    sendings AS (SELECT {key}, count(*) AS sendings FROM sent GROUP BY {key}),
    got AS (SELECT {key}, packet, part, time_ns + {slack} - {got} AS moment, sendings, row_number() OVER way AS nth,
            count(*) OVER (PARTITION BY {key}) AS several
        FROM pool JOIN sendings USING ({key}) WHERE point = {point}
        WINDOW way AS (PARTITION BY {key} ORDER BY time_ns, packet, part)),
    feasible AS (SELECT got.*, coalesce(sent.nth, 0) AS f FROM got ASOF LEFT JOIN sent ON {same}
        AND got.moment >= sent.moment)
SELECT {key}, packet, part, CASE WHEN several > sendings THEN CASE WHEN nth <= f THEN nth ELSE 0 END
    ELSE nth + min(f - nth) OVER (PARTITION BY {key} ORDER BY nth ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    END AS origin
FROM feasible
"""


def path_order(points: int, heading: int) -> list[int]:
    """Returns the points in the order in which a packet passes them."""
    return list(range(points)) if heading > 0 else list(reversed(range(points)))


def match_by_time(connection: duckdb.DuckDBPyConnection, points: int, floors: Floors) -> None:
    """Matches repeated transmissions by time."""
    for heading in (1, -1):
        connection.execute(
            "CREATE OR REPLACE TABLE pool AS SELECT once.* FROM once JOIN headings USING (flow, direction) "
            f"WHERE NOT usable AND heading = {heading}"
        )
        order = path_order(points, heading)
        for place, origin in enumerate(order):
            match_from(connection, points, origin, order[place + 1 :], floors)


def crossing(point: int, row: str = "") -> str:
    """Returns SQL: the columns of a point from a row of a packet, which must end with a dot."""
    columns_of = f"{row}packet AS p{point}, {row}frame AS f{point}, {row}time_ns AS t{point}"
    return f"{columns_of}, coalesce({row}whole, false) AS w{point}"


def match_from(
    connection: duckdb.DuckDBPyConnection, points: int, origin: int, later: list[int], floors: Floors
) -> None:
    """Moves the transmissions of one point, with their arrivals at later points, from the pool to `crossings`."""
    connection.execute(
        f"CREATE OR REPLACE TABLE sendings AS SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY time_ns, packet, part) AS "
        f"origin FROM pool WHERE point = {origin}"
    )
    empty = {p: f"NULL AS p{p}, NULL AS f{p}, NULL AS t{p}, false AS w{p}" for p in range(points)}
    joins, values = "", {**empty, origin: crossing(origin, "s.")}
    for point in later:
        sent, got = floors[origin, point]
        connection.execute(
            BY_TIME.format(
                key=KEY,
                same=" AND ".join(f"got.{name} = sent.{name}" for name in KEY.split(", ")),
                origin=origin,
                point=point,
                sent=sent.format(time="time_ns"),
                got=got.format(time="time_ns"),
                slack=SLACK_NS,
            )
        )
        connection.execute(
            f"CREATE OR REPLACE TABLE got{point} AS SELECT received.origin, pool.* FROM received JOIN pool USING ({KEY}, "
            f"packet, part) WHERE pool.point = {point}"
        )
        joins += f" LEFT JOIN got{point} AS g{point} USING ({KEY}, origin)"
        values[point] = crossing(point, f"g{point}.")
    each = ", ".join(values.values())
    connection.execute(f"INSERT INTO crossings SELECT {KEY}, s.bytes, {each}, false FROM sendings AS s{joins}")
    for point in later:  # arrivals without a transmission are copies
        each = ", ".join({**empty, point: crossing(point)}.values())
        connection.execute(f"INSERT INTO crossings SELECT {KEY}, bytes, {each}, true FROM got{point} WHERE origin < 1")
    connection.execute(f"DELETE FROM pool WHERE ({KEY}) IN (SELECT ({KEY}) FROM sendings)")


# Resegmented data: an arrival counts for the latest earlier transmission of the same bytes.
RECUT = """
CREATE OR REPLACE TABLE recut AS
WITH lost AS (SELECT crossings.rowid AS sending, flow, direction, key1 AS start, key1 + key2 AS stop, t{origin} AS time_ns
        FROM crossings JOIN headings USING (flow, direction)
        WHERE heading = {heading} AND kind = 0 AND p{origin} IS NOT NULL AND p{point} IS NULL AND NOT copy),
    extra AS (SELECT crossings.rowid AS arrival, flow, direction, key1 AS start, key1 + key2 AS stop, t{point} AS time_ns,
            p{point}, f{point} FROM crossings JOIN headings USING (flow, direction)
        WHERE heading = {heading} AND kind = 0 AND p{point} IS NOT NULL AND p{origin} IS NULL AND NOT copy),
    shared AS (SELECT sending, arrival, l.start, l.stop, e.time_ns, p{point}, f{point},
            least(l.stop, e.stop)::BIGINT - greatest(l.start, e.start)::BIGINT AS bytes
        FROM (SELECT *, unnest(range((start // {bucket})::BIGINT, ((stop - 1) // {bucket})::BIGINT + 1)) AS bucket FROM lost) AS l
        JOIN (SELECT *, unnest(range((start // {bucket})::BIGINT, ((stop - 1) // {bucket})::BIGINT + 1)) AS bucket
            FROM extra) AS e USING (flow, direction, bucket)
        WHERE l.start < e.stop AND e.start < l.stop
            AND e.time_ns + {slack} - {got} >= l.time_ns + {sent}
        QUALIFY row_number() OVER (PARTITION BY arrival, l.start ORDER BY l.time_ns DESC) = 1)
SELECT sending, sum(bytes) >= any_value(stop - start) AS whole, max(time_ns) AS time_ns,
    arg_max(p{point}, (time_ns, p{point})) AS p, arg_max(f{point}, (time_ns, p{point})) AS f, list(arrival) AS arrivals
FROM shared GROUP BY sending
"""


def match_recut(connection: duckdb.DuckDBPyConnection, points: int, floors: Floors) -> None:
    """Matches segments that a router or proxy resegmented, or that were retransmitted with other boundaries."""
    for heading in (1, -1):
        order = path_order(points, heading)
        for place, origin in enumerate(order):
            for point in order[place + 1 :]:
                sent, got = floors[origin, point]
                connection.execute(
                    RECUT.format(
                        origin=origin,
                        point=point,
                        heading=heading,
                        bucket=BUCKET,
                        sent=sent.format(time="l.time_ns"),
                        got=got.format(time="e.time_ns"),
                        slack=SLACK_NS,
                    )
                )
                connection.execute(
                    f"UPDATE crossings SET p{point} = recut.p, f{point} = recut.f, t{point} = recut.time_ns, "
                    f"w{point} = true FROM recut WHERE crossings.rowid = recut.sending AND recut.whole"
                )
                # Resegmented arrivals are not packets of their own.
                connection.execute("DELETE FROM crossings WHERE rowid IN (SELECT unnest(arrivals) FROM recut)")
