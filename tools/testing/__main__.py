"""`python -m tools.testing quick|all`."""

from tools.testing.run import main

raise SystemExit(main())
