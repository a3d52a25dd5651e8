"""The same as a cell, in plain vLLM: a Python program of a few lines that says what it got."""

import pprint
from typing import Any

from jobs.contract.attempts import Attempt
from jobs.contract.seen import ProbeReport
from jobs.contract.terms import Check
from orchestrator.asked import digests
from orchestrator.asked.cell_requests import asked, engine_args
from orchestrator.asked.cells import Cell

TELLING = 40
"""Characters of a message: further on it may name folders, which are others there."""

_IMPORTS = """\
import vllm

print("vLLM", vllm.__version__, "from", vllm.__file__)
"""

_HEAD = """\
import sys

from vllm import LLM, SamplingParams

args = {args}
asked = {asked}
seen = {seen}  # by vllm-matrix


def resolved(worker):
    \"\"\"Of each attention layer: whose it is, and the backend that it really has.\"\"\"
    runner = worker.model_runner
    drafter = getattr(runner, "drafter", None) or getattr(runner, "speculator", None)
    draft = getattr(drafter, "model", None)
    own = {{id(each) for each in draft.modules()}} if hasattr(draft, "modules") else set()
    found = []
    for layer in worker.vllm_config.compilation_config.static_forward_context.values():
        if hasattr(layer, "get_attn_backend"):
            backend = layer.get_attn_backend()
            owner = "draft" if id(layer) in own else "target"
            found.append(f"{{owner}} attention: {{backend.__module__}}.{{backend.__qualname__}}")
    return found
"""

_RUNS = """

def main():
    llm = LLM(**args)
    found = sorted({{line for rank in llm.collective_rpc(resolved) for line in rank}})
{generate}    print("asked:", asked or "nothing")
    print("got:", *found, sep="\\n  ")
    same = found == seen
    print("the same as vllm-matrix saw" if same else f"vllm-matrix saw: {{seen}}")
    return 0 if same else 1
"""

_GENERATES = """\
    prompt = {"prompt_token_ids": [1, 5, 6, 7, 5, 6, 7]}
    sampling = SamplingParams(max_tokens=8, temperature=0, ignore_eos=True, detokenize=False)
    llm.generate([prompt], sampling)
"""

_FAILS = """

def main():
    try:
        llm = LLM(**args)
{generate}    except Exception as error:
        raised = []
        while error is not None:
            raised.append(f"{{type(error).__module__}}.{{type(error).__qualname__}}: {{error}}")
            error = error.__cause__ or error.__context__
        print("asked:", asked or "nothing")
        print("raised:", *raised, sep="\\n  ")
        same = any(line.startswith(seen) for line in raised)
        print("the same as vllm-matrix saw" if same else f"vllm-matrix saw: {{seen}}")
        return 0 if same else 1
    print(f"it ran; vllm-matrix saw: {{seen}}")
    return 1
"""

_TAIL = """

if __name__ == "__main__":
    sys.exit(main())
"""


def program(cell: Cell, attempt: Attempt | None) -> str:
    """Exits with 0 if it comes to what the attempt came to."""
    if cell.check is Check.IMPORT:
        return _IMPORTS
    report = attempt.report if attempt else None
    runs = report is not None and report.failure is None and report.ready
    generate = "" if cell.check is Check.INIT else _GENERATES
    head = _HEAD.format(
        args=_shown(arguments(cell)),
        asked=_shown({name: value for name, value in asked(cell).items() if value is not None}),
        seen=_shown(seen(report) if report is not None and runs else failure(report)),
    )
    if not generate:
        head = head.replace("import LLM, SamplingParams", "import LLM")
    body = _RUNS if runs else _FAILS
    indented = generate if runs else "".join(f"    {line}\n" for line in generate.splitlines())
    return head + body.format(generate=indented) + _TAIL


def arguments(cell: Cell) -> dict[str, Any]:
    """Of `vllm.LLM`; shipped models are folders beside the program."""
    args = _beside(engine_args(cell))
    if args.get("speculative_config"):
        args["speculative_config"] = _beside(args["speculative_config"])
    return args


def seen(report: ProbeReport) -> list[str]:
    """As the program prints what it got."""
    owned = [("target", group) for group in report.target]
    owned += [("draft", group) for group in report.draft]
    return sorted({f"{owner} attention: {group.class_path}" for owner, group in owned})


def failure(report: ProbeReport | None) -> str:
    """The beginning of the innermost exception."""
    if report is None or report.failure is None:
        return "an engine that ended without a word"
    root = report.failure.root
    first = root.message.splitlines()[0] if root.message else ""
    return f"{root.type}: {first[:TELLING]}"


def _beside(args: dict[str, Any]) -> dict[str, Any]:
    model = args.get("model")
    if isinstance(model, str) and model.startswith(digests.SHIPPED):
        return args | {"model": f"models/{model.removeprefix(digests.SHIPPED)}"}
    return args


def _shown(value: Any) -> str:
    return pprint.pformat(value, width=98, sort_dicts=False)
