"""Render the ConfigMap data of AppConfig and VoteConfig, and validate it against a ConfigMap's limits.

Pure. The planners use it to build the ConfigMap, and admission to report the same faults.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import orjson

from config.api.voteconfig import Option
from config.templates import rendered

LARGEST = 1_048_576  # bytes of all values
LONGEST_NAME = 253
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEY = re.compile(r"(?!\.\.)[-._a-zA-Z0-9]{1,253}")  # beginning with two dots is the kubelet's
ID = re.compile(r"[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")

Fault = tuple[str, str]  # path of the field, and what is wrong with it


def name_fault(path: str, name: str) -> Iterator[Fault]:
    """Yield what is wrong with the name of a ConfigMap, made of the field at `path`."""
    if len(name) > LONGEST_NAME:
        yield path, f"the ConfigMap's name would have {len(name)} characters; the limit is {LONGEST_NAME}"
    elif not NAME.fullmatch(name):
        yield path, f"the ConfigMap's name, {name[:64]}, may have lower-case letters, digits, '-' and '.' only"


def settings(
    application: str, environment: str, namespace: str, config: Mapping[str, str]
) -> tuple[dict[str, str], list[Fault]]:
    """Return the data of an AppConfig's ConfigMap, and all that is wrong with what it is made of."""
    faults = list(name_fault("spec.application", settings_name(application)))
    for key in config:
        if not KEY.fullmatch(key) or key == ".":
            rule = "a key of a ConfigMap has letters, digits, '-', '_' and '.', 253 at most"
            faults.append((f"spec.config[{key[:64]}]", rule))
    variables = {"application": application, "environment": environment, "namespace": namespace}
    data, wrong = rendered(config, variables)
    faults += ((f"spec.config[{key[:64]}]", text) for key, text in wrong)
    return data, [*faults, *size_fault("spec.config", data)]


def settings_name(application: str) -> str:
    """Return the name of an AppConfig's ConfigMap."""
    return f"{application}-config"


def votes(question: str, options: Iterable[Option]) -> tuple[dict[str, str], list[Fault]]:
    """Return the data of a VoteConfig's ConfigMap, and all that is wrong with what it is made of.

    `config.json` is everything as one document; `question`, and for each option a key that is a variable's name to
    envFrom, such as OPTION_A for the id `a`.
    """
    data, faults, written = {"question": question}, list[Fault](), list[dict[str, str]]()
    for number, option in enumerate(options):
        if not (id := option.id):
            continue  # it is incomplete, which is not said here
        key, path = option_key(id), f"spec.options[{number}].id"
        if not ID.fullmatch(id):
            rule = "an id has letters, digits, '-', '_' and '.', 63 at most, and begins and ends with a letter or digit"
            faults.append((path, rule))
        elif key in data:
            faults.append((path, f"another option has the key {key} too"))
        data[key] = option.label or id
        about = {"description": option.description} if option.description else {}
        written.append({"id": id, "label": option.label or id, **about})
    document = {"question": question, "options": written}
    data["config.json"] = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    return data, [*faults, *size_fault("spec.options", data)]


def votes_name(name: str) -> str:
    """Return the name of a VoteConfig's ConfigMap."""
    return f"{name}-config"


def option_key(id: str) -> str:
    """Return the key of an option."""
    return f"OPTION_{re.sub('[-.]', '_', id).upper()}"


def size_fault(path: str, data: Mapping[str, str]) -> Iterator[Fault]:
    """Yield that it is too much for one ConfigMap, where it is."""
    size = sum(len(value.encode()) for value in data.values())
    if size > LARGEST:
        yield path, f"the ConfigMap would hold {size} bytes; the limit is {LARGEST}"
