"""Describe validation errors of user input: path, error and suggestion."""

import difflib
from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, ValidationError

MAX_FAULTS = 50  # per object, so that messages stay readable

Model = TypeVar("Model", bound=BaseModel)


class FaultsError(ValueError):
    """Invalid user input; `faults` are pairs of a dotted path and a message."""

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        """Keep the errors in this order."""
        self.faults = tuple(faults)
        super().__init__(
            "\n".join(f"{path}: {text}" if path else text for path, text in self.faults)
        )


def refuse(path: str, text: str) -> NoReturn:
    """Raise the FaultsError of one fault."""
    raise FaultsError([(path, text)])


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `; did you mean "…"?`, or the choices if none is similar, or "" without any.

    `cutoff` is the minimum similarity, from 0 to 1.
    """
    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=cutoff)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known: {', '.join(choices)}" if choices else ""


def parse(model: type[Model], data: Any, *, noun: str = "field", at: str = "") -> Model:
    """Return `data` (decoded JSON) as a `model`; unknown keys are errors.

    Raises FaultsError with all errors.

    JSON types are strict: a quoted number is not a number. `noun` is the word for a key in
    messages, `at` the path of the data in its document.
    """
    try:
        return model.model_validate_json(
            orjson.dumps(data), extra="forbid", by_alias=True, by_name=False
        )
    except ValidationError as error:
        path_faults = faults(model, error, noun=noun)
        raise FaultsError(
            (".".join(filter(None, (at, path))), text) for path, text in path_faults
        ) from None


def faults(
    model: type[BaseModel], error: ValidationError, *, noun: str = "field"
) -> list[tuple[str, str]]:
    """Return the errors of a validation of `model`, as pairs of dotted path and message.

    For a union, only the errors of the variant that matches the value are reported.
    """
    items = error.errors(include_url=False)[:MAX_FAULTS]
    typed_faults = [(*_fault(model, item, noun), item["type"]) for item in items]
    matched = {path for path, _, type in typed_faults if not type.endswith("_type")}
    values = {path for path, _, type in typed_faults if type == "value_error"}
    within = tuple(path for path, _, _ in typed_faults)

    def is_of_another_type(path: str, type: str) -> bool:
        # Another variant of the union matched the value and found errors in it.
        if type == "literal_error":
            return path in values or any(
                other_path.startswith((f"{path}.", f"{path}[")) for other_path in within
            )
        return type.endswith("_type") and path in matched

    return [(path, text) for path, text, type in typed_faults if not is_of_another_type(path, type)]


def _fault(model: type[BaseModel], item: Any, noun: str) -> tuple[str, str]:
    location, within = _follow(model, item["loc"])
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in location
    ).lstrip(".")
    match item["type"]:
        case "extra_forbidden":
            fields = within.model_fields if within else {}
            siblings = [field.alias or name for name, field in fields.items()]
            return path, f"unknown {noun}{did_you_mean(str(location[-1]), siblings)}"
        case "missing":
            return path, "missing; it is required"
        case "literal_error":
            return path, f"{_show(item['input'])} is not one of {item['ctx']['expected']}"
        case "model_type" | "dict_type":
            return path, f"{_show(item['input'])}: should be an object"
        case "path_type":  # pydantic's message names a class of Python
            return path, f"{_show(item['input'])}: should be a path"
        case "string_type" if isinstance(item["input"], bool):  # YAML 1.1 reads `no` as one
            return path, f"{_show(item['input'])}: should be a valid string; write it in quotes"
        case "timezone_aware":
            rule = "should have a time and a zone, such as 2027-01-31T00:00:00Z"
            return path, f"{_show(item['input'])}: {rule}"
    message = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if item["type"] == "value_error" and isinstance(item["input"], dict):
        # A rule about the whole object: its value would only obscure the message.
        return (path, message)
    return path, f"{_show(item['input'])}: {message}"


def _show(value: Any) -> str:
    text = orjson.dumps(value, default=str).decode()
    if "PRIVATE KEY" in text:  # a secret: messages are logged
        return "a private key"
    return text if len(text) <= 64 else f"{text[:63]}…"


def _follow(
    model: type[BaseModel], location: tuple[str | int, ...]
) -> tuple[list[str | int], type[BaseModel] | None]:
    """Return `location` without pydantic's names of unions, and the model of its last step."""
    steps: list[str | int] = []
    within: type[BaseModel] | None = model
    here: Any = model
    for step in location:
        branches = _branches(here)
        if len(branches) > 1:
            here = next((inner for each in branches if (inner := _model_in(each))), None)
            continue
        steps.append(step)
        here = branches[0]
        within = here if isinstance(here, type) and issubclass(here, BaseModel) else None
        if within is not None:
            here = next(
                (
                    f.annotation
                    for name, f in within.model_fields.items()
                    if step in (name, f.alias)
                ),
                None,
            )
        else:
            here = next(reversed(get_args(here)), None)  # the items of a list or mapping
    return steps, within


def _branches(annotation: Any) -> list[Any]:
    """Return the types in a union except None; any other annotation alone."""
    if get_origin(annotation) is Annotated:
        return _branches(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return [annotation]
    return [
        branch
        for argument in get_args(annotation)
        if argument is not type(None)
        for branch in _branches(argument)
    ]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (inner for part in getattr(annotation, "__args__", ()) if (inner := _model_in(part))), None
    )
