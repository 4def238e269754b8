# Reads "NAME CALLS" lines, answers each with the microseconds per call of that operator in PyTorch.
import sys
import time

import torch

torch.set_num_threads(1)
a, b = torch.zeros(4, 4), torch.zeros(4, 4)


def add(calls):
    for _ in range(calls):
        a.add(b)


def matmul(calls):
    for _ in range(calls):
        a.matmul(b)


def view(calls):
    for _ in range(calls):
        a.view(2, 8)


cases = {"add": add, "matmul": matmul, "view": view}

for line in sys.stdin:
    name, calls = line.split()
    start = time.perf_counter_ns()
    cases[name](int(calls))
    print((time.perf_counter_ns() - start) / 1000 / int(calls), flush=True)
