"""Variables that keep engines from telling others what is run here."""

NO_USAGE_REPORTS = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
