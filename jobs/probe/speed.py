"""How fast an engine is, by the clock: throughput, time to the first token, accepted drafts."""

import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

from jobs.contract.asked import Workload
from jobs.contract.seen import SpeedSample, SpeedSeen
from jobs.probe.reading import extension

FIRST_TOKENS = 5
"""Prompts alone, of which the median counts."""

DRAFTS = "vllm:spec_decode_num_drafts"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens"

Prompt = dict[str, list[int]]


def measured(llm: Any, asked: Workload) -> SpeedSeen:
    """The first round warms up, and does not count."""
    drawn = random.Random(asked.seed)  # noqa: S311 - the same for every build
    samples = [_sample(llm, asked, drawn) for _ in range(asked.samples + 1)]
    peaks = [peak for peak in llm.collective_rpc(extension.PEAK) if peak is not None]
    return SpeedSeen(samples=tuple(samples[1:]), device_peak_mib=max(peaks, default=None))


def _sample(llm: Any, asked: Workload, drawn: random.Random) -> SpeedSample:
    alone = [_prompt(llm, asked, drawn) for _ in range(FIRST_TOKENS)]
    together = [_prompt(llm, asked, drawn) for _ in range(asked.prompts)]
    first_s = [_timed(llm, [prompt], 1)[0] for prompt in alone]
    before = _counted(llm)
    seconds, tokens = _timed(llm, together, asked.output_tokens)
    return SpeedSample(
        tokens_per_s=tokens / seconds,
        ttft_s=statistics.median(first_s),
        acceptance_length=_acceptance(before, _counted(llm)),
    )


def _prompt(llm: Any, asked: Workload, drawn: random.Random) -> Prompt:
    vocabulary = llm.llm_engine.model_config.get_vocab_size()
    return {
        "prompt_token_ids": [drawn.randrange(1, vocabulary) for _ in range(asked.prompt_tokens)]
    }


def _timed(llm: Any, prompts: Sequence[Prompt], output_tokens: int) -> tuple[float, int]:
    """Seconds, and how many tokens came."""
    from vllm import SamplingParams

    sampling = SamplingParams(
        max_tokens=output_tokens, temperature=0, ignore_eos=True, detokenize=False
    )
    began = time.perf_counter()
    outputs = llm.generate([*prompts], sampling, use_tqdm=False)
    seconds = time.perf_counter() - began
    return seconds, sum(len(output.outputs[0].token_ids) for output in outputs)


def _counted(llm: Any) -> dict[str, float]:
    """Of speculative decoding, since the engine started; empty where there is none."""
    metrics = {DRAFTS: 0.0, ACCEPTED: 0.0}
    found = [metric for metric in llm.get_metrics() if metric.name in metrics]
    for metric in found:
        metrics[metric.name] += metric.value
    return metrics if found else {}


def _acceptance(before: dict[str, float], after: dict[str, float]) -> float | None:
    drafts = after.get(DRAFTS, 0) - before.get(DRAFTS, 0)
    if not drafts:
        return None
    return 1 + (after[ACCEPTED] - before[ACCEPTED]) / drafts
