"""The page of a run, in a real browser."""

import json
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import a_run
from tests.browser.a_run import BROKEN, DROPPED, HARM, LOST
from tests.browser.conftest import DRAWN

pytestmark = pytest.mark.browser

CELLS = "td.cell:not(.other)"
AUTO = "h100/llama/auto/new"


def test_it_opens_from_disk_and_asks_for_nothing_else(page: Page, file: Path) -> None:
    """Whatever it asked for, or its policy forbade, would be in `troubles`."""
    summary = json.loads((file.parent / "summary.json").read_text())

    expect(page.locator("h1")).to_have_text(summary["gate"]["sentence"])
    expect(page.locator(CELLS)).to_have_count(13)


def test_text_of_others_stays_text(page: Page) -> None:
    goto(page, f"#{BROKEN}")
    panel(page).get_by_text("log: the last").click()

    expect(panel(page).locator("blockquote")).to_contain_text(HARM[:60])
    expect(panel(page).locator("pre").filter(has_text="the first line")).to_contain_text(HARM)
    expect(page.locator("#alike")).to_contain_text(HARM[:60])
    assert page.evaluate("window.harm") is None
    assert (page.locator("img").count(), page.locator("script").count()) == (0, 2)


def test_no_text_can_become_markup_and_no_other_script_or_style_runs(
    page: Page, troubles: list[str]
) -> None:
    said = page.evaluate(
        """() => {
          document.head.append(Object.assign(document.createElement("style"), {textContent: "h1 {display: none}"}));
          try {
            document.body.append(Object.assign(document.createElement("script"), {textContent: "window.harm = 3"}));
          } catch {}
          try { document.body.innerHTML = "<b>markup</b>"; } catch (error) { return String(error); }
        }"""
    )

    assert "TrustedHTML" in said
    assert page.evaluate("window.harm") is None
    expect(page.locator("h1")).to_be_visible()
    assert any("style-src" in trouble for trouble in troubles)
    troubles.clear()


def test_a_click_tells_what_was_asked_and_got_and_why(page: Page) -> None:
    cell(page, DROPPED).click()

    told = panel(page).inner_text()
    for part in (
        "failed",
        DROPPED,
        "draft.attention_backend was dropped: asked TRITON_ATTN, got FLASH_ATTN",
        "The engine runs on something else than was asked",
        "target FLASH_ATTN · 2 layers",
        "draft FLASH_ATTN · 2 layers",
        "KV group",
        "runner V1, KV layout LBNHC",
        "accepted: A, B",
        "load 0.3 s",
        'suite.select=["h100/eagle3/draft_triton/old"]',
    ):
        assert part in told
    row = panel(page).get_by_role("row").filter(has_text="draft.attention_backend")
    expect(row).to_have_text("draft.attention_backendTRITON_ATTNFLASH_ATTNdropped")
    panel(page).get_by_text("backends not taken").click()
    expect(panel(page)).to_contain_text("FLEX_ATTENTION: MLA not supported (validation)")


def test_an_open_cell_shows_the_same_question_to_every_build(page: Page) -> None:
    cell(page, DROPPED).click()
    panel(page).get_by_role("link", name="new").click()

    expect(panel(page).locator("h2")).to_have_text("h100/eagle3/draft_triton/new")
    expect(panel(page).locator(".builds li")).to_have_count(2)


def test_counts_filter_and_can_be_taken_back(page: Page) -> None:
    page.get_by_role("button", name="2 failed", exact=True).click()
    expect(page.locator(CELLS)).to_have_count(2)
    page.get_by_role("button", name="1 not run").click()
    expect(page.locator(CELLS)).to_have_count(3)
    page.get_by_role("button", name="clear all").click()
    expect(page.locator(CELLS)).to_have_count(13)


def test_everything_can_be_filtered_by(page: Page) -> None:
    for facet, value, left in (
        ("Verdict", "failed (waived)", 1),
        ("Category", "silent_fallback", 2),
        ("Vendor", "amd", 5),
        ("Card", "mi300x", 5),
        ("Model", "eagle3", 4),
        ("Backend", "unknown", 2),
        ("Build", "old", 6),
        ("Draft got", "TRITON_ATTN honoured", 2),
        ("Runner", "V2", 2),
        ("Gate", "waived", 1),
    ):
        page.locator("summary", has_text=re.compile(f"^{facet}$")).click()
        menu = page.get_by_role("group", name=facet, exact=True)
        menu.get_by_role("checkbox", name=f"{value} {left}", exact=True).check()
        expect(page.locator(CELLS)).to_have_count(left)
        menu.get_by_role("button", name="all", exact=True).click()
        expect(page.locator(CELLS)).to_have_count(13)


def test_text_finds_what_was_asked_got_and_logged(page: Page) -> None:
    for text, left in (
        ("gfx942", 5),
        ("mi300x TRITON", 2),
        ("TRITON -honoured", 4),
        ("the last line", 3),
        ("no such thing", 0),
    ):
        page.keyboard.press("/")
        page.keyboard.type(text)
        expect(page.locator(CELLS)).to_have_count(left)
        page.keyboard.press("Escape")
        expect(page.locator(CELLS)).to_have_count(13)


def test_a_link_leads_to_a_cell_and_to_what_was_looked_at(page: Page) -> None:
    page.get_by_role("button", name="2 failed", exact=True).click()
    cell(page, BROKEN).click()
    link = page.url
    goto(page, "")
    expect(panel(page)).to_be_hidden()
    goto(page, link.split("#", 1)[1].join(["#", ""]))

    assert link.endswith(f"matrix.html#{BROKEN}?verdict=failed")
    expect(panel(page).locator("h2")).to_have_text(BROKEN)
    expect(page.locator(CELLS)).to_have_count(2)
    expect(cell(page, BROKEN)).to_be_focused()


def test_a_link_to_a_cell_that_is_not_there_says_so(page: Page) -> None:
    goto(page, "#h100/llama/nothing/new")

    expect(panel(page)).to_contain_text("This run has no cell h100/llama/nothing/new.")


def test_the_way_back_leads_from_a_cell_to_the_table(page: Page) -> None:
    cell(page, BROKEN).click()
    cell(page, DROPPED).click()
    page.go_back()

    expect(panel(page)).to_be_hidden()
    expect(page.locator(CELLS)).to_have_count(13)


def test_a_link_to_differences_of_one_build_shows_the_matrix(page: Page, tmp_path: Path) -> None:
    page.goto(a_run.write(tmp_path, ["new"]).as_uri() + "#?view=differences")

    expect(page.locator(CELLS)).to_have_count(7)
    expect(page.get_by_role("button", name="differences")).to_have_count(0)


def test_the_address_can_be_changed_while_the_page_is_open(page: Page) -> None:
    page.evaluate("location.hash = '#mi300x/llama/auto/new?card=mi300x'")

    expect(panel(page).locator("h2")).to_have_text("mi300x/llama/auto/new")
    expect(page.locator(CELLS)).to_have_count(5)


def test_the_keyboard_walks_opens_follows_and_goes_back(page: Page) -> None:
    goto(page, f"#{AUTO}")
    page.keyboard.press("Escape")
    expect(panel(page)).to_be_hidden()
    expect(cell(page, AUTO)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(cell(page, "h100/llama/auto/old")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(panel(page).locator("h2")).to_be_focused()
    expect(panel(page).locator("h2")).to_have_text("h100/llama/broken/old")
    cell(page, "h100/llama/broken/old").focus()
    page.keyboard.press("ArrowRight")
    expect(panel(page).locator("h2")).to_have_text(BROKEN)


def test_one_key_leads_from_trouble_to_trouble(page: Page) -> None:
    seen = []
    for _ in range(4):
        page.keyboard.press("n")
        seen.append(panel(page).locator("h2").inner_text())

    assert seen == [DROPPED, "mi300x/eagle3/draft_triton/old", BROKEN, LOST]


def test_the_table_is_one_stop_of_the_tab_key(page: Page) -> None:
    assert page.locator('table.matrix [tabindex="0"]').count() == 1


def test_groups_fold_and_tell_what_is_in_them(page: Page) -> None:
    page.get_by_role("button", name="eagle3").click()

    expect(page.locator(CELLS)).to_have_count(9)
    expect(page.locator(".sum").first).to_have_text("1")
    page.get_by_role("button", name="unfold all").click()
    expect(page.locator(CELLS)).to_have_count(13)


def test_the_table_can_be_turned(page: Page) -> None:
    for across in ("models", "backends", "builds"):
        page.get_by_label("Across").select_option(across)
        expect(page.locator(CELLS)).to_have_count(13)


def test_two_builds_are_compared_as_the_judge_compares_them(page: Page) -> None:
    page.keyboard.press("d")

    found = {
        button.get_attribute("data-key"): button.locator("b").inner_text()
        for button in page.locator(".tally:not(.total)").all()
    }
    assert found == {
        "tally regressed": "1",
        "tally infrastructure": "1",
        "tally fixed": "2",
        "tally drift": "2",
        "tally unchanged": "1",
    }
    expect(page.locator(".compared")).to_contain_text("1 regression on sm_90, internal_error")
    expect(cell(page, AUTO)).to_contain_text("runner: V1 → V2")
    expect(page.locator("#alike")).to_contain_text("What changed from old to new")
    cell(page, AUTO).click()
    expect(panel(page)).to_contain_text("drift")


def test_the_list_has_the_worst_first_and_sorts(page: Page) -> None:
    page.keyboard.press("l")
    expect(page.locator("table.list tbody tr").first).to_contain_text("failed")
    page.get_by_role("button", name="seconds").click()
    first = page.locator("table.list tbody tr").first
    expect(first).to_contain_text("mi300x/eagle3/draft_triton/")
    first.click()
    expect(panel(page)).to_be_visible()


def test_what_failed_alike_stands_together(page: Page) -> None:
    groups = page.locator("#alike article")

    expect(groups.filter(has_text="port_in_use")).to_have_count(0)
    expect(groups.filter(has_text="2 passed (refused)")).to_have_count(1)
    groups.get_by_role("link", name=BROKEN).click()
    expect(panel(page).locator("h2")).to_have_text(BROKEN)


def test_kinds_differ_by_shape_and_not_by_colour_alone(page: Page) -> None:
    names = (
        *("passed", "as-expected", "failed", "excused", "not-run"),
        *("fixed", "regressed", "drift", "unchanged", "broken-before", "flaky", "no-baseline"),
        "mispredicted",
    )
    shapes = page.evaluate(
        """(names) => names.map((name) => {
          const sign = document.createElement("span");
          sign.className = `sign ${name}`;
          document.body.append(sign);
          return getComputedStyle(sign).clipPath;
        })""",
        names,
    )

    assert "none" not in shapes
    assert len({*shapes}) == len(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", [f"#{BROKEN}", f"#{AUTO}?view=differences", "#?view=list"])
def test_nothing_serious_bars_anybody(
    page: Page, scheme: Literal["light", "dark"], address: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    goto(page, address)

    found = Axe().run(page).response["violations"]
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"]])
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]
    assert serious == []


def test_it_is_dark_where_the_system_is_and_the_reader_may_choose(page: Page) -> None:
    light = ground(page)
    page.emulate_media(color_scheme="dark")
    dark = ground(page)
    page.get_by_role("button", name="theme: system").click()

    assert light != dark
    assert ground(page) == light
    page.reload()
    page.locator(DRAWN).wait_for()
    assert ground(page) == light


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("", f"#{BROKEN}", "#?view=differences", "#?view=list"):
        goto(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.getElementById('panel').scrollWidth") <= 390


def test_on_paper_there_is_nothing_to_press(page: Page) -> None:
    goto(page, f"#{BROKEN}")
    page.emulate_media(media="print", color_scheme="dark")

    expect(page.locator("#search")).to_be_hidden()
    expect(page.locator("table.matrix")).to_be_visible()
    expect(panel(page).locator("h2")).to_be_visible()
    assert ground(page) == "rgb(252, 251, 248)"
    assert len(page.pdf()) > 10_000


def test_without_scripts_the_answer_is_there(chromium: Browser, file: Path) -> None:
    bare = chromium.new_context(java_script_enabled=False).new_page()
    bare.goto(file.as_uri())

    expect(bare.locator("h1")).to_contain_text("blocked: 2 failed")
    expect(bare.locator("noscript code")).to_be_visible()
    bare.context.close()


def goto(page: Page, address: str) -> None:
    """As a new reader comes: with what a link says, and nothing else."""
    place = page.url.split("#")[0]
    page.goto("about:blank")
    page.goto(place + address)
    page.locator(DRAWN).wait_for()


def panel(page: Page) -> Locator:
    return page.locator("#panel")


def cell(page: Page, cell_id: str) -> Locator:
    """In the table, which has its cells by number."""
    summary = json.loads(
        Path(unquote(urlsplit(page.url).path)).with_name("summary.json").read_text()
    )
    ids = [each["id"] for each in summary["cells"]]
    return page.locator(f'td[data-cell="{ids.index(cell_id)}"]')


def ground(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))
