"""How much of a report is shown where there is a limit."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.reports.fitting import Item, Limit, Part, fit

EVERYTHING = "All of it is in a file."


def a_part(thing: str, *forms: tuple[str, ...], begin: str = "", end: str = "") -> Part:
    items = tuple(Item(forms=each) for each in forms)
    return Part(thing=thing, items=items, begin=begin, end=end)


BLOCKERS = a_part("failure", ("a long story of one", "one"), ("a long story of two", "two"))
CELLS = Part(
    thing="cell",
    items=tuple(Item(forms=(f"row {n}",)) for n in range(100)),
    begin="<details>\n",
    end="\n</details>",
    can_wait=True,
)


def shown(most: int, *parts: Part) -> str:
    return fit("first", parts, "last", Limit(most=most), EVERYTHING)


def test_where_there_is_room_everything_is_shown_and_nothing_is_said_of_it() -> None:
    text = shown(10_000, BLOCKERS, CELLS)

    assert "a long story of two" in text
    assert "row 99" in text
    assert EVERYTHING not in text


def test_what_is_left_out_is_counted_where_it_is_missing_and_at_the_end() -> None:
    text = shown(300, BLOCKERS, CELLS)
    rows = text.count("row ")

    assert f"\n\n_and {100 - rows} cells more_\n</details>" in text
    assert text.endswith(
        f"\n\n**Left out for want of room: {100 - rows} cells.** {EVERYTHING}\n\nlast\n"
    )


def test_everything_gets_a_line_before_anything_gets_a_story() -> None:
    changes = a_part("change", *((f"change {n}",) for n in range(10)))
    texts = [shown(most, BLOCKERS, changes, CELLS) for most in range(150, 300)]

    assert all("change 9" in text for text in texts if "story" in text)
    assert any("a long story of one\ntwo" in text for text in texts)
    assert all("two" in text for text in texts if "change" in text)


def test_what_can_wait_gets_what_is_left() -> None:
    text = shown(len(shown(10_000, BLOCKERS, CELLS)) - 1, BLOCKERS, CELLS)

    assert "a long story of one\na long story of two" in text
    assert "row 80" in text


def test_a_part_of_which_nothing_fits_leaves_no_frame_behind() -> None:
    assert "<details>" not in shown(110, BLOCKERS, CELLS)


forms = st.lists(st.text("ab\n✅", max_size=30), min_size=1, max_size=3).map(
    lambda found: tuple(sorted(found, key=len, reverse=True))
)
some_parts = st.lists(
    st.builds(
        lambda thing, items, begin, end: a_part(thing, *items, begin=begin, end=end),
        st.sampled_from(["cell", "change"]),
        st.lists(forms, min_size=1, max_size=8),
        st.text("<", max_size=9),
        st.text(">", max_size=9),
    ),
    max_size=5,
)


@given(some_parts, st.integers(150, 500))
def test_the_limit_holds_by_whatever_measure(parts: list[Part], most: int) -> None:
    def size(text: str) -> int:
        return len(text.encode())

    assert size(fit("first", parts, "last", Limit(most=most, size=size), EVERYTHING)) <= most
