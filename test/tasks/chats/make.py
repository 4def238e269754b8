"""Writes what TRL's SFTTrainer makes of chats, for the tests of the task.

    python test/tasks/chats/make.py ../shared/data/vocab test/tasks/chats/trl.json

Wants torch, transformers and trl. For each template: the text and the tokens of each chat, which of them `assistant_only_loss` trains on, and
the rows that `packing` makes of them with their labels and positions. TRL wants {% generation %} in a template; for those without, the expected
mask is that of the same template with it.
"""

import json
import sys
import tempfile

from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

vocabulary, out = sys.argv[1:]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>"]
LENGTH = 96

# In the forms that models are published with.
TEMPLATES = {
    "blocks with white space of their own": """\
{% for message in messages %}
    {% if message['role'] == 'assistant' %}
<|im_start|>assistant
        {% generation %}
{{ message['content'] }}<|im_end|>
        {% endgeneration %}
    {% else %}
<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
""",
    "a default system message and reasoning": """\
{%- if messages[0].role != 'system' %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- generation %}
            {%- set parts = message.content.split('</think>') %}
            {%- if loop.last and parts | length > 1 %}
                {{- '<think>\\n' + parts[0].split('<think>')[-1].strip('\\n') + '\\n</think>\\n\\n' }}
            {%- endif %}
            {{- parts[-1].lstrip('\\n') + '<|im_end|>\\n' }}
        {%- endgeneration %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}""",
    "instructions in brackets": """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system = messages[0]['content'] + '\\n\\n' %}\
{% else %}{% set loop_messages = messages %}{% set system = '' %}{% endif %}\
{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Roles must alternate user and assistant') }}{% endif %}\
{% if message['role'] == 'user' %}{{ '[INST] ' + (system if loop.first else '') + message['content'] | trim + ' [/INST]' }}\
{% else %}{% generation %}{{ ' ' + message['content'] | trim + eos_token }}{% endgeneration %}{% endif %}{% endfor %}""",
}

CHATS = [
    [
        {"role": "user", "content": "What is 3 plus 4?"},
        {"role": "assistant", "content": "3 plus 4 is 7."},
    ],
    [
        {"role": "system", "content": "You count letters."},
        {"role": "user", "content": "How many letters has «naïve»?"},
        {"role": "assistant", "content": "Five: n, a, ï, v, e. 😀"},
        {"role": "user", "content": "And \u65e5\u672c\u8a9e?"},
        {"role": "assistant", "content": "  Three.\n\nThey are \u65e5, \u672c and \u8a9e."},
    ],
    [
        {"role": "user", "content": "line one\nline two   "},
        {"role": "assistant", "content": "<think>\nA text of two lines.\n</think>\n\nTwo lines."},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "You said nothing."},
    ],
    [
        {"role": "user", "content": "Tell me of <|im_end|> and don't stop. " * 4},
        {"role": "assistant", "content": "It ends a message. " * 12},
    ],
]


def tokenizer_of(template):
    tokenizer = Tokenizer(models.BPE.from_file(f"{vocabulary}/gpt2-vocab.json", f"{vocabulary}/gpt2-merges.txt"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<|endoftext|>")
    fast.chat_template = template
    return fast


def trained(tokenizer, packing):
    """The rows that a trainer reads, and what its collator makes of them."""
    with tempfile.TemporaryDirectory() as folder:
        config = SFTConfig(
            folder,
            use_cpu=True,
            report_to="none",
            max_length=LENGTH,
            assistant_only_loss=True,
            packing=packing,
            packing_strategy="bfd",
            padding_free=packing,
            eos_token="</s>",
            bf16=False,
        )
        model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_head=1, n_layer=1, n_positions=LENGTH))
        model.config._attn_implementation = "flash_attention_2" if packing else "eager"
        data = Dataset.from_list([{"messages": chat} for chat in CHATS])
        trainer = SFTTrainer(model, args=config, train_dataset=data, processing_class=tokenizer)
        rows = [dict(row) for row in trainer.train_dataset]
        return [{name: tensor.tolist() for name, tensor in trainer.data_collator([row]).items()} for row in rows]


def made(template):
    tokenizer = tokenizer_of(template)
    chats = []
    for messages in CHATS:
        encoded = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
        chats.append({"text": text, "prompt": prompt, "ids": encoded["input_ids"], "learned": encoded["assistant_masks"]})
    keep = ("input_ids", "labels", "position_ids")
    packed = [{name: row[name][0] for name in keep if name in row} for row in trained(tokenizer, True)]
    plain = [{name: row[name][0] for name in keep if name in row} for row in trained(tokenizer, False)]
    return {"template": template, "chats": chats, "plain": plain, "packed": packed}


with open(out, "w") as file:
    json.dump(
        {"specials": SPECIALS, "length": LENGTH, "messages": CHATS, "templates": {name: made(text) for name, text in TEMPLATES.items()}},
        file,
        ensure_ascii=True,
    )
