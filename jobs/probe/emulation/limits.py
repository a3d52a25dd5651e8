"""
What the emulation can't do: its own failures, told apart from vLLM's.

How others fail for having no card is among the rules of the orchestrator.
"""


class EmulationLimit(Exception):  # noqa: N818  # the project's word for it, in every record
    """Says nothing about vLLM: a real card would have gone on."""

    def __init__(self, stub: str, why: str) -> None:
        super().__init__(f"{stub}: {why}")


class EmulationLacks(EmulationLimit, AttributeError):  # noqa: N818  # as above
    """A name that a stub does not have; `hasattr` says so without an error."""
