"""Types of settings: durations, addresses, lists and URLs."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from config.faults import did_you_mean
from config.presets import policy_path, presets

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = DURATION.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError("must be a duration such as 15s or 1m30s")
    return timedelta(seconds=sum(float(number) * UNITS[unit] for number, unit in parts))


def _address(value: Any) -> Any:
    if isinstance(value, tuple):
        return value
    host, colon, port = str(value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("must be an address of the form HOST:PORT, or :PORT for every interface")
    return host or None, int(port)


def _several(value: Any) -> Any:
    """Split `a,b` into two values, on the command line, in the environment and in files."""
    values = value if isinstance(value, list | tuple) else [value]
    return [
        part
        for each in values
        for part in (each.split(",") if isinstance(each, str) else [each])
        if part
    ]


def _policy_paths(value: Any) -> Any:
    return [policy_path(each) if isinstance(each, str) else each for each in _several(value)]


def _preset_names(value: list[str]) -> list[str]:
    for name in value:
        if name not in presets():
            raise ValueError(f"no preset {name}{did_you_mean(name, presets())}")
    return value


def _url(value: str) -> str:
    """Return a URL that the API server accepts for a webhook."""
    url = urlsplit(value)
    if url.scheme != "https" or not url.hostname or "@" in url.netloc or url.query or url.fragment:
        raise ValueError("must be an address of the form https://HOST:PORT")
    return value


DurationText = Annotated[timedelta, BeforeValidator(_duration)]
ListenAddress = Annotated[tuple[str | None, int], BeforeValidator(_address)]
NameList = Annotated[list[str], BeforeValidator(_several)]
PresetNames = Annotated[list[str], BeforeValidator(_several), AfterValidator(_preset_names)]
PolicyPaths = Annotated[list[Path], BeforeValidator(_policy_paths)]
Paths = Annotated[list[Path], BeforeValidator(_several)]
Url = Annotated[str, AfterValidator(_url)]
