# SPDX-License-Identifier: Apache-2.0
"""A store: the tables of many captures as one Parquet data set, in a folder that DuckDB alone can query (docs/store.md)."""
