"""The cases of cel-spec's conformance files, read from its Go module."""

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.gobuild import MissingToolError
from tests.webhook.cel import textproto
from tests.webhook.cel.lenient import compiled
from webhook.cel import CelError, Environment, Meter
from webhook.cel.types import Type, parse_type
from webhook.cel.values import Duration, Timestamp, TypeValue, Uint, equal, type_name

MODULE = "cel.dev/expr@v0.25.1"
NOT_JSON = {"proto2", "proto3", "proto2_ext", "enums", "wrappers"}  # about protobuf messages
NOT_KUBERNETES = {
    "block_ext",
    "bindings_ext",
    "unknowns",
}  # cel.block and cel.bind are not functions of Kubernetes
MESSAGES = (
    "TestAllTypes",
    "GlobalEnum",
    "google.protobuf.",
    "NestedTestAllTypes",
    "proto.",
    "TestRequired",
)


@dataclass(frozen=True)
class Case:
    """One case of a file."""

    name: str
    message: dict[str, list[Any]]

    @property
    def expression(self) -> str:
        """The expression."""
        return self.message["expr"][0].decode()

    @property
    def applies(self) -> bool:
        """Whether it uses only JSON values and plain names, like all Kubernetes expressions."""
        file = self.name.split("/")[0]
        names = [each["name"][0].decode() for each in self.message.get("type_env", ())]
        text = f"{self.message}{self.expression}"
        return (
            file not in NOT_JSON | NOT_KUBERNETES
            and not any(word in self.expression for word in MESSAGES if word != "google.protobuf.")
            and "google.protobuf." not in self.expression.replace("google.protobuf.Timestamp)", "")
            and "object_value" not in text
            and "message_type" not in text
            and "container" not in self.message
            and not any("." in name for name in names)
        )

    def failure(self) -> str:
        """Return the difference from the expected outcome; "" if there is none."""
        variables = {
            declaration["name"][0].decode(): _type(declaration)
            for declaration in self.message.get("type_env", ())
        }
        values = {
            binding["key"][0].decode(): _value(binding["value"][0]["value"][0])
            for binding in self.message.get("bindings", ())
        }
        environment = Environment({**dict.fromkeys(values, parse_type("dyn")), **variables})
        wanted = self.message.get("value") or self.message.get("typed_result", [{}])[0].get(
            "result"
        )
        try:
            program = compiled(
                self.expression, environment, checked="disable_check" not in self.message
            )
            if "check_only" in self.message:
                return ""
            found = program.evaluate(environment.activation(values))
        except CelError as error:
            return "" if "eval_error" in self.message else f"error: {error}"
        if "eval_error" in self.message:
            return f"found {found!r}, expected an error"
        expected = _value(wanted[0]) if wanted else True
        same = equal(Meter(), found, expected) and type_name(found) == type_name(expected)
        both_nan = (
            isinstance(found, float)
            and isinstance(expected, float)
            and math.isnan(found)
            and math.isnan(expected)
        )
        return "" if same or both_nan else f"found {found!r}, expected {expected!r}"


def cases() -> Iterator[Case]:
    """Yield every case. Raises MissingToolError without Go."""
    for file in sorted(_directory().glob("*.textproto")):
        for section in textproto.read(file.read_text()).get("section", ()):
            for test in section.get("test", ()):
                names = file.stem, section["name"][0].decode(), test["name"][0].decode()
                yield Case("/".join(names), test)


def _directory() -> Path:
    try:
        answer = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd="/",
            capture_output=True,
            check=True,
            timeout=300,
        )
    except FileNotFoundError:
        raise MissingToolError("there is no Go") from None
    return Path(json.loads(answer.stdout)["Dir"], "tests/simple/testdata")


def _type(message: dict[str, list[Any]]) -> Type:
    return (
        parse_type(_type_name(message["ident"][0]["type"][0]))
        if "ident" in message
        else parse_type("dyn")
    )


def _type_name(message: dict[str, list[Any]]) -> str:
    (sort, (value, *_)), *_ = message.items()
    primitives = {
        "INT64": "int",
        "UINT64": "uint",
        "BOOL": "bool",
        "DOUBLE": "double",
        "STRING": "string",
    }
    match sort:
        case "primitive":
            return primitives.get(value, "bytes")
        case "list_type":
            return f"list({_type_name(value['elem_type'][0])})"
        case "map_type":
            return f"map({_type_name(value['key_type'][0])}, {_type_name(value['value_type'][0])})"
        case "well_known":
            return value.lower() if value in {"TIMESTAMP", "DURATION"} else "dyn"
    return "dyn"


def _value(message: dict[str, list[Any]]) -> Any:
    ((sort, (value, *_)),) = message.items()
    return _VALUES[sort](value)


def _object(value: dict[str, list[Any]]) -> Any:
    name, fields = next(iter(value.items()))
    nanoseconds = int(fields[0].get("seconds", ["0"])[0]) * 10**9 + int(
        fields[0].get("nanos", ["0"])[0]
    )
    return (Timestamp if name.endswith("Timestamp") else Duration)(nanoseconds)


_VALUES: dict[str, Callable[[Any], Any]] = {
    "null_value": lambda _: None,
    "bool_value": "true".__eq__,
    "int64_value": lambda value: int(value, 0),
    "uint64_value": lambda value: Uint(int(value, 0)),
    "double_value": float,
    "string_value": bytes.decode,
    "bytes_value": bytes,
    "type_value": lambda value: TypeValue(value.decode()),
    "list_value": lambda value: [_value(each) for each in value.get("values", ())],
    "map_value": lambda value: {
        _value(entry["key"][0]): _value(entry["value"][0]) for entry in value.get("entries", ())
    },
    "object_value": _object,
}
