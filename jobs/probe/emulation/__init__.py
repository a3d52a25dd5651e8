"""
Makes this process believe that it has an accelerator, for vLLM's own code to start on.

Nothing of vLLM's selection is replaced. No kernel runs and no weight is loaded: tensors
have shapes, and no storage.

- `start`: the order of it all, from one environment variable; what the report says of it
- `ledger`: what is not real in this process
- `limits`: what the emulation can't do, told apart from vLLM's failures
- `modules`, `packages`: modules that are made up, hollow or hidden
- `nvml`, `amdsmi`: the vendors' libraries that know the cards
- `count`: how many of the card there are
- `torch_device`, `meta`: torch's view of the card, and its tensors
- `operators`: vLLM's compiled operators, by name only
- `engine`, `worker`, `loader`: the few places of vLLM that would need a real card
- `ask`: one question to vLLM's attention selector, without an engine
"""
