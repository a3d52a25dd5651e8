"""`python -m jobs.probe REQUEST REPORT`: one cell in an interpreter of its own."""

import os
import sys
from pathlib import Path

from jobs.probe import cell

if __name__ == "__main__":
    cell.run(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.flush()
    sys.stderr.flush()
    # The report is written. Threads and finalizers of a broken engine could only hang here.
    os._exit(0)
