"""Writes with transformers what it is told to: a line {"prompts", "newTokens"} in, a line {"seconds", "texts"} out."""

import json
import sys
import time

import torch
import transformers as hf

folder, threads = sys.argv[1:3]
torch.set_num_threads(int(threads))
hf.logging.set_verbosity_error()
hf.utils.logging.disable_progress_bar()
model = hf.GPT2LMHeadModel.from_pretrained(folder).eval()
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    ids = torch.tensor(asked["prompts"])
    begin = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked["newTokens"], do_sample=False,
                             pad_token_id=0, eos_token_id=None)
    print(json.dumps(dict(seconds=time.perf_counter() - begin, texts=out.tolist())), flush=True)
