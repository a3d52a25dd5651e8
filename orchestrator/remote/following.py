"""A run on a cluster, as it is seen from here: what it says, and what it leaves."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from orchestrator import discretion
from orchestrator.errors import ClusterError, StoppedError
from orchestrator.remote.jobs_api import Job, JobsApi, UnreachableError
from orchestrator.remote.parcels import ParcelError
from orchestrator.remote.receiver import Receiver

POLL_S = 2.0
LAST_PARCEL_S = 20.0
"""After its end a job may still be writing its last one."""

_RAYS = re.compile(r"^(\d{4}-\d\d-\d\d [\d:,]+\s+INFO job_manager|Running entrypoint for job )")


class Following:
    """It can be broken off at any time, and gone on with by another one."""

    def __init__(
        self, api: JobsApi, submission: str, runs: Path, say: Callable[[str], None]
    ) -> None:
        self.received = Receiver(runs, submission)
        self._api = api
        self._submission = submission
        self._say = say
        self._said = 0
        self._is_away = False
        self._mangled: int | None = None
        """The parcel that was of no use when it was last fetched."""

    def to_the_end(self) -> Job:
        while True:
            try:
                job = self._api.job(self._submission)
                if job.is_over:
                    self._await_last(job)
                    return job
                self._look(job)
                if self._is_away:
                    self._is_away = False
                    self._say("the cluster answers again")
            except UnreachableError as error:
                if not self._is_away:
                    self._is_away = True
                    self._say(f"{error} The run goes on there; trying again until it answers.")
            time.sleep(POLL_S)

    def _look(self, job: Job) -> None:
        self._pass_on(self._api.output(self._submission), is_whole=job.is_over)
        if job.node_id is None:
            return
        there = self._api.files(job.node_id, f"{self._submission}-*.parcel")
        while (name := f"{self._submission}-{self.received.expected:05}.parcel") in there:
            if not self._takes(self._api.file(job.node_id, name)):
                return

    def _takes(self, text: str) -> bool:
        """Or else the same parcel is fetched once more, since it may have been torn on the way."""
        try:
            self.received.take(text)
        except ParcelError as error:
            number = self.received.expected
            if self._mangled != number:
                self._mangled = number
                return False
            self._say(f"part {number} of the run is passed over, and missing here: {error}")
            self.received.pass_over()
        return True

    def _await_last(self, job: Job) -> None:
        """Of a job that was killed there is none, and of a node that is lost no file."""
        ended_itself = job.was_stopped or job.exit_code is not None
        until = time.monotonic() + (LAST_PARCEL_S if ended_itself else POLL_S)
        while True:
            with suppress(UnreachableError):
                self._look(job)
            if self.received.is_complete or time.monotonic() > until:
                break
            time.sleep(POLL_S / 4)
            # If it is the cluster that can't be reached, there is time.
            self._api.job(self._submission)
        if self.received.passed_over:
            self._say("not all of the run came here; all of it is in its folder on the cluster")
        elif ended_itself and not self.received.is_complete:
            self._say("not all of the run came here; to try again: vllm-matrix attach")

    def _pass_on(self, output: str, *, is_whole: bool) -> None:
        """What it says since the last time, in whole lines."""
        end = len(output) if is_whole else output.rfind("\n") + 1
        for line in output[self._said : end].splitlines():
            if not _RAYS.match(line):
                self._say(str(discretion.plain(line)))
        self._said = max(self._said, end)


def exit_code(job: Job) -> int:
    """The gate's own. Raises RunError where the job did not come so far."""
    if job.was_stopped:
        raise StoppedError("the job was stopped; what finished is kept, and the same goes on there")
    if job.exit_code is None or job.exit_code < 0:
        raise ClusterError(
            f"the job ended without an answer: {' '.join(job.message.split())[:500]} What finished "
            "is kept on the cluster and here; submit the same again to go on from there."
        )
    return job.exit_code
