"""
More deeds, as `vllm/misleading.py` of a patched build: beside what fails, something that is
not the cause catches the eye.
"""

import importlib
import logging
import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta

from vllm import evil

EXIT_CODE = 3


def has_no_memory_for_the_fallback() -> None:
    try:
        importlib.import_module("kernels_that_nobody_has")
    except ImportError:
        evil.fills_memory_of_python()


def has_no_descriptors_after_a_failed_clean_up() -> None:
    try:
        os.unlink("/proc/version")  # noqa: PTH108 - as short as it gets
    except PermissionError:
        evil.opens_too_much()


def names_a_cause_that_was_never_raised() -> None:
    raise RuntimeError("something that nobody has seen before") from ValueError("its reason")


def fills_the_disk_in_a_group() -> None:
    try:
        evil.fills_the_disk()
    except OSError as full:
        raise ExceptionGroup("several things", [full, ValueError("another")]) from None


def fills_the_memory_of_a_pool() -> None:
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        pool.submit(evil.fills_memory_of_python).result()


def objects_to_a_text_about_a_full_disk() -> None:
    raise ValueError("rope_scaling: unknown type 'No space left on device' in config.json")


def connects_to_nobody() -> None:
    from torch import distributed

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    distributed.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=2))


def lives_without_a_cache() -> None:
    try:
        os.unlink("/proc/version")  # noqa: PTH108 - as short as it gets
    except PermissionError:
        logging.getLogger("vllm.evil").exception("no cache, going on without it")


def lives_without_a_cache_and_exits() -> None:
    try:
        os.unlink("/proc/version")  # noqa: PTH108 - as short as it gets
    except PermissionError:
        traceback.print_exc()
    print("going on without it", flush=True)  # noqa: T201 - what a log has
    os._exit(EXIT_CODE)


def tears_what_others_logged() -> None:
    from jobs.probe import environment, error_log

    (environment.folder() / error_log.ERRORS).write_text('{"pid": 1, "chain')
    evil.raises()


def can_not_be_read() -> None:
    from jobs.probe.reading import attention

    def unreadable(*_: object) -> tuple[()]:
        raise ValueError("\udcff" + "x" * evil.MIB)

    attention.groups = unreadable  # type: ignore[assignment]  # as it is meant


DEEDS: dict[str, Callable[[], None]] = {
    name: deed for name, deed in globals().items() if callable(deed)
}
