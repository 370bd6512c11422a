"""`python -m tools.testing quick|rest|all`."""

from tools.testing.run import main

raise SystemExit(main())
