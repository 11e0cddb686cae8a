# SPDX-License-Identifier: Apache-2.0
"""JSON, CSV and Parquet, and the rules for output files."""
