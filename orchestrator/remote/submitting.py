"""From words to a job on a cluster, and to its answer."""

import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pydantic
import ray

from jobs.secrets import is_secret, redactor
from orchestrator.asked.compose import config_dir
from orchestrator.asked.conf_files import CONF, ConfFiles
from orchestrator.asked.config import ClusterChoice, Config, RuntimeEnv
from orchestrator.errors import ClusterError, ConfigError
from orchestrator.remote import foreground, leaks, submissions, working_dir
from orchestrator.remote.following import Following
from orchestrator.remote.jobs_api import Job, JobsApi
from orchestrator.remote.sent_progress import PARCELS
from orchestrator.remote.submissions import Submission

STOP_WAIT, STOP_WAIT_S = "RAY_JOB_STOP_WAIT_TIME_S", "60"
"""Ray would kill a run three seconds after it is asked to stop, before its last parcel."""

THERE = '"$HOME"/vllm-matrix-runs'
Say = Callable[[str], None]

_runtime_env = pydantic.TypeAdapter(RuntimeEnv)


def submitted(words: Sequence[str], config: Config, address: str, say: Say) -> Submission:
    """The words have been composed here already, so that mistakes cost nothing."""
    _check(words, config)
    api = JobsApi(address)
    _compare_versions(api, say)
    more = config_dir(words)
    with working_dir.assembled(more) as folder:
        command = _entrypoint(words, more, config.cluster)
        asked = config.cluster.runtime_env
        environment = _runtime_env.dump_python(asked, mode="json", exclude_defaults=True)
        environment["env_vars"] = {STOP_WAIT: STOP_WAIT_S, **asked.env_vars, PARCELS: "1"}
        submission = Submission(
            id=api.submit(command, folder, environment),
            address=address,
            on_interrupt=config.cluster.on_interrupt,
        )
    submissions.remember(submission, Path(config.runs))
    say(f"submitted as {submission.id} to {address}")
    say(f"to come back to it: vllm-matrix attach {submission.id}")
    return submission


def followed(submission: Submission, runs: Path, say: Say) -> tuple[Job | None, Path | None]:
    """The job at its end, or None if somebody left it alone; and what is here of its run."""
    api = JobsApi(submission.address)
    following = Following(api, submission.id, runs, say)
    with foreground.taken():
        while True:
            try:
                return following.to_the_end(), following.received.run
            except KeyboardInterrupt:
                match _wish(submission.on_interrupt):
                    case "stop":
                        say("the run is asked to stop; what finished is kept")
                        api.stop(submission.id)
                    case "detach":
                        say(f"the run goes on; to come back: vllm-matrix attach {submission.id}")
                        return None, following.received.run
                    case _:
                        say("following it again")


def _check(words: Sequence[str], config: Config) -> None:
    """Raises ConfigError for what everybody could read, or nobody could find there."""
    mistakes = [
        f"{word.partition('=')[0]} holds a secret, and everybody who sees the cluster's dashboard "
        "can read a job's words: set it in the environment of the cluster's nodes"
        for word in words
        if _hides(word)
    ]
    for name, value in config.cluster.runtime_env.env_vars.items():
        if is_secret(name, config.secrets) or _hides(f"{name}={value}"):
            mistakes.append(
                f"cluster.runtime_env.env_vars.{name} is a secret, and everybody who sees the "
                "cluster's dashboard can read it: set it in the environment of the nodes"
            )
    mistakes += [
        f"build.{name}: {path} lies here, and the run on the cluster would look for it there: put "
        "it on a disk that the cluster sees, and name that path"
        for name, build in config.build.items()
        for path in (build.wheel, build.checkout)
        if path is not None and Path(path).exists()
    ]
    more = config_dir(words)
    folders = (CONF, *([Path(more)] if more else []))
    mistakes += [
        f"gate.waiver_files: {name} lies beside what goes to the cluster: put it into conf/, or "
        "into a folder that --config-dir names"
        for name in config.gate.waiver_files
        if Path(name).is_absolute() or not ConfFiles(folders=folders).find(name)
    ]
    mistakes += [
        f"{place} holds a secret, and everybody who may read the job's files could read it there: "
        "set it in the environment of the cluster's nodes"
        for folder in folders
        for place in leaks.places(folder, config.secrets)
    ]
    if mistakes:
        raise ConfigError("this can't be submitted:", mistakes)


def _hides(word: str) -> bool:
    key, _, value = word.partition("=")
    secret = redactor({"here": os.environ, "typed": {key.rpartition(".")[2]: value}})
    return secret.text(word) != word


def _compare_versions(api: JobsApi, say: Say) -> None:
    there = api.versions()
    if there.ray.rsplit(".", 1)[0] != ray.__version__.rsplit(".", 1)[0]:
        raise ClusterError(
            f"the cluster runs Ray {there.ray}, and this version of vllm-matrix is made for "
            f"{ray.__version__}: it would fail on the way. Use a cluster of that version."
        )
    ours = platform.python_version()
    if there.python.split(".")[:2] != ours.split(".")[:2]:
        say(
            f"the cluster's Python is {there.python}, here it is {ours}: what a run is asked "
            "travels as text, so this is no trouble unless its packages differ"
        )
    if api.answers_anyone():
        say(
            "the cluster takes jobs from anyone who reaches it: see docs/security.md for how to "
            "set a token"
        )


def _entrypoint(words: Sequence[str], more: str | None, cluster: ClusterChoice) -> str:
    """The same words, but for what has another place there."""
    ours = [word for word in words if not word.startswith("runs=")]
    if more:
        there = {more: working_dir.MORE, f"--config-dir={more}": f"--config-dir={working_dir.MORE}"}
        ours = [there.get(word, word) for word in ours]
    runs = shlex.quote(cluster.runs) if cluster.runs else THERE
    return f"exec python -m orchestrator {shlex.join(ours)} runs={runs}"


def _wish(on_interrupt: str) -> str:
    if on_interrupt != "ask":
        return on_interrupt
    if not foreground.can_ask():
        return "detach"
    sys.stderr.write("\n[s]top the run, [d]etach from it, or [g]o on following it? ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline().strip().lower()
    except KeyboardInterrupt:
        return "detach"
    return {"s": "stop", "d": "detach"}.get(answer[:1], "go on")
