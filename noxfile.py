"""The one list of checks; scripts/test and CI call it, `nox --list` shows it."""

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "architecture", "docs", "tests"]

BIN = ".venv/bin/"


@nox.session
def lint(session: nox.Session) -> None:
    """Style, spelling."""
    session.run(f"{BIN}ruff", "check", ".", external=True)
    session.run(f"{BIN}ruff", "format", "--check", ".", external=True)
    session.run(f"{BIN}codespell", external=True)


@nox.session
def types(session: nox.Session) -> None:
    """Strict types."""
    session.run(f"{BIN}mypy", external=True)


@nox.session
def architecture(session: nox.Session) -> None:
    """Who may import whom."""
    session.run(f"{BIN}lint-imports", external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site in site/; a dead link or anchor in it is an error."""
    session.run(
        f"{BIN}mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"}, external=True
    )


@nox.session
def fast(session: nox.Session) -> None:
    """Tests that need no engine, no Ray and no browser."""
    _pytest(session, "-n", "2", "-m", "not (engine or ray or browser or long)")


@nox.session
def tests(session: nox.Session) -> None:
    """Every test but the long ones: first those that can share a machine with others."""
    if session.posargs:
        _pytest(session, "-m", "not long")
    else:
        fast(session)
        _pytest(session, "-m", "(engine or ray or browser) and not long")


@nox.session
def long(session: nox.Session) -> None:
    """Soaks and sweeps."""
    _pytest(session, "-m", "long")


def _pytest(session: nox.Session, *words: str) -> None:
    session.run(f"{BIN}pytest", *words, *session.posargs, external=True)
