"""The cards that conf/hardware describes: what is known of one whose driver tells little."""

import functools

import pydantic
import yaml

from orchestrator.asked.conf_files import CONF
from orchestrator.asked.config import Hardware
from orchestrator.errors import ConfigError

_adapter = pydantic.TypeAdapter(Hardware)


@functools.cache
def cards() -> tuple[Hardware, ...]:
    """Raises ConfigError for a file that does not describe any."""
    found: list[Hardware] = []
    for file in sorted((CONF / "hardware").glob("*.yaml")):
        try:
            described = _adapter.validate_python(yaml.safe_load(file.read_text()))
        except (yaml.YAMLError, pydantic.ValidationError) as error:
            why = " ".join(str(error).split())
            raise ConfigError(f"{file} describes no hardware:", [why]) from error
        if described.card is not None:
            found.append(described)
    return tuple(found)
