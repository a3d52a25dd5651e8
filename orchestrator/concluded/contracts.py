"""What vLLM owes to each request, as data per vLLM version and runner (rules/contracts.yaml)."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from jobs.contract.terms import STRICT
from orchestrator.asked.config import FieldName, RequestVerdict, Runner

FILE = Path(__file__).parents[1] / "rules" / "contracts.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    field: FieldName
    versions: str = ""
    """A PEP 440 specifier such as `>=0.31,<0.34`; empty fits every version."""

    runner: Runner | None = None
    methods: tuple[str, ...] = ()
    """Of speculative decoding; none: all of them."""

    explicit: tuple[RequestVerdict, ...]
    unset: Literal[RequestVerdict.AUTOSELECTED, RequestVerdict.INHERITED]
    partial: bool = False
    """Whether a request is honoured when some of the layers got it."""

    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Contracts:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    contracts: tuple[Contract, ...]
    alike: tuple[tuple[str, ...], ...] = ()

    def of(
        self,
        field: FieldName,
        *,
        vllm_version: str | None,
        runner: str | None,
        method: str | None = None,
    ) -> Contract:
        """The first contract that fits; an unknown version fits every range."""
        for contract in self.contracts:
            if (
                contract.field == field
                and _fits(contract.versions, vllm_version)
                and contract.runner in {None, runner}
                and (not contract.methods or method in contract.methods)
            ):
                return contract
        raise LookupError(f"{FILE.name} has no contract for {field} in vLLM {vllm_version}")

    def same(self, one: str, other: str) -> bool:
        """Whether two spellings name one value."""
        one, other = one.lower(), other.lower()
        return one == other or any(one in names and other in names for names in self.alike)


@cache
def load() -> Contracts:
    return pydantic.TypeAdapter(Contracts).validate_python(yaml.safe_load(FILE.read_text()))


def _fits(versions: str, vllm_version: str | None) -> bool:
    if vllm_version is None:
        return True
    try:
        # A development build of 0.32 keeps 0.32's contract: only the release counts.
        release = Version(Version(vllm_version).base_version)
    except InvalidVersion:
        return True
    return SpecifierSet(versions).contains(release, prereleases=True)
