"""The control side: Hydra, Ray, verdicts, reports. No vLLM, no torch."""
