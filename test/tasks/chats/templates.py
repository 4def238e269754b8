"""Prints what transformers make of chats by each template that TRL carries, with the templates, as JSON.

    python test/tasks/chats/templates.py
"""

import json
import sys
from pathlib import Path

import trl
from transformers.utils.chat_template_utils import render_jinja_template

tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
chats = [
    [{"role": "user", "content": "What is 3 plus 4?"}, {"role": "assistant", "content": "3 plus 4 is 7."}],
    [
        {"role": "system", "content": "You count."},
        {"role": "user", "content": "How many letters has «naïve»?  "},
        {"role": "assistant", "content": "Five: n, a, ï, v, e.\n"},
        {"role": "user", "content": "And \u65e5\u672c?"},
        {"role": "assistant", "content": "<think>\nTwo.\n</think>\n\nTwo."},
    ],
]


def rendered(template, messages, **options):
    try:
        texts, spans = render_jinja_template([messages], chat_template=template, **options, **tokens)
        return {"text": texts[0], "spans": spans[0] if spans else None}
    except Exception as error:
        return {"error": str(error)}


found = []
for path in sorted((Path(trl.__file__).parent / "chat_templates").glob("*.jinja")):
    template = path.read_text()
    marked = "endgeneration" in template
    for messages in chats:
        all = rendered(template, messages, return_assistant_tokens_mask=marked)
        prompt = rendered(template, messages[:-1], add_generation_prompt=True)
        found.append({"name": path.stem, "template": template, "messages": messages, "all": all, "prompt": prompt})
json.dump({"trl": trl.__version__, "tokens": tokens, "found": found}, sys.stdout)
