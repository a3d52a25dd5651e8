"""
What a live engine resolved, read inside each of its workers.

vLLM keeps these facts in different places from version to version; whatever
cannot be read becomes a note in the report, never a failure of the cell.
"""
