"""`python -m jobs.probe REQUEST REPORT`: one cell in an interpreter of its own."""

import sys
from pathlib import Path

from jobs.probe import cell

if __name__ == "__main__":
    cell.run(Path(sys.argv[1]), Path(sys.argv[2]))
