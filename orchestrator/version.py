"""The one place that says it; the package's metadata are made from it."""

VERSION = "0.1.0"
