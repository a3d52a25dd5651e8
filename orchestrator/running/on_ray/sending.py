"""Files of builds on their way from this machine to nodes that lack them."""

from collections.abc import Sequence
from typing import Any

import ray

from jobs.contract.builds import BuildSpec
from jobs.node import shipped_files
from jobs.node.shipped_files import Original


class Sent:
    """What is in Ray's object store for that: each content once, however many nodes take it."""

    def __init__(self) -> None:
        self._known: list[tuple[BuildSpec, tuple[Original, ...]]] = []
        self._references: dict[str, list[Any]] = {}

    def originals(self, spec: BuildSpec) -> tuple[Original, ...]:
        """Raises BuildError, see `shipped_files.originals`."""
        for known, originals in self._known:
            if known == spec:
                return originals
        originals = shipped_files.originals(spec)
        self._known.append((spec, originals))
        return originals

    def references(self, original: Original) -> Sequence[Any]:
        """To its chunks. Raises OSError if it can't be read any more."""
        if original.sha256 not in self._references:
            chunks = [ray.put(chunk) for chunk in shipped_files.chunks(original)]
            self._references[original.sha256] = chunks
        return self._references[original.sha256]
