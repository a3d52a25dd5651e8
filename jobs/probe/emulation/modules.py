"""Modules that are made up here, and found by import as if they were installed."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

from jobs.probe.emulation.ledger import Ledger
from jobs.probe.emulation.limits import EmulationLacks, EmulationLimit

Contents = Callable[[str], Mapping[str, Any]]
"""Of a module, by its name."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked before all others, so that what is installed by the same name is not found."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._exact: dict[str, Mapping[str, Any]] = {}
        self._hollow: set[str] = set()

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def answer(self, name: str, contents: Mapping[str, Any]) -> None:
        """Module *name* has these contents, and using any other is a limit."""
        self._exact[name] = contents
        self._ledger.stub(name)

    def hollow(self, name: str) -> None:
        """Package *name* and all below it can be imported, and none of it used."""
        self._hollow.add(name)
        self._ledger.stub(f"{name}.*")

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  # of the interface
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in self._exact or self._is_hollow(fullname):
            is_package = fullname not in self._exact
            return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return HollowModule(spec.name) if self._is_hollow(spec.name) else StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(self._exact.get(module.__name__, {}))

    def _is_hollow(self, name: str) -> bool:
        return any(name == root or name.startswith(f"{root}.") for root in self._hollow)


class StubModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise EmulationLacks(f"{self.__name__}.{name}", "this stub does not have it")


class HollowModule(ModuleType):
    """Has every name, as a class: enough to be imported, annotated with and derived from."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        thing = _Hollow(name, (), {"__module__": self.__name__})
        setattr(self, name, thing)
        return thing


class _Hollow(type):
    """A class that can't be called, and whose attributes are more of the same."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Hollow(f"{cls.__name__}.{name}", (), {"__module__": cls.__module__})

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise EmulationLimit(f"{cls.__module__}.{cls.__name__}", "the package is only pretended")


def hide(names: Sequence[str]) -> None:
    """Let packages not be found, as on a machine that lacks them."""
    # How Python spells "this module can't be imported".
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
