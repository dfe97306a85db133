"""Render the ConfigMaps of AppConfig and VoteConfig, within a ConfigMap's limits.

Pure functions. The planners build the ConfigMap with them, and admission reports the same errors.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import get_args

import orjson

from config.api.appconfig import AppEnvironment
from config.api.formats import DATA_KEY, DNS_NAME
from config.api.voteconfig import Option
from config.templates import render_values

MAX_BYTES = 1_048_576  # bytes of all values
MAX_NAME = 253
NAME, KEY = re.compile(DNS_NAME), re.compile(DATA_KEY)
ID = re.compile(r"[a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")

ENVIRONMENTS: tuple[str, ...] = get_args(AppEnvironment)
DEFAULT = "default"
LABEL = "environment"  # of a namespace, as in the preset `production`
ALIASES = {"development": "dev", "production": "prod"}

ConfigMapFault = tuple[str, str]  # path of the field, and the error


def config_map_name(name: str) -> str:
    """Return the name of the ConfigMap of an AppConfig's application, or of a VoteConfig."""
    return f"{name}-config"


def name_fault(path: str, name: str) -> Iterator[ConfigMapFault]:
    """Yield the error of an invalid ConfigMap name that comes from the field at `path`."""
    if len(name) > MAX_NAME:
        text = f"the ConfigMap's name would have {len(name)} characters; the limit is {MAX_NAME}"
        yield path, text
    elif not NAME.fullmatch(name):
        characters = "lower-case letters, digits, '-' and '.'"
        yield path, f"the ConfigMap's name, {name[:64]}, may only contain {characters}"


def environment_of(namespace: str, labels: Mapping[str, str]) -> str | None:
    """Return the environment that a namespace's label, or else its name, tells; None for none."""
    told = labels.get(LABEL) or namespace
    environment = ALIASES.get(told, told)
    return environment if environment in ENVIRONMENTS else None


def settings(
    application: str,
    environment: str,
    namespace: str,
    config: Mapping[str, str],
    values: Mapping[str, Mapping[str, str]],
) -> tuple[dict[str, str], list[ConfigMapFault]]:
    """Return the data of an AppConfig's ConfigMap, and all errors in the values.

    `values` has values of further keys by environment, with DEFAULT for the other environments.
    Those of the other environments are checked, too.
    """
    faults = list(name_fault("spec.application", config_map_name(application)))
    faults += _key_faults("config", config)
    faults += _key_faults("values", values)
    about = {"application": application, "namespace": namespace}
    data, wrong = render_values(config, about | {"environment": environment})
    faults += ((f"spec.config[{key[:64]}]", text) for key, text in wrong)
    for key in sorted(values):
        path, by_environment = f"spec.values[{key[:64]}]", values[key]
        if key in config:
            faults.append((path, "spec.config has this key too; keep one of them"))
        if environment not in by_environment and DEFAULT not in by_environment:
            rule = f"no value for environment {environment}, and no default; add one of them"
            faults.append((path, rule))
    for other in ENVIRONMENTS:
        templates = {key: each[at] for key, each in values.items() if (at := _in(each, other))}
        done, wrong = render_values(templates, about | {"environment": other})
        faults += (
            (f"spec.values[{key[:64]}].{_in(values[key], other)}", text) for key, text in wrong
        )
        if other == environment:
            data |= done
    faults = list(dict.fromkeys(faults))  # a default is rendered in several environments
    return data, [*faults, *size_fault("spec.values" if values else "spec.config", data)]


def secret_faults(
    secrets: Mapping[str, Mapping[str, str]], others: Container[str]
) -> Iterator[ConfigMapFault]:
    """Yield the errors of references to Secrets by variable, beside the keys of the ConfigMap."""
    yield from _key_faults("secrets", secrets)
    for key, reference in secrets.items():
        path = f"spec.secrets[{key[:64]}]"
        if key in others:
            yield path, "the ConfigMap has this key too; keep one of them"
        for field in ("name", "key"):
            if not reference.get(field):
                yield f"{path}.{field}", "must be set"


def _in(by_environment: Mapping[str, str], environment: str) -> str:
    """Return the name of the value that an environment has; "" for none."""
    return next((each for each in (environment, DEFAULT) if each in by_environment), "")


def _key_faults(field: str, keys: Iterable[str]) -> Iterator[ConfigMapFault]:
    for key in keys:
        if not KEY.fullmatch(key):
            rule = "a key of a ConfigMap has letters, digits, '-', '_' and '.', 253 at most"
            yield f"spec.{field}[{key[:64]}]", rule


def votes(question: str, options: Iterable[Option]) -> tuple[dict[str, str], list[ConfigMapFault]]:
    """Return the data of a VoteConfig's ConfigMap, and all errors in the poll.

    `config.json` is the whole poll as one document. `question`, and one key for each option such as
    OPTION_A for the id `a`, are names that envFrom accepts.
    """
    data, faults, written = {"question": question}, list[ConfigMapFault](), list[dict[str, str]]()
    for number, option in enumerate(options):
        if not (id := option.id):
            continue  # reported as missing elsewhere
        key, path = option_key(id), f"spec.options[{number}].id"
        if not ID.fullmatch(id):
            rule = (
                "an id has letters, digits, '-', '_' and '.', 63 at most, and begins and ends "
                "with a letter or digit"
            )
            faults.append((path, rule))
        elif key in data:
            faults.append((path, f"another option has the key {key} too"))
        data[key] = option.label or id
        about = {"description": option.description} if option.description else {}
        written.append({"id": id, "label": option.label or id, **about})
    document = {"question": question, "options": written}
    data["config.json"] = orjson.dumps(
        document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    ).decode()
    return data, [*faults, *size_fault("spec.options", data)]


def option_key(id: str) -> str:
    """Return the key of an option."""
    return f"OPTION_{re.sub('[-.]', '_', id).upper()}"


def size_fault(path: str, data: Mapping[str, str]) -> Iterator[ConfigMapFault]:
    """Yield an error if the data exceeds the size of a ConfigMap."""
    size = sum(len(value.encode()) for value in data.values())
    if size > MAX_BYTES:
        yield path, f"the ConfigMap would hold {size} bytes; the limit is {MAX_BYTES}"
