"""`marketing-sync` and `python -m marketing_sync`."""

from typing import NoReturn

from marketing_sync.packages import use_packages


def main() -> NoReturn:
    """Run one command, and end with its exit code."""
    use_packages()
    from home.interrupts import exit_process
    from marketing_sync import cli

    exit_process(cli.main())


if __name__ == "__main__":
    main()
