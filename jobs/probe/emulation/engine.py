"""What of vLLM is replaced outside of its workers: that it leaves this process, and NCCL."""

from jobs.probe.emulation.ledger import Ledger


def replace(ledger: Ledger) -> None:
    from vllm.model_executor.models import registry
    from vllm.platforms import current_platform

    # A new interpreter would not have the card.
    ledger.replace(registry, "_run_in_subprocess", lambda inspect: inspect())
    ledger.replace(type(current_platform), "dist_backend", "gloo")
