# SPDX-License-Identifier: Apache-2.0
"""`wiretale lab`: emulated networks of Linux namespaces."""
