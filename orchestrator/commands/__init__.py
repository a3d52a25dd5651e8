"""One module per command; each has `main(words)`, which returns the exit code."""
