"""`completion`: let a shell complete commands and options."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from oncebox_operate import app, shapes
from oncebox_operate.exit_codes import ExitCode
from oncebox_operate.output import AS_TEXT, Output, json_line, plain


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell: bash, zsh or fish.")],
    /,
    *,
    install: Annotated[
        bool,
        Parameter(
            name="--install",
            env_var="ONCEBOX_COMPLETION_INSTALL",
            show_default=False,
            negative="",
            help="Write it where the shell looks for it, and load it in the shell's start file.",
        ),
    ] = False,
    output: Output = AS_TEXT,
) -> ExitCode:
    """Print a shell's completion of this command.

    * `source <(oncebox completion bash)` (this shell only)
    * `oncebox completion zsh --install`
    * `oncebox completion fish > ~/.config/fish/completions/oncebox.fish`
    """
    whole = app.build()
    if install:
        path = str(whole.install_completion(shell=shell))
        value: shapes.Completion = {"shell": shell, "script": None, "path": path}
        output.data(value, lambda: Text(plain(path)))
        output.note("Start a new shell to use it.")
        return ExitCode.OK
    script = whole.generate_completion(shell=shell)
    # As it is: a shell reads it.
    sys.stdout.write(json_line({"shell": shell, "script": script, "path": None}) if output.json else script)
    sys.stdout.flush()
    return ExitCode.OK
