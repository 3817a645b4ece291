"""`python -m marketing_api.sandbox`."""

from marketing_api.sandbox.server import main

raise SystemExit(main())
