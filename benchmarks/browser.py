"""Chromium, as the machine has it: what the page is measured and tested in."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def path() -> str | None:
    """Of `CHROMIUM`, or else the first that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def opened() -> Iterator[Browser]:
    # It refuses root its sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()
