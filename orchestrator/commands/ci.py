"""What CI systems say of themselves in the environment."""

import os
from collections.abc import Mapping

_PAGES = ("BUILDKITE_BUILD_URL", "CI_PIPELINE_URL", "BUILD_URL")
"""Of Buildkite, GitLab and Jenkins."""


def page(environment: Mapping[str, str] = os.environ) -> str | None:
    """Where a person finds the job that this process is of, and its files."""
    if (run := environment.get("GITHUB_RUN_ID")) is not None:
        server, repository = environment["GITHUB_SERVER_URL"], environment["GITHUB_REPOSITORY"]
        return f"{server}/{repository}/actions/runs/{run}"
    return next((environment[name] for name in _PAGES if environment.get(name)), None)
