"""`python -m marketing_api.sandbox`."""

from marketing_api.sandbox.cli import main

raise SystemExit(main())
