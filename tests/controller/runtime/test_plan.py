"""The values that planners work with."""

from typing import Any

import pytest

from controller.runtime.plan import Plan, Step


class NoStatus:
    def to_api(self) -> dict[str, Any]:
        """Nothing to say."""
        return {}


def test_a_step_may_only_need_what_stands_before_it() -> None:
    """A circle, or a name with a typing error, is found when the plan is made."""
    with pytest.raises(ValueError, match="step a depends on b, which does not precede it"):
        Plan((Step("a", [], depends_on=["b"]), Step("b", [])), NoStatus())


def test_a_step_says_what_it_was_doing() -> None:
    """Without words of its own a step failed to create what it is named after."""
    assert Step("service", []).failed_to == "failed to create service"
    assert (
        Step("secret", [], doing="failed to create credentials").failed_to
        == "failed to create credentials"
    )
