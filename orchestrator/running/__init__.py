"""Cells on a cluster: which can run, in what order, and how far they are."""
