"""What an exception says."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from jobs.probe import exceptions, wording


def raised_by(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:  # noqa: BLE001  # any that the test raises
        return error
    raise AssertionError("nothing was raised")


def refuse(why: str) -> None:
    raise ValueError(why)


def wrap_on_purpose() -> None:
    try:
        refuse("the cause")
    except ValueError as error:
        raise RuntimeError("the wrapper") from error


def fail_while_handling() -> None:
    try:
        refuse("the cause")
    except ValueError:
        raise RuntimeError("the wrapper")  # noqa: B904  # the point of the test


def hide_the_cause() -> None:
    try:
        refuse("the cause")
    except ValueError:
        raise RuntimeError("the wrapper") from None


def messages(error: BaseException) -> list[str]:
    return [seen.message for seen in exceptions.chain(error)]


def test_the_root_cause_is_last_whether_it_was_named_or_only_on_the_way() -> None:
    assert messages(raised_by(wrap_on_purpose)) == ["the wrapper", "the cause"]
    assert messages(raised_by(fail_while_handling)) == ["the wrapper", "the cause"]


def test_a_cause_that_the_code_hides_stays_hidden() -> None:
    assert messages(raised_by(hide_the_cause)) == ["the wrapper"]


def is_handled(error: BaseException) -> list[bool]:
    return [seen.handled for seen in exceptions.chain(error)]


def test_what_was_only_being_handled_is_marked() -> None:
    assert is_handled(raised_by(wrap_on_purpose)) == [False, False]
    assert is_handled(raised_by(fail_while_handling)) == [False, True]


def test_a_group_is_opened_and_only_its_first_member_taken_for_the_cause() -> None:
    group = ExceptionGroup("several", [raised_by(wrap_on_purpose), OSError("full")])

    assert messages(group) == ["several (2 sub-exceptions)", "the wrapper", "the cause", "full"]
    assert is_handled(group) == [False, False, False, True]


def test_a_cause_that_was_never_raised_is_told_to_be_where_it_was_named() -> None:
    def name_a_cause() -> None:
        raise RuntimeError("the wrapper") from ValueError("the cause")

    wrapper, cause = exceptions.chain(raised_by(name_a_cause))

    assert cause.where == wrapper.where is not None


def test_what_a_pool_says_as_text_is_no_exception_of_its_own() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        error = raised_by(pool.submit(refuse, "no").result)

    assert messages(error) == ["no"]


def test_of_an_endless_chain_the_beginning_and_the_end_are_told() -> None:
    error = ValueError("root")
    for number in range(30_000):
        outer = ValueError(str(number))
        outer.__cause__ = error
        error = outer

    told = messages(error)

    assert (told[0], told[-1], len(told)) == ("29999", "root", exceptions.MOST_LINKS)


def test_an_exception_may_hide_what_python_knows_of_it() -> None:
    class Odd(Exception):  # noqa: N818
        @property
        def __cause__(self) -> BaseException | None:  # type: ignore[override]  # the point
            raise RuntimeError

    assert messages(Odd("odd")) == ["odd"]


def test_an_exception_says_its_type_and_the_function_that_raised_it() -> None:
    seen = exceptions.chain(raised_by(lambda: refuse("no")))[0]

    assert seen.type == "builtins.ValueError"
    assert seen.where is not None
    assert seen.where.startswith("tests/unit/test_probe_exceptions.py:")
    assert seen.where.endswith(" refuse")


def test_an_endless_message_is_cut() -> None:
    error = ValueError("x" * 10_000_000)

    assert len(exceptions.chain(error)[0].message) == wording.LONGEST


def test_a_secret_is_masked_before_a_message_is_cut_through_it() -> None:
    token = "hf_" + "a1B2" * 9
    error = ValueError("x" * (wording.LONGEST - 20) + f" {token} ")

    assert token[:8] not in exceptions.chain(error)[0].message


def test_the_functions_of_the_whole_chain_are_known() -> None:
    passed = exceptions.functions(raised_by(wrap_on_purpose))

    assert passed[-2:] == ("wrap_on_purpose", "refuse")


def test_a_message_that_no_encoding_carries_or_that_fails_is_still_told() -> None:
    class Mute(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    assert exceptions.chain(ValueError("\ud800"))[0].message == "\\ud800"
    assert "can't be read: RuntimeError" in exceptions.chain(Mute())[0].message
