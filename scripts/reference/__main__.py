"""`python -m scripts.reference` writes all files anew that are not what they should be."""

import sys

from scripts.reference import ROOT, TEXTS


def main() -> None:
    for name, text in TEXTS.items():
        file, wanted = ROOT / name, text()
        if not file.is_file() or file.read_text() != wanted:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted)
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
