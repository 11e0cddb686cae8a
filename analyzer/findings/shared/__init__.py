# SPDX-License-Identifier: Apache-2.0
"""Problems of several flows with one cause: the server that they went to, the queue or the path that they shared."""
