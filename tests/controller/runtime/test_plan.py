"""The values that planners work with."""

from typing import Any

import pytest

from controller.runtime.plan import Plan, Step


class NoStatus:
    def to_api(self) -> dict[str, Any]:
        """Return an empty status."""
        return {}


def test_a_step_may_only_depend_on_earlier_ones() -> None:
    """Cycles and misspelt names are errors when the plan is built."""
    with pytest.raises(ValueError, match="step a depends on b, which does not precede it"):
        Plan((Step("a", [], depends_on=["b"]), Step("b", [])), NoStatus())


def test_the_message_describes_the_step_that_failed() -> None:
    """Without a description, the message is that the step failed to create its name."""
    assert Step("service", []).failed_to == "failed to create service"
    assert (
        Step("secret", [], doing="failed to create credentials").failed_to
        == "failed to create credentials"
    )
