# SPDX-License-Identifier: Apache-2.0
"""The options of an analysis: one record, in which each option is declared once, as data.

The command line, the Python API, shards, the cluster, stores and the metadata of output folders are made from the declarations,
and hand the record on as it is. The core takes it, too: analyzer/core/pipeline/options.h has a line for each field.
A new option is a field of AnalysisOptions, its type in AnalysisKeywords, and that line. The checks of other arguments of the
API are here, too.
"""

import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from wiretale.analyzer.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from wiretale.analyzer import _core

    Flows = int | Iterable[int] | None
    Time = int | str | datetime | None
else:
    Flows = Time = object

MAX_FLOWS = 1_000_000
PACKETS_MAX = 2_000_000  # rows of a packets table
ROWS_MAX = 2**63 - 1
NS_LEAST, NS_MOST = -(2**63), 2**63 - 1

#: what a value is: text; a time, in ns since the epoch; a number; a size in bytes
Kind = Literal["text", "time", "count", "size"]


#: the packets that become rows: of these flows of an earlier analysis, or all or none, or all with the columns that identify
#: them in another capture, and of flows their ends alone
Packets = list[int] | Literal["all", "none", "identified"]


class Option(NamedTuple):
    """How users give an option, and what depends on it."""

    flags: str
    metavar: str
    help: str
    kind: Kind
    #: bounds of a count or a size
    least: int = 0
    most: int = 0
    #: in the API and in the names of arguments, if it is not that of the field
    keyword: str = ""
    #: whether it chooses packets, which a cluster does when it cuts captures: shards have only those
    chooses_packets: bool = False
    #: whether rows depend on it
    changes_rows: bool = True

    @property
    def long_flag(self) -> str:
        """`--max-flows`."""
        return self.flags.split()[-1]

    def checked(self, name: str, value: Any) -> Any:
        """Returns the value that the API or the command line gave. UsageError, with the name, if it is invalid."""
        match self.kind:
            case "text":
                return filter_text(value)
            case "time":
                return time_ns(value)
            case _:
                return number_within(name, value, self.least, self.most, " bytes" if self.kind == "size" else "")

    def text(self, value: Any) -> str:
        """Returns a value of the record as the command line takes it."""
        if self.kind != "time":
            return str(value)
        from wiretale.analyzer.time import show_time

        return show_time(value).replace(" ", "T")

    def is_valid(self, value: object) -> bool:
        """Returns whether a value of JSON, which can be anything, is one of the record."""
        if self.kind == "text":
            return isinstance(value, str) and "\0" not in value
        least, most = (NS_LEAST, NS_MOST) if self.kind == "time" else (self.least, self.most)
        return type(value) is int and least <= value <= most


class AnalysisOptions(NamedTuple):
    """The options of an analysis. None means that there is no such limit, or that wiretale chooses."""

    filter: Annotated[
        str | None,
        Option(
            "-f --filter",
            "BPF",
            "analyze only packets that match a pcap-filter(7) expression, as in tcpdump",
            "text",
            chooses_packets=True,
        ),
    ] = None
    start_ns: Annotated[
        int | None,
        Option(
            "--start",
            "TIME",
            "skip packets before TIME: ISO 8601 (UTC) or epoch seconds",
            "time",
            keyword="start",
            chooses_packets=True,
        ),
    ] = None
    end_ns: Annotated[
        int | None,
        Option("--end", "TIME", "skip packets at or after TIME", "time", keyword="end", chooses_packets=True),
    ] = None
    max_flows: Annotated[
        int,
        Option(
            "--max-flows",
            "N",
            "maximum number of open flows, 1 to 2 kB each; the longest-idle flow is closed first (default {default})",
            "count",
            least=1,
            most=2**31 - 1,
        ),
    ] = MAX_FLOWS
    jobs: Annotated[
        int | None,
        Option(
            "-j --jobs",
            "N",
            "threads, besides those that decompress files (default: one for each processor); results don't depend on it",
            "count",
            least=1,
            most=64,
            changes_rows=False,
        ),
    ] = None
    block_size: Annotated[
        int | None,
        Option(
            "--block-size",
            "SIZE",
            "bytes of each block (8192, 64KiB) in TCP streams whose block headers were not captured",
            "size",
            least=32,
            most=2**30,  # common/block.h
        ),
    ] = None

    @classmethod
    def of(cls, keywords: Mapping[str, object]) -> "AnalysisOptions":
        """Returns the record of keywords of the API, each of which may be missing. UsageError if a value is invalid."""
        names = {keyword_of(field): field for field in OPTIONS}
        if unknown := next((name for name in keywords if name not in names), None):
            raise TypeError(f"an analysis has no option {unknown!r}")
        values: dict[str, Any] = {}
        for keyword, value in keywords.items():
            field = names[keyword]
            is_unset = value is None and DEFAULTS[field] is None
            values[field] = None if is_unset else OPTIONS[field].checked(keyword, value)
        options = cls(**values)
        check_range(options.start_ns, options.end_ns)
        return options

    @classmethod
    def from_json(cls, values: object) -> "AnalysisOptions":
        """Returns the record of row_options(). ValueError if it is anything else."""
        if not isinstance(values, dict) or not values.keys() <= OPTIONS.keys():
            raise ValueError("expected options of an analysis")
        for field, value in values.items():
            if not OPTIONS[field].is_valid(value) and not (value is None and DEFAULTS[field] is None):
                raise ValueError(f"{field}: {value!r}")
        return cls(**values)

    def row_options(self) -> dict[str, Any]:
        """Returns the values on which rows depend, as JSON has them."""
        return {field: value for field, value in self._asdict().items() if OPTIONS[field].changes_rows}

    def words(self) -> list[str]:
        """Returns the options on which rows depend as words of a command: `--max-flows`, `5`."""
        values = self.row_options()
        return [
            word
            for name, value in values.items()
            if value != DEFAULTS[name]
            for word in (OPTIONS[name].long_flag, OPTIONS[name].text(value))
        ]

    def choosing_packets(self, chooses: bool = True) -> "AnalysisOptions":
        """Returns a record with the options alone that choose packets, or with all others."""
        unset = {name: DEFAULTS[name] for name, option in OPTIONS.items() if option.chooses_packets != chooses}
        return self._replace(**unset)


class AnalysisKeywords(TypedDict, total=False):
    """The options as keywords of the API."""

    filter: str | None
    start: Time
    end: Time
    max_flows: int
    jobs: int | None
    block_size: int | None


class ReadingMode(NamedTuple):
    """What one reading of the files is for, which no user chooses."""

    #: a list of flows fills no other table but interfaces and time_spans
    packets: Packets = "none"
    packet_rows_most: int = PACKETS_MAX
    #: fills that table, for the flows whose packets are wanted
    time_spans: bool = False
    #: fills only that table
    interfaces_only: bool = False
    #: further files may follow, and rows of flows be taken as they end
    running: bool = False
    #: of a shard of a cluster, and the time that all shards reached together
    shard: bool = False
    clock_ns: int | None = None
    #: an analysis of the same files with the same options, finished: packets that cannot concern these flows are skipped
    first: "_core.Analysis | None" = None


OPTIONS: dict[str, Option] = {name: kind.__metadata__[0] for name, kind in AnalysisOptions.__annotations__.items()}
DEFAULTS: dict[str, Any] = AnalysisOptions._field_defaults


def keyword_of(field: str) -> str:
    """Returns the name of an option in the API and of its argument on the command line."""
    return OPTIONS[field].keyword or field


NO_OPTIONS = AnalysisOptions()


# --- checks: each raises UsageError if its argument is invalid


def flow_numbers(flows: Flows, count: int) -> list[int]:
    """Returns flow numbers below `count`; all of them for None."""
    if flows is None:
        return list(range(count))
    try:
        numbers = [operator.index(number) for number in ([flows] if isinstance(flows, int) else flows)]
    except TypeError:
        raise UsageError(f"flows {flows!r}: expected a flow number, several of them, or None for all") from None
    for number in numbers:
        if not 0 <= number < count:
            bounds = f"from 0 to {count - 1:,}" if count else "but there are none"
            raise UsageError(f"flow {number:,}: expected a number of the flows table, {bounds}")
    return numbers


def row_limit(most: int) -> int:
    """Returns a number of rows."""
    try:
        limit = operator.index(most)
    except TypeError:
        raise UsageError(f"most {most!r}: expected a number of rows") from None
    if not 0 <= limit <= ROWS_MAX:
        raise UsageError(f"most {limit}: expected a number of rows, 0 or more")
    return limit


def filter_text(filter: object) -> str | None:
    """Returns a capture filter, or None."""
    if filter is not None and (not isinstance(filter, str) or "\0" in filter):
        raise UsageError(f"filter {filter!r}: expected a text as 'tcp port 443', or None")
    return filter


def number_within(name: str, value: Any, least: int, most: int, unit: str = "") -> int:
    """Returns an integer within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} {value!r}: expected a whole number from {least} to {most:,}{unit}") from None
    if not least <= number <= most:
        raise UsageError(f"{name} {number}: expected {least} to {most:,}{unit}")
    return number


def output_path(path: str | os.PathLike[str]) -> Path:
    """Returns the path of an output."""
    try:
        return Path(path)
    except TypeError:
        raise UsageError(f"{path!r}: expected a path to write to") from None


def link_rate(rate: float | str | None) -> int | None:
    """Returns the bit/s of a link given as number or text."""
    if isinstance(rate, str):
        from wiretale.analyzer.units import parse_rate

        return parse_rate(rate)
    if rate is None:
        return None
    if not isinstance(rate, (int, float)) or not 1 <= rate < 2**63:
        raise UsageError(f"link rate {rate!r}: expected bit/s, or a text as '1G'")
    return int(rate)


def other_time_ns(time: Any) -> int:
    """Returns the ns of a datetime (UTC without a zone; pandas' have nanoseconds), or of a type with __index__."""
    from datetime import UTC, datetime, timedelta

    if isinstance(time, datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
        microseconds = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return int(microseconds) * 1000 + int(getattr(time, "nanosecond", 0))
    if type(time).__module__ == "numpy" and hasattr(time, "astype"):  # datetime64
        time = time.astype("datetime64[ns]").astype("int64").item()
    try:
        return operator.index(time)
    except TypeError:
        raise UsageError(
            f"time {time!r}: expected ns since the epoch, a text as '2026-01-15T12:00:00Z' or a datetime"
        ) from None


def time_ns(time: Time) -> int | None:
    """Returns the ns of a time given as ns, text or datetime; it must fit into int64."""
    if time is None:
        return None
    if isinstance(time, str):
        from wiretale.analyzer.time import parse_time

        ns = parse_time(time)
    elif isinstance(time, int):
        ns = time
    else:
        ns = other_time_ns(time)
    if not -(2**63) <= ns < 2**63:
        raise UsageError(f"time {time}: expected one between the years 1678 and 2262")
    return ns


def check_range(start_ns: int | None, end_ns: int | None) -> None:
    """Raises UsageError if the start is not before the end."""
    if start_ns is not None and end_ns is not None and start_ns >= end_ns:
        from wiretale.analyzer.time import show_time

        raise UsageError(f"start {show_time(start_ns)}: expected a time before end {show_time(end_ns)}")
