# SPDX-License-Identifier: Apache-2.0
"""Several capture points compared, as Parquet: every packet with the delay of each hop, and what was lost where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer.compare.packet_tables import packets_sql
from wiretale.reports.export.destination import output_folder
from wiretale.reports.export.parquet import FORMATS

if TYPE_CHECKING:
    from wiretale.analyzer.compare.comparison import Vantage


TABLES = ("packets", "lost")


def write_tables(vantage: Vantage, folder: Path) -> Path:
    """Writes `packets.parquet` and `lost.parquet` into a folder, made if it is not there, and returns its path.

    OutputError when something cannot be written; what was there before is still there then.
    """
    import duckdb

    packets = packets_sql(vantage)
    tables = dict(zip(TABLES, (packets, f"SELECT * FROM ({packets}) WHERE lost IS NOT NULL"), strict=True))
    with output_folder(folder) as partial:
        try:
            for name, sql in tables.items():
                target = str(partial / f"{name}.parquet").replace("'", "''")
                vantage.connection.execute(f"COPY ({sql}) TO '{target}' ({FORMATS['parquet']})")
        except duckdb.Error as error:
            raise OSError(str(error).splitlines()[0]) from None
    return folder
