"""`version`."""

import platform

from rich.text import Text

from oncebox_operate import migrate, shapes, version
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.output import AS_TEXT, Output


def show_version(*, output: Output = AS_TEXT) -> ExitCode:
    """Print the version.

    Of Oncebox, of Python, and of the tables it wants.
    """
    value: shapes.Version = {
        "version": version.ONCEBOX,
        "python": platform.python_version(),
        "schema": migrate.head(),
    }
    output.data(
        value,
        lambda: Text(f"oncebox {value['version']} (Python {value['python']}, tables {value['schema']})"),
    )
    return ExitCode.OK
