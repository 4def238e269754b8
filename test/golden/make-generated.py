"""Writes what transformers generates with the reference states that can, for the tests of generation.

    python test/golden/make-generated.py GOLDEN... test/golden/generated.json

Wants torch, transformers and safetensors. GOLDEN are test/golden/states, ../shared/golden, or what test/golden/make.py writes. Of each
folder there: prompts of unequal lengths (padded on the left for a decoder, on the right for an encoder), and for each setting the
tokens that follow, without padding. A penalty of transformers' counts a decoder's padding as text, so there each prompt stands alone.
"""

import hashlib
import json
import os
import random
import sys

import torch
import transformers as hf

SETTINGS = {
    "greedy": dict(),
    "greedy, repetitions penalised": dict(repetition_penalty=1.7),
    "4 beams": dict(num_beams=4),
    "3 beams, long ones preferred": dict(num_beams=3, length_penalty=2.0),
    "3 beams, short ones preferred, ended early": dict(num_beams=3, length_penalty=-1.0, early_stopping=True),
    "2 beams, never ended early": dict(num_beams=2, length_penalty=0.5, early_stopping="never"),
}
NEW_TOKENS = 12


def stopping(model, inputs, pad, begun):
    """Ends at a token that a greedy text has in its middle, so that rows end at different places; the config's own beside it."""
    out = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=False, pad_token_id=pad, eos_token_id=None)
    return int(out[0, begun + NEW_TOKENS // 2])


def main(*places):
    *goldens, target = places
    folders = {}
    for path in sorted((os.path.join(golden, name) for golden in goldens for name in os.listdir(golden)), key=os.path.basename):
        name = os.path.basename(path)
        if not os.path.exists(os.path.join(path, "config.json")):
            continue
        config = json.load(open(os.path.join(path, "config.json")))
        architecture = (config.get("architectures") or [""])[0]
        if not architecture.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration")):
            continue
        model = getattr(hf, architecture).from_pretrained(path, attn_implementation="eager").eval()
        torch.manual_seed(0)
        rng = random.Random(name)
        model.generation_config.forced_eos_token_id = None
        is_reply = model.config.is_encoder_decoder
        pad = model.config.pad_token_id if model.config.pad_token_id is not None else 0
        lengths = [7, 4, 9]
        prompts = [[rng.randrange(4, model.config.vocab_size) for _ in range(length)] for length in lengths]
        longest = max(lengths)
        rows = [(row + [pad] * (longest - len(row))) if is_reply else ([pad] * (longest - len(row)) + row) for row in prompts]
        mask = [[int(place < len(row)) if is_reply else int(place >= longest - len(row)) for place in range(longest)] for row in prompts]
        inputs = dict(input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask))
        alone = [dict(input_ids=torch.tensor([row])) for row in prompts]
        stop = stopping(model, inputs, pad, 1 if is_reply else longest)
        results = {}
        for setting, options in SETTINGS.items():
            for stops in ([], [stop]):
                texts = []
                for batch in alone if "repetition_penalty" in options and not is_reply else [inputs]:
                    begun = 1 if is_reply else batch["input_ids"].shape[1]
                    with torch.no_grad():
                        out = model.generate(
                            **batch, max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=False, pad_token_id=pad,
                            eos_token_id=stops or None, **options,
                        )
                    texts += [cut(text, stops) for text in out[:, begun:].tolist()]
                results[setting + (", stopped" if stops else "")] = texts
        folders[name] = dict(sha256=digest(path), prompts=prompts, pad=pad, stop=stop, new_tokens=NEW_TOKENS, results=results)
        print(name, stop, results["greedy, stopped"], results["4 beams, stopped"])
    with open(target, "w") as file:
        json.dump(dict(transformers=hf.__version__, settings=SETTINGS, folders=folders), file)
        file.write("\n")


def digest(path):
    """By which the test knows the state: another one of the same name has other texts."""
    summed = hashlib.sha256()
    for name in ["config.json", "model.safetensors"]:
        with open(os.path.join(path, name), "rb") as file:
            summed.update(file.read())
    return summed.hexdigest()


def cut(text, stops):
    """Without what stands behind the end."""
    ends = [place for place, token in enumerate(text) if token in stops]
    return text[: ends[0] + 1] if ends else text


if __name__ == "__main__":
    main(*sys.argv[1:])
