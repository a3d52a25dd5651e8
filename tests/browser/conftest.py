"""One browser for all tests, and a page that is opened anew for each."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from benchmarks import browser
from tests.browser import a_run

DRAWN = "#matrix table"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Where no browser is, these tests are of no use; but in CI there has to be one."""
    if browser.path() is None and os.environ.get("CI") != "true":
        pytest.skip("there is no Chromium: `apt-get install chromium`, or set CHROMIUM=PATH")
    with browser.opened() as opened:
        yield opened


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_run.write(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[tuple[Page, list[str]]]:
    troubles: list[str] = []
    page = chromium.new_page()
    # Of a machine that has other work, too.
    page.set_default_timeout(40_000)
    expect.set_options(timeout=40_000)
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.extend(_beside_the_page(request)))
    yield page, troubles
    page.close()


@pytest.fixture
def troubles(window: tuple[Page, list[str]]) -> list[str]:
    """What the browser complains about, and what the page asks for beside itself."""
    return window[1]


@pytest.fixture
def page(window: tuple[Page, list[str]], file: Path, troubles: list[str]) -> Iterator[Page]:
    """As a new reader sees it. A test that ends with troubles fails."""
    page, _ = window
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(media="screen", color_scheme="light")
    page.goto("about:blank")
    page.goto(file.as_uri())
    page.locator(DRAWN).wait_for()
    yield page
    page.evaluate("localStorage.clear()")
    left = [*troubles]
    troubles.clear()
    assert left == []


def _beside_the_page(request: Request) -> list[str]:
    return [] if request.is_navigation_request() else [f"a request: {request.url}"]
