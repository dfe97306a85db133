"""Write the rules in CEL that decide the same as templates in Rego of Gatekeeper's library.

The text of a template tells how its versions differ: which lists of containers it reads, whether it
skips updates, and whether it exempts images. Source: src/ of open-policy-agent/gatekeeper-library.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gatewright.tools.cel_text import every, literal, negate, optional, some
from gatewright.tools.migrate.results import refuse, texts

Parameters = dict[str, Any]
LISTS = ("containers", "initContainers", "ephemeralContainers")
# The numbers that the templates can read; they deny all other notations of a quantity.
CPU = r"^([0-9]+([.][0-9]+)?|[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)m)$"
BYTES = "^[0-9]+([.][0-9]+)?(E|P|T|G|M|k|m|Ki|Mi|Gi|Ti|Pi|Ei)?$"
DISABLED = "-1"


@dataclass(slots=True)
class TemplateRules:
    """The rules for one constraint, and the only kinds that its template judges (none: any)."""

    kinds: tuple[str, ...] = ()
    validations: list[dict[str, str]] = field(default_factory=list)
    variables: list[dict[str, str]] = field(default_factory=list)
    only_creations: bool = False
    of_ephemeral_containers: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The rules as fields of a policy object."""
        variables = {"variables": self.variables} if self.variables else {}
        return variables | {"validations": self.validations}

    def scope(self, clause: dict[str, Any]) -> dict[str, Any]:
        """Return a clause of `match` with only the requests that the template judges."""
        kinds = clause.get("kinds") or self.kinds
        if not kinds:
            refuse("it has no kinds, and its template judges every kind", "the kinds that you use")
        judged = [each for each in kinds if not self.kinds or each in self.kinds]
        if not judged:
            refuse(f"its template does not judge {', '.join(kinds)}", "nothing: omit it")
        narrowed = clause | {"kinds": judged}
        if self.only_creations:
            narrowed["operations"] = ["CREATE"]
        elif self.of_ephemeral_containers:
            narrowed["subresources"] = ["", "ephemeralcontainers"]
        return narrowed


def rule(expression: str, message: str, path: str) -> dict[str, str]:
    """Return a validation."""
    return {"expression": expression, "message": message, "path": path}


def fields_rules(kind: str, *rules: dict[str, str], rego: str = "") -> TemplateRules:
    """Return rules about the fields of one kind."""
    return TemplateRules((kind,), [*rules], only_creations="is_update" in rego)


def containers_rules(
    test: str, message: str, given: Parameters, rego: str, *, lists: Iterable[str] = LISTS
) -> TemplateRules:
    """Return a rule for each list of containers that a template reads: each item passes a test."""
    rules = TemplateRules(("Pod",), only_creations="is_update" in rego)
    exempt = _exempt(given, rego)
    for name in lists:
        if name not in rego:
            continue
        variable = f"violating{name[0].upper()}{name[1:]}"
        items = f"object.spec.?{name}.orValue([])"
        passes = some([exempt, test]) if exempt else test
        bad = f"{items}.filter(container,\n  {negate(passes)})"
        rules.variables.append({"name": variable, "expression": bad})
        names = f"variables.{variable}.map(container, container.name).join(', ')"
        rules.validations.append(
            {
                "expression": f"variables.{variable}.size() == 0",
                "message": message,
                "messageExpression": f"{names} + {literal(f': {message}')}",
                "path": f"spec.{name}",
            }
        )
        rules.of_ephemeral_containers |= name == LISTS[2]
    return rules


def _exempt(given: Parameters, rego: str) -> str:
    """Return the test that a container's image is exempt; "" if none is."""
    if "exemptImages" not in rego:
        return ""
    images = texts(given.pop("exemptImages", None))
    whole = [each for each in images if not each.endswith("*")]
    tests = [f"container.image in {literal(whole)}"] if whole else []
    prefixes = [each.removesuffix("*") for each in images if each.endswith("*")]
    tests += [f"container.image.startsWith({literal(each)})" for each in prefixes]
    return some(tests) if tests else ""


def quantity_test(sort: str, name: str, given: Parameters, pattern: str) -> str:
    """Return the test that a container has a limit or request of at most a parameter."""
    resources = f"container.?resources.?{sort}"
    value = f"{optional(resources, name)}.orValue('')"
    tests = [f"string({value}).matches({literal(pattern)})"]
    maximum = str(given.pop(name, DISABLED))
    if maximum != DISABLED:
        if not re.match(pattern, maximum):
            refuse(f'{name} "{maximum}" is no number that its template can read')
        least = f"quantity(string({value})).compareTo(quantity({literal(maximum)})) <= 0"
        tests.append(least)
    return every(tests)


def limits_rules(sort: str, given: Parameters, rego: str) -> TemplateRules:
    """Return the rules of K8sContainerLimits and K8sContainerRequests."""
    tests = list[str]()
    if "cpu" not in given and 'parameters.cpu != "-1"' in rego:
        given["cpu"] = DISABLED
    is_disabled = given.get("cpu") == DISABLED and 'parameters.cpu != "-1"' in rego
    cpu = quantity_test(sort, "cpu", given, CPU)
    if not is_disabled:
        tests.append(cpu)
    tests.append(quantity_test(sort, "memory", given, BYTES))
    bounds = "cpu and memory" if not is_disabled else "memory"
    message = f"{sort} of {bounds} must be set, within the allowed maximum"
    return containers_rules(every(tests), message, given, rego)


def required_resources(given: Parameters, rego: str) -> TemplateRules:
    """Return the rules of K8sRequiredResources."""
    tests, names = list[str](), list[str]()
    for sort in ("limits", "requests"):
        for name in texts(given.pop(sort, None)):
            tests.append(f"{optional(f'container.?resources.?{sort}', name)}.hasValue()")
            names.append(f"{sort}.{name}")
    if not tests:
        refuse("it requires nothing", "nothing: omit it")
    return containers_rules(every(tests), f"must set {', '.join(names)}", given, rego)


def probes_rules(given: Parameters, rego: str) -> TemplateRules:
    """Return the rules of K8sRequiredProbes."""
    probes, types = texts(given.pop("probes", None)), texts(given.pop("probeTypes", None))
    if not probes or not types:
        refuse("it names no probes, or no types of probes", "`probes`")
    tests = [
        some(f"{optional(f'container.?{probe}', type)}.hasValue()" for type in types)
        for probe in probes
    ]
    message = f"must have {' and '.join(probes)}, each with one of {', '.join(types)}"
    return containers_rules(every(tests), message, given, rego)


def required_metadata(name: str, given: Parameters) -> TemplateRules:
    """Return the rules of K8sRequiredLabels and K8sRequiredAnnotations."""
    rules, said = TemplateRules(), given.pop("message", None)
    if said is not None and (not isinstance(said, str) or "\n" in said.strip()):
        refuse("its message is not one line of text")
    items = f"object.metadata.?{name}"
    for label in given.pop(name, None) or ():
        key, regex = label["key"], label.get("allowedRegex") or ""
        path = f"metadata.{name}[{key}]"
        present = f"{optional(items, key)}.hasValue()"
        rules.validations.append(rule(present, said or f"must have the {name[:-1]} {key}", path))
        if regex:
            matches = f"{optional(items, key)}.orValue('').matches({literal(regex)})"
            message = said or f"must match {regex}"
            rules.validations.append(rule(some([f"!{present}", matches]), message, path))
    if not rules.validations:
        refuse("it requires nothing", "nothing: omit it")
    return rules
