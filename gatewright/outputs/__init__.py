"""Output formats: one pure model of a report, and one module per format."""

from gatewright.outputs.choice import FAIL_ON, OUTPUTS, Output, write, write_file
from gatewright.outputs.results import (
    Ending,
    InputProblem,
    PolicyInfo,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)

__all__ = [
    "FAIL_ON",
    "OUTPUTS",
    "Ending",
    "InputProblem",
    "Output",
    "PolicyInfo",
    "Report",
    "ReportedViolation",
    "SourceLocation",
    "SubjectResult",
    "write",
    "write_file",
]
