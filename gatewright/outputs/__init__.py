"""Output formats: one pure model of a report, and one module per format."""

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
