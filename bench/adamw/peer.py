# Reads "NAME CALLS" lines, answers each with the microseconds per step of torch's fused AdamW over the given parameters.
#   python3 peer.py    (NUM_PARAMETERS and NUM_THREADS in the environment)
import os
import sys
import time

import torch

torch.set_num_threads(int(os.environ["NUM_THREADS"]))
numel = int(os.environ["NUM_PARAMETERS"])
param = torch.nn.Parameter(torch.randn(numel))
param.grad = torch.randn(numel)
low_gradient = param.grad.bfloat16()
low = torch.empty(numel, dtype=torch.bfloat16)
optimizer = torch.optim.AdamW([param], lr=1e-3, weight_decay=0.1, fused=True)


def float32():
    optimizer.step()


def bfloat16():
    """What a bfloat16 model needs with it: the gradient widened before, the new parameters rounded after."""
    param.grad.copy_(low_gradient)
    optimizer.step()
    with torch.no_grad():
        low.copy_(param)


for line in sys.stdin:
    name, calls = line.split()
    body = {"float32": float32, "bfloat16": bfloat16}[name]
    start = time.perf_counter()
    for _ in range(int(calls)):
        body()
    print((time.perf_counter() - start) * 1e6 / int(calls), flush=True)
