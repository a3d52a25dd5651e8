"""What all tests need."""

import signal

from hypothesis import settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")


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
