"""Writes quantized.json: digests of what ggml's C code makes of the numbers that quantize.test.ts makes too.

    python make-quantized.py build/llama-cpp/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so
"""
import ctypes
import hashlib
import json
import struct
import sys
from pathlib import Path

BLOCKS = 64


def numbers(seed, kind):
    """Whole numbers of a generator times a power of two: the same floats in every language."""
    state = seed
    values = []
    for place in range(BLOCKS * 256):
        state = (state * 1664525 + 1013904223) % 2**32
        value = (state >> 8) / 2**23 - 1
        if kind == "outliers" and place % 37 == 0:
            value *= 64
        if kind == "positive":
            value = abs(value)
        if kind == "constant":
            value = (place // 32 % 5 - 2) / 4
        values.append(value)
    return struct.pack(f"<{len(values)}f", *values)


ggml = ctypes.CDLL(sys.argv[1])
types = {"Q8_0": (ggml.quantize_row_q8_0_ref, 8 * 34), "Q4_K": (ggml.quantize_row_q4_K_ref, 144)}
made = {}
for kind in ["even", "outliers", "positive", "constant"]:
    values = numbers(7, kind)
    for name, (quantize, size) in types.items():
        out = ctypes.create_string_buffer(BLOCKS * size)
        quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
        quantize(values, out, BLOCKS * 256)
        made[f"{name} of {kind} numbers"] = hashlib.sha256(out.raw).hexdigest()
Path(__file__).with_name("quantized.json").write_text(json.dumps(made, indent=2) + "\n")
