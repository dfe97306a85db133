"""Policy pages are current, complete and readable."""

from pydantic import Field

from gatewright.explain.policy_pages import Parameter, parameters
from tests.config.policy_pages import Example, index, page
from tests.config.regenerate import LEFT_OVER, OUTDATED, ROOT, from_policies, stale
from webhook.engine import Params, Policy, Request
from webhook.policies._ranges import Range
from webhook.policy_sets.catalogue import catalogue


class Some(Params):
    """Parameters of every type."""

    names: list[str] = Field(["a|b"], description="names, or others")
    ranges: list[Range] = Field([], description="ranges of numbers")
    words: dict[str, str] = Field({}, description="words by name")
    most: int | None = Field(None, description="highest number")
    must: bool = Field(description="whether it must")


def validate(request: Request, params: Some):
    """Return no violations."""
    yield from ()


SOME = Policy(
    "some", Some, validate=validate, kinds=("Service",), category="network", severity="low"
)


def test_the_pages_are_current():
    """`make manifests` changes none of the committed pages, and no page is left over."""
    expected = from_policies()
    assert stale(expected) == [], OUTDATED
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "docs/policies").iterdir()}
    assert there - expected.keys() == set(), LEFT_OVER


def test_nested_parameters_are_listed():
    """Each has name, type, default and meaning, as written in YAML."""
    assert parameters(SOME) == [
        Parameter("names", "list of strings", "[a|b]", "names, or others"),
        Parameter("ranges", "list of objects", "[]", "ranges of numbers"),
        Parameter("ranges[].minimum", "integer", "required", "lowest number"),
        Parameter("ranges[].maximum", "integer", "required", "highest number"),
        Parameter("words", "object of strings", "{}", "words by name"),
        Parameter("most", "integer", "null", "highest number"),
        Parameter("must", "boolean", "required", "whether it must"),
    ]


def test_a_page_is_complete():
    """It has the module's documentation, the kinds, the parameters and the examples."""
    text = page(SOME, [Example("Denied", {"must": True}, {"kind": "Service"}, "is denied.")])
    assert (
        "# some\n\nPolicy pages are current, complete and readable.\n\nThis policy denies. Category: network; severity: low."
        in text
    )
    assert "Applies to: Service.\n" in text
    assert "| `names` | list of strings | `[a\\|b]` | names, or others |\n" in text
    assert (
        "## Denied\n\nWith these parameters:\n\n```yaml\npolicy: some\nparams:\n  must: true\n```\n\nthis object:"
        in text
    )
    assert text.endswith("```yaml\nkind: Service\n```\n\nis denied.\n")


def test_the_index_has_each_policy_once():
    """They are sorted by category and name, with links."""
    lines = [line for line in index(catalogue().values()).splitlines() if line.startswith("| [")]
    ordered = sorted(catalogue().values(), key=lambda each: (each.category, each.name))
    assert [line.partition("]")[0] for line in lines] == [f"| [{each.name}" for each in ordered]


def test_every_parameter_has_a_description():
    """No description is empty."""
    policies = catalogue().items()
    assert [
        (name, parameter.name)
        for name, policy in policies
        for parameter in parameters(policy)
        if not parameter.meaning
    ] == []


def test_every_page_has_rule_reason_example_and_fix():
    """The rule is one sentence."""
    for policy in catalogue().values():
        text = policy.documentation
        assert text.partition("\n\n")[0].endswith("."), text
        for label in ("Why:", "Fix:"):
            assert f"\n{label} " in text, text
        assert "\nDenied:" in text or "\nSets" in text, text
