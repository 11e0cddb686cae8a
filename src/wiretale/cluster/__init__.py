# SPDX-License-Identifier: Apache-2.0
"""`wiretale analyze --cluster`: cut, analysis of each shard, and join as tasks of a Dask cluster."""
