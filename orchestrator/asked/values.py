"""Kinds of value that keys of conf/ take."""

from typing import Annotated, Any

import pydantic

Name = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""A part of a cell's id, or of a run directory's name."""


def _a_number(value: Any) -> Any:
    """`true` is 1 to Python."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number")  # noqa: TRY004  # as pydantic wants it
    return value


Number = pydantic.BeforeValidator(_a_number)

Text = Annotated[str, pydantic.Field(min_length=1)]
Count = Annotated[int, Number, pydantic.Field(ge=1)]
Amount = Annotated[float, Number, pydantic.Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Number, pydantic.Field(gt=0, le=365 * 24 * 3600)]

Environment = dict[
    Annotated[str, pydantic.Field(pattern=r"^[^=\x00]+$")],
    Annotated[str, pydantic.Field(pattern=r"^[^\x00]*$")],
]
