"""Pages of policies: current, whole, and readable."""

from pydantic import Field

from gatewright.pages import Example, Parameter, index, page, parameters
from tests.config.regenerate import ROOT, from_policies
from webhook.engine import Params, Policy, Request
from webhook.engine.ranges import Range
from webhook.policies import catalogue


class Some(Params):
    """Parameters of every sort."""

    names: list[str] = Field(["a|b"], description="names, or others")
    ranges: list[Range] = Field([], description="ranges of numbers")
    words: dict[str, str] = Field({}, description="words by name")
    most: int | None = Field(None, description="highest number")
    must: bool = Field(description="whether it must")


def validate(request: Request, params: Some):
    """Find nothing."""
    yield from ()


SOME = Policy("some", Some, validate=validate, kinds=("Service",), category="network", severity="low")


def test_the_pages_are_current():
    """`make manifests` would change none of the committed pages, and none is left over."""
    expected = from_policies()
    assert expected == {path: (ROOT / path).read_text() for path in expected}
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs/policies").iterdir()} == expected.keys()


def test_parameters_are_told_with_those_within():
    """Name, type, default and meaning, as one writes them in YAML."""
    assert parameters(SOME) == [
        Parameter("names", "list of strings", "[a|b]", "names, or others"),
        Parameter("ranges", "list of objects", "[]", "ranges of numbers"),
        Parameter("ranges[].minimum", "integer", "required", "lowest number"),
        Parameter("ranges[].maximum", "integer", "required", "highest number"),
        Parameter("words", "object of strings", "{}", "words by name"),
        Parameter("most", "integer", "null", "highest number"),
        Parameter("must", "boolean", "required", "whether it must"),
    ]


def test_a_page_has_everything():
    """What the module says, what it looks at, its parameters, and what comes of an object."""
    text = page(SOME, [Example("Denied", {"must": True}, {"kind": "Service"}, "is denied.")])
    assert (
        "# some\n\nPages of policies: current, whole, and readable.\n\nDenies; category network, severity low." in text
    )
    assert "Applies to: Service.\n" in text
    assert "| `names` | list of strings | `[a\\|b]` | names, or others |\n" in text
    assert (
        "## Denied\n\nWith these parameters:\n\n```yaml\npolicy: some\nparams:\n  must: true\n```\n\nthis object:"
        in text
    )
    assert text.endswith("```yaml\nkind: Service\n```\n\nis denied.\n")


def test_the_index_has_each_policy_once():
    """Sorted by category and name, with a link to its page."""
    lines = [line for line in index(catalogue().values()).splitlines() if line.startswith("| [")]
    ordered = sorted(catalogue().values(), key=lambda each: (each.category, each.name))
    assert [line.partition("]")[0] for line in lines] == [f"| [{each.name}" for each in ordered]


def test_every_parameter_says_what_it_means():
    """No parameter stands there without its meaning."""
    policies = catalogue().items()
    assert [(name, each.name) for name, policy in policies for each in parameters(policy) if not each.meaning] == []


def test_every_page_says_what_it_is_for():
    """A rule as one sentence, why, an example, and a fix."""
    for policy in catalogue().values():
        text = policy.documentation
        assert text.partition("\n\n")[0].endswith("."), text
        for label in ("Why:", "Fix:"):
            assert f"\n{label} " in text, text
        assert "\nDenied:" in text or "\nSets" in text, text
