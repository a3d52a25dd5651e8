"""Ray's errors, in a line."""

import ray.exceptions


def one_line(error: Exception) -> str:
    """The cause of a task's error where there is one, without Ray's traceback."""
    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(cause).__name__
