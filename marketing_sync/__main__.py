"""`marketing-sync` and `python -m marketing_sync`."""

import sys

from marketing_sync.packages import use_packages


def main() -> int:
    """Run one command; returns the exit code."""
    use_packages()
    from pipelines import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
