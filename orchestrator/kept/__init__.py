"""What stays on disk: the records of a run, and what earlier runs tell."""
