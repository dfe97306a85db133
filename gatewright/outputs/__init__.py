"""Output formats: one pure model of what a command reports, and one module a format."""

from gatewright.outputs.choice import FAIL_ON, OUTPUTS, Output, write
from gatewright.outputs.results import Ending, Place, PolicyInfo, Problem, Report, Reported, Result

__all__ = [
    "FAIL_ON",
    "OUTPUTS",
    "Ending",
    "Output",
    "Place",
    "PolicyInfo",
    "Problem",
    "Report",
    "Reported",
    "Result",
    "write",
]
