# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --cluster`: split, analysis of each shard, and gather as tasks of a Dask cluster."""
