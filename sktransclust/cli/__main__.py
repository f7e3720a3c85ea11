"""``python -m sktransclust.cli``: the same as the installed command."""

import sys

from . import main

sys.exit(main())
