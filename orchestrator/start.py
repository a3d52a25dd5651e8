"""Where `vllm-matrix` begins. A shell that completes a word is not made to wait for Hydra."""

import os


def main() -> None:
    if "_ARGCOMPLETE" in os.environ:
        from orchestrator.completing import answer  # noqa: PLC0415

        answer()
    from orchestrator import __main__  # noqa: PLC0415

    __main__.main()
