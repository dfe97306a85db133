"""The errors of CEL: of compilation, of an evaluation, and of its cost."""


class CelError(Exception):
    """Base class of all errors that compiling and evaluating an expression raise."""


class CompileError(CelError):
    """An expression cannot be compiled: line and column from 1, and the error.

    `also` has the other errors of the same expression.
    """

    also: tuple["CompileError", ...] = ()

    def __init__(self, source: str, at: int, text: str) -> None:
        """Translate the offset `at` in `source` into line and column."""
        self.line, self.column = line_and_column(source, at)
        self.text = text
        super().__init__(f"{self.line}:{self.column}: {text}")


class UndefinedFieldError(CompileError):
    """An expression reads a field that the declared type does not have."""


class EvaluationError(CelError):
    """A value that is an error, such as a missing key; `&&`, `||`, `all` and `exists` absorb it."""

    def __init__(self, text: str) -> None:
        """Keep the first 1,000 characters, since the text may contain values of an object."""
        super().__init__(text[:1000])


class BudgetError(CelError):
    """An evaluation that costs more than its budget; nothing absorbs it."""

    def __init__(self) -> None:
        super().__init__(
            "the expression costs too much: operation cancelled since actual cost limit exceeded"
        )


def line_and_column(source: str, at: int) -> tuple[int, int]:
    """Return the line and the column, both from 1, of the offset `at` in `source`."""
    return source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)


def no_overload(call: str = "") -> EvaluationError:
    """Return the error of a `call` that is not defined for the types of its operands."""
    return EvaluationError(f"no such overload: {call}" if call else "no such overload")


def unconvertible(type_: str, to: str) -> EvaluationError:
    """Return the error of a value that cannot be converted from one type to another."""
    return EvaluationError(f"type conversion error from '{type_}' to '{to}'")
