"""Rules in CEL about the images of pods: registries, tags and digests."""

import re
from typing import Any

from config.image_references import DEFAULT_REGISTRY, REGISTRY_ALIASES
from gatewright.tools.cel_text import literal, negate, parenthesise
from gatewright.tools.export.pod_rules import CelRule, of_containers
from webhook.policies._images import Registry

# The grammar of references (distribution/reference), as in config/image_references.py.
HOST = (
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
    r"|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
REST = (
    rf"{NAME}(?:/{NAME})*(?::[\w][\w.-]{{0,127}})?"
    r"(?:@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?$"
)
HOSTED = r"^(?:localhost|[^/@]*[.:\[A-Z][^/@]*)/"  # the first component is a registry
ID = r"^(?:sha256:)?[0-9a-f]{64}$"  # of an image that a node has
LATEST = r"(?:^|/)[^/:@]+$|:latest(?:@|$)"  # no tag, or this one
END = "(?:[/:@]|$)"
COMPONENT = "[^/:@]+"


def of_images(test: str, message: str) -> CelRule:
    """Return a rule that each image passes; the message names those that do not."""
    bad = f"variables.images.filter(image, {negate(test)}).join(', ')"
    expression = f"variables.images.all(image, {test})"
    return CelRule(expression, message, f"{bad} + {literal(f': {message}')}")


def are_references() -> CelRule:
    """Return the rule that each image is a reference, as others take it for granted."""
    hosted, plain = (_matches(f"^{host}{REST}") for host in (f"{HOST}/", ""))
    test = f"!{_matches(ID)} && ({_matches(HOSTED)} ? {hosted} : {plain})"
    return of_images(test, "no image reference")


def _matches(regex: str) -> str:
    return f"image.matches({literal(regex)})"


def image_registries(params: Any) -> list[CelRule]:
    """Return the rules of image-registries; none if a `*` may stand for an alias of docker.io."""
    approved, denied = params.parsed
    if any(map(_is_ambiguous, (*approved, *denied))):
        return []
    rules = [are_references()]
    if approved:
        message = f"images must come from approved registry {', '.join(params.registries)}"
        rules.append(of_images(" || ".join(map(_from, approved)), message))
    for registry in denied:
        message = f"images must not come from denied registry {registry}"
        rules.append(of_images(negate(_from(registry)), message))
    return rules


def _is_ambiguous(registry: Registry) -> bool:
    host = registry.host
    return "*" in host and any(map(re.compile(_host(host)).fullmatch, REGISTRY_ALIASES))


def _host(host: str) -> str:
    parts = ("[^./]+" if part == "*" else re.escape(part) for part in host.split("."))
    return "\\.".join(parts)


def _from(registry: Registry) -> str:
    """Return the test that an image comes from a registry."""
    host, path = registry.host, registry.path
    hosts = _host(host)
    port = "" if re.search(r":\d+$", host) else "(?::0*443)?"
    hosts = re.sub(r":(\d+)$", r":0*\1", hosts)
    is_default = re.fullmatch(_host(host), DEFAULT_REGISTRY) is not None
    if host == DEFAULT_REGISTRY:
        hosts = "|".join(map(re.escape, (host, *sorted(REGISTRY_ALIASES))))
    prefix = f"^(?i:{hosts}){port}/"
    if not is_default:
        return _matches(prefix + _path(registry, path))
    paths = [_path(registry, path)]
    if path[:1] in (("library",), ("*",)) and len(path) <= 2:
        # `nginx` stands for `library/nginx`: one component.
        alone = path[1:] or (COMPONENT,)
        paths = [f"(?:{_path(registry, path)}|{_alone(registry, alone)})"]
    elif path:
        paths = [f"(?:{_path(registry, path)})"]
    on_host = _matches(prefix + paths[0])
    if not path:
        return f"(!{_matches(HOSTED)} || {on_host})"
    return f"({_matches(HOSTED)} ? {on_host} : {_matches('^' + paths[0])})"


def _path(registry: Registry, path: tuple[str, ...]) -> str:
    if not path:
        return ""
    parts = "/".join(COMPONENT if part == "*" else re.escape(part) for part in path)
    if registry.tag:
        return parts + _tag(registry.tag)
    # One component alone on docker.io is an image of `library`.
    is_of_library = registry.host == DEFAULT_REGISTRY and len(path) == 1
    return parts + ("/" if is_of_library else END)


def _alone(registry: Registry, path: tuple[str, ...]) -> str:
    (part,) = path
    name = COMPONENT if part in ("*", COMPONENT) else re.escape(part)
    return name + (_tag(registry.tag) if registry.tag else "(?:[:@]|$)")


def _tag(pattern: str) -> str:
    """Return the end of a reference with a tag like a pattern; none is latest, or with a digest."""
    tagged = f":{_glob(pattern)}(?:@|$)"
    ends = [tagged]
    if re.fullmatch(_glob(pattern), "latest"):
        ends.append("$")
    if re.fullmatch(_glob(pattern), ""):
        ends.append("@")
    return f"(?:{'|'.join(ends)})"


def _glob(pattern: str) -> str:
    parts = {"*": "[^/:@]*", "?": "[^/:@]"}
    return "".join(parts.get(each) or re.escape(each) for each in pattern)


def image_tags(params: Any) -> list[CelRule]:
    """Return the rules of image-tags."""
    rules = [are_references()]
    which = f" of {', '.join(params.allowed)}" if params.allowed else ""
    others = f" other than {', '.join(params.denied)}" if params.denied else ""
    tests = [negate(_has_tag(params.denied))] if params.denied else []
    if params.allowed is not None:
        tests.append(_has_tag(params.allowed))
    if tests:
        test = f"image.contains('@') || {' && '.join(map(parenthesise, tests))}"
        rules.append(of_images(test, f"images must have a tag{which}{others}"))
    return rules


def _has_tag(patterns: Any) -> str:
    """Return the test that the tag is like one of several patterns; no tag is latest."""
    tags = "|".join(map(_glob, patterns))
    end = "(?:" + f":(?:{tags})" + ("|/[^/:]*|^[^/:]*" if patterns.match("latest") else "") + ")$"
    return _matches(end)


def image_digests(_: Any) -> list[CelRule]:
    """Return the rules of image-digests."""
    return [are_references(), of_images("image.contains('@')", "images must be named by digest")]


def image_pull_policy(params: Any) -> list[CelRule]:
    """Return the rules of image-pull-policy; none if only images with some tags are judged.

    The API server sets the default in what it judges; in files it may be unset.
    """
    if params.tags is not None:
        return []
    required = literal(params.required)
    message = f"must be {params.required}"
    of_volumes = _pulls("volume.?image.?reference", "volume.?image.?pullPolicy", required)
    return [
        of_containers(
            _pulls("container.?image", "container.?imagePullPolicy", required),
            f"imagePullPolicy: {message}",
        ),
        CelRule(
            f"variables.pod.?volumes.orValue([]).all(volume, {of_volumes})",
            f"volumes.image.pullPolicy: {message}",
        ),
    ]


def _pulls(image: str, field: str, required: str) -> str:
    """Return the test of an optional image's pull policy, with its default."""
    name = f"{image}.orValue('')"
    is_latest = f"{name}.matches({literal(LATEST)}) && !{name}.matches({literal(ID)})"
    default = f"({is_latest} ? 'Always' : 'IfNotPresent')"
    policy = f"{field}.orValue('')"
    return f"{name} == '' || {required} == ({policy} != '' ? {policy} : {default})"
