"""What is fast, measured: each module prints figures, and as its last line one JSON object."""
