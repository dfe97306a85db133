"""Import Python modules from a team's directory, or report their errors."""

from collections.abc import Callable

# A team's code may raise anything; a script that ends the process would end a check with success.
FAILURES = (Exception, SystemExit)


class ModuleError(ValueError):
    """An unusable module; the message names its file or entry point, and the error."""


def import_named(load: Callable[[], object], where: str) -> object:
    """Return what `load` imports. Raises ModuleError, naming `where`, if the import fails."""
    try:
        return load()
    except SyntaxError as error:
        at = f":{error.lineno}" if error.filename == where else f": {error.filename}:{error.lineno}"
        raise ModuleError(f"{where}{at}: not Python: {error.msg}") from None
    except FAILURES as error:
        raise ModuleError(
            f"{where}: cannot be imported: {type(error).__name__}: {error}"
        ) from error
