"""Writes with transformers: a line {"prompts", "samples", "newTokens", "stops"} in, a line {"seconds", "numTokens"} out."""

import json
import sys
import time

import torch
import transformers as hf

folder, threads = sys.argv[1:3]
torch.set_num_threads(int(threads))
hf.logging.set_verbosity_error()
hf.utils.logging.disable_progress_bar()
model = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    longest = max(map(len, asked["prompts"]))
    gaps = [longest - len(prompt) for prompt in asked["prompts"]]
    ids = torch.tensor([[0] * gap + prompt for gap, prompt in zip(gaps, asked["prompts"])])
    mask = torch.tensor([[0] * gap + [1] * len(prompt) for gap, prompt in zip(gaps, asked["prompts"])])
    stops = asked["stops"]
    begin = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=mask, max_new_tokens=asked["newTokens"], do_sample=True, top_k=0, top_p=1.0,
                             temperature=1.0, num_return_sequences=asked["samples"], pad_token_id=0, eos_token_id=stops or None)
    seconds = time.perf_counter() - begin
    new = out[:, longest:]
    ends = torch.isin(new, torch.tensor(stops, dtype=new.dtype)) if stops else torch.zeros_like(new, dtype=torch.bool)
    # Up to the first token that ends a text, that one included.
    counted = (ends.cumsum(1) - ends.long()) == 0
    print(json.dumps(dict(seconds=seconds, numTokens=int(counted.sum()))), flush=True)
