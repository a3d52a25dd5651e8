"""
Why a build could not be had.

* BuildError
  + BuildSpecError  what was asked for can't be built; asking again gives the same answer
  + BuildNodeError  this node could not; says nothing about the build
"""


class BuildError(Exception):
    """Its only argument is the message, so that it survives pickling."""

    @property
    def message(self) -> str:
        return str(self.args[0])


class BuildSpecError(BuildError):
    """A patch that does not apply, a wheel that is not there, a release that nobody made."""


class BuildNodeError(BuildError):
    """A download that failed, a full disk, a missing tool."""
