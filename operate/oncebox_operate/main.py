"""The `oncebox` command."""

import sys


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    from oncebox_operate import running

    sys.exit(running.run(sys.argv[1:]))


if __name__ == "__main__":
    main()
