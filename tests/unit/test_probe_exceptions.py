"""What an exception says."""

from collections.abc import Callable

from jobs.probe import exceptions


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


def test_an_exception_says_its_type_and_the_function_that_raised_it() -> None:
    seen = exceptions.chain(raised_by(lambda: refuse("no")))[0]

    assert seen.type == "builtins.ValueError"
    assert seen.where is not None
    assert seen.where.startswith("tests/unit/test_probe_exceptions.py:")
    assert seen.where.endswith(" refuse")


def test_an_endless_message_is_cut() -> None:
    error = ValueError("x" * 10_000)

    assert len(exceptions.chain(error)[0].message) == exceptions.LONGEST_MESSAGE


def test_the_functions_of_the_whole_chain_are_known() -> None:
    passed = exceptions.functions(raised_by(wrap_on_purpose))

    assert passed[-2:] == ("wrap_on_purpose", "refuse")


def test_a_message_that_no_encoding_carries_or_that_fails_is_still_told() -> None:
    class Mute(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    assert exceptions.chain(ValueError("\ud800"))[0].message == "\\ud800"
    assert "can't be read: RuntimeError" in exceptions.chain(Mute())[0].message
