"""What all tests need."""

import signal


def pytest_configure() -> None:
    """
    What tests start hears signals, also where whoever started the tests ignores them: a
    script's job in the background, or `nohup`.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(
                number,
                signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL,
            )
