"""A cluster as it is seen from outside: what Ray's dashboard answers, and nothing else."""

import logging
import os
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
from ray.exceptions import AuthenticationError
from ray.job_submission import JobStatus, JobSubmissionClient

from orchestrator.errors import ClusterError, ConfigError
from orchestrator.running.on_ray import door
from orchestrator.running.on_ray.door import TOKENS

ADDRESS = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-fA-F:]+\])(?::\d{1,5})?(?:/[\w./-]*)?")
REACH_S = 20.0
POLL_S = 1.0
STARTING_S = 60.0
_PASSING = re.compile(r"status code (?:429|5\d\d)")
"""What a dashboard answers while it starts, and a proxy while there is none behind it."""

_NO_AGENT = "No available agent to submit job"
_WHY_NO_AGENT = (
    "no agent on the cluster's head takes jobs. Look at dashboard_agent.log there, among Ray's "
    "logs (/tmp/ray/session_latest/logs): if its port is taken, as by another Ray of that machine, "
    "start the head with --dashboard-agent-listen-port=0"
)

_NO_VERSION = "Version check returned 404"
_IS_THERE = "already exists"

_TALKATIVE = ("ray.dashboard.modules.dashboard_sdk", "ray._private.runtime_env.packaging")


class UnreachableError(ClusterError):
    """It did not answer now; it may later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Versions:
    ray: str
    python: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    is_over: bool
    was_stopped: bool
    """By somebody who wished it."""

    node_id: str | None
    """Where its driver runs; None until it does."""

    exit_code: int | None
    """Of the driver; None where it did not get to its own end."""

    message: str


class JobsApi:
    """Every call raises ClusterError, or UnreachableError where it is worth another try."""

    def __init__(self, address: str) -> None:
        if not ADDRESS.fullmatch(address):
            raise ConfigError(
                f'"{address}" can be no address of a Jobs API: it is the URL of the cluster\'s '
                "dashboard, such as http://10.0.0.1:8265"
            )
        self._address = address.rstrip("/")
        _spare_proxies(urlsplit(self._address).hostname or "")
        # Its news are not those of whoever waits for a run.
        for talkative in _TALKATIVE:
            logging.getLogger(talkative).setLevel(logging.WARNING)
        self._client: Any = self._told(lambda: JobSubmissionClient(self._address))

    def versions(self) -> Versions:
        told = self._get("/api/v0/cluster_metadata").json()["data"]
        return Versions(ray=told["rayVersion"], python=told["pythonVersion"])

    def answers_anyone(self) -> bool:
        """Whether somebody elsewhere is let in without a token, who then may run anything."""
        port = urlsplit(self._address).port
        ports = () if port is None else (port,)
        return door.narrowed(door.asked_without_token(self._address), ports) == "off"

    def submit(self, entrypoint: str, folder: Path, runtime_env: Mapping[str, Any]) -> str:
        """
        Upload *folder* as the working directory; returns the submission's id.

        A cluster that starts takes no job yet, and a slow one says the same of a job that
        it has taken. So the id is ours, and the same job is submitted until it is there.
        """
        submission = f"vllm-matrix-{uuid.uuid4().hex[:12]}"
        environment = {**runtime_env, "working_dir": str(folder)}
        until = time.monotonic() + STARTING_S
        while True:
            try:
                self._told(
                    lambda: self._client.submit_job(
                        entrypoint=entrypoint, runtime_env=environment, submission_id=submission
                    )
                )
            except ClusterError as error:
                if _IS_THERE in str(error):
                    return submission
                if not isinstance(error, UnreachableError):
                    raise
                if time.monotonic() > until:
                    if _NO_AGENT in str(error):
                        raise ClusterError(f"{self._address}: {_WHY_NO_AGENT}") from error
                    raise
                time.sleep(POLL_S)
            else:
                return submission

    def job(self, submission: str) -> Job:
        told = self._told(lambda: self._client.get_job_info(submission))
        status = JobStatus(told.status)
        return Job(
            is_over=status.is_terminal(),
            was_stopped=status is JobStatus.STOPPED,
            node_id=told.driver_node_id,
            exit_code=0 if status is JobStatus.SUCCEEDED else told.driver_exit_code,
            message=told.message or "",
        )

    def output(self, submission: str) -> str:
        """Of the driver, as far as it has come."""
        return str(self._told(lambda: self._client.get_job_logs(submission)))

    def stop(self, submission: str) -> None:
        self._told(lambda: self._client.stop_job(submission))

    def files(self, node_id: str, pattern: str) -> set[str]:
        """Names in the folder that the node's Ray keeps its logs in."""
        told = self._get("/api/v0/logs", node_id=node_id, glob=pattern).json()
        return {name for names in told["data"]["result"].values() for name in names}

    def file(self, node_id: str, name: str) -> str:
        return str(self._get("/api/v0/logs/file", node_id=node_id, filename=name, lines="-1").text)

    def _get(self, path: str, **query: str) -> Any:
        # Nothing public carries the client's authentication.
        ask = self._client._do_request  # noqa: SLF001
        answer = self._told(lambda: ask("GET", f"{path}?{urlencode(query)}", timeout=REACH_S))
        if not answer.ok:
            raise UnreachableError(f"{self._address}{path} answers {answer.status_code}")
        return answer

    def _told(self, ask: Any) -> Any:
        """Whatever Ray raises, in a message that says what to do."""
        try:
            return ask()
        except AuthenticationError as error:
            raise ClusterError(
                f"{self._address} lets in only those who have its token: set RAY_AUTH_MODE=token "
                f"and put it into {TOKENS}; `ray get-auth-token` tells it on the head"
            ) from error
        except (requests.HTTPError, requests.JSONDecodeError, KeyError) as error:
            raise ClusterError(self._no_dashboard()) from error
        except (ConnectionError, requests.RequestException) as error:
            raise UnreachableError(
                f"nothing answers at {self._address}: is it the dashboard's URL, does the cluster "
                "run, and is the port open from here?"
            ) from error
        except (RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())
            if _NO_VERSION in said:
                raise ClusterError(self._no_dashboard()) from error
            kind = UnreachableError if _PASSING.search(said) else ClusterError
            # Of a traceback its end says most.
            raise kind(f"the Jobs API at {self._address} refuses: {said[-300:]}") from error

    def _no_dashboard(self) -> str:
        return (
            f"what answers at {self._address} is no dashboard of Ray's: name the URL that `ray "
            "start --head` printed for it"
        )


def _spare_proxies(host: str) -> None:
    """Ray's client takes those of the environment, which lead to no server of this machine."""
    if door.is_loopback(host):
        for name in ("no_proxy", "NO_PROXY"):
            os.environ[name] = ",".join(filter(None, [os.environ.get(name), host]))
