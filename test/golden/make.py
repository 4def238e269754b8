"""Writes reference states of other shapes than those beside the repository, for the golden tests to be pointed at.

    python test/golden/make.py FOLDER [SEED [WORD]]     those with WORD in their names alone
    python test/golden/make.py test/golden/states 1 tiny     those that lie in the repository
    TROUPE_GOLDEN=FOLDER npx vitest run test/golden

Wants torch, transformers, peft and safetensors. What is written is what ../shared/golden/README.md describes; widths, heads, layers,
feed-forwards, activations, labels, types, biases and padding differ with the seed.
"""

import json
import os
import random
import sys

import torch
import transformers as hf
from safetensors.torch import load_file, save_file

ADAMW = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)


def ids(rng, rows, length, vocab, low=4):
    return torch.tensor([[rng.randrange(low, vocab) for _ in range(length)] for _ in range(rows)])


def padding(rng, rows, length):
    """Rows of unequal length, padded on the right; the first is whole."""
    lengths = [length] + [rng.randrange(length // 2, length) for _ in range(rows - 1)]
    return torch.tensor([[int(place < each) for place in range(length)] for each in lengths])


def text(rng, config, rows=3, types=True, left=False):
    length = rng.randrange(9, 20)
    mask = padding(rng, rows, length)
    if left:
        mask = mask.flip(1)
    pad = config.pad_token_id if config.pad_token_id is not None else 0
    inputs = dict(input_ids=ids(rng, rows, length, config.vocab_size).masked_fill(mask == 0, pad), attention_mask=mask)
    if types and getattr(config, "type_vocab_size", 1) > 1:
        inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, (rows, length))
    return inputs


def masked(rng, inputs):
    labels = inputs["input_ids"].clone()
    keep = torch.rand(labels.shape) < 0.3
    keep[:, 1] = True
    labels[~keep | (inputs["attention_mask"] == 0)] = -100
    return labels


def encoder_config(rng, cls, **more):
    heads = rng.choice([2, 4, 6])
    return cls(
        vocab_size=rng.randrange(60, 90), hidden_size=heads * rng.choice([6, 8, 10]), num_attention_heads=heads,
        num_hidden_layers=rng.choice([2, 3]), intermediate_size=2 * rng.randrange(20, 50),
        hidden_act=rng.choice(["gelu", "relu", "gelu_new", "silu"]), max_position_embeddings=32,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05, **more)


def models(rng):
    """name → (model, inputs)"""
    many = lambda count: {"num_labels": count}
    kinds = ((hf.BertConfig, "Bert", dict(type_vocab_size=3)), (hf.RobertaConfig, "Roberta", dict(type_vocab_size=1)),
             (hf.Data2VecTextConfig, "Data2VecText", dict(type_vocab_size=2)),
             (hf.AlbertConfig, "Albert", dict(type_vocab_size=2, embedding_size=14, num_hidden_groups=2, inner_group_num=2,
                                             classifier_dropout_prob=0)))
    for config_class, name, more in kinds:
        for task in ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering"):
            labels = many(rng.randrange(1, 6)) if task.endswith("Classification") else {}
            if task == "TokenClassification":
                labels = many(rng.randrange(2, 7))
            config = encoder_config(rng, config_class, **more, **labels)
            model = getattr(hf, f"{name}For{task}")(config)
            inputs = text(rng, config)
            rows, length = inputs["input_ids"].shape
            if task == "MaskedLM":
                inputs["labels"] = masked(rng, inputs)
            elif task == "SequenceClassification":
                one = config.num_labels == 1
                inputs["labels"] = torch.randn(rows) if one else torch.randint(0, config.num_labels, (rows,))
            elif task == "TokenClassification":
                wanted = torch.randint(0, config.num_labels, (rows, length))
                inputs["labels"] = wanted.masked_fill(inputs["attention_mask"] == 0, -100)
            else:
                inputs["start_positions"] = torch.tensor([1, 2, 40])
                inputs["end_positions"] = torch.tensor([3, 4, 40])
            yield f"{name.lower()}-{task.lower()}", model, inputs
    config = encoder_config(rng, hf.BertConfig, tie_word_embeddings=False)
    model = hf.BertForPreTraining(config)
    inputs = text(rng, config)
    inputs.update(labels=masked(rng, inputs), next_sentence_label=torch.tensor([0, 1, 0]))
    yield "bert-pretraining-untied", model, inputs
    config = encoder_config(rng, hf.BertConfig, num_labels=4, problem_type="multi_label_classification")
    inputs = text(rng, config)
    inputs["labels"] = torch.randint(0, 2, (3, 4)).float()
    yield "bert-multi-label", hf.BertForSequenceClassification(config), inputs
    config = hf.GPT2Config(vocab_size=77, n_positions=32, n_embd=40, n_head=4, n_layer=2, n_inner=60, activation_function="relu",
                           resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0)
    inputs = text(rng, config, left=True)
    inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    yield "gpt2-left", hf.GPT2LMHeadModel(config), inputs
    for qkv_bias, patch in ((False, 8), (True, 3)):
        config = hf.ViTConfig(hidden_size=36, num_attention_heads=6, num_hidden_layers=2, intermediate_size=50, image_size=24,
                              patch_size=patch, num_channels=1, qkv_bias=qkv_bias, num_labels=5, hidden_act="gelu_new")
        inputs = dict(pixel_values=torch.randn(3, 1, 24, 24), labels=torch.tensor([0, 4, 2]))
        yield f"vit-patch-{patch}", hf.ViTForImageClassification(config), inputs
    for scale in (False, True):
        config = hf.BartConfig(vocab_size=71, d_model=36, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=50, decoder_ffn_dim=62,
                               encoder_attention_heads=6, decoder_attention_heads=2, max_position_embeddings=24, dropout=0,
                               activation_function="relu" if scale else "gelu", scale_embedding=scale, init_std=0.05)
        inputs = text(rng, config)
        inputs["labels"] = ids(rng, 3, 7, 71)
        inputs["labels"][1, 5:] = -100
        yield f"bart-scale-{scale}".lower(), hf.BartForConditionalGeneration(config), inputs
    for end in (2, 60):
        config = hf.CLIPConfig(
            text_config=dict(vocab_size=61, hidden_size=24, intermediate_size=50, num_hidden_layers=3, num_attention_heads=4,
                             max_position_embeddings=12, hidden_act="gelu", eos_token_id=end, bos_token_id=0, pad_token_id=1),
            vision_config=dict(hidden_size=30, intermediate_size=44, num_hidden_layers=2, num_attention_heads=6, image_size=12,
                               patch_size=6, num_channels=1), projection_dim=18)
        words = ids(rng, 3, 9, 59)
        words[:, -1] = 60
        words[1, 5] = 60
        mask = torch.ones_like(words)
        mask[1, 6:] = 0
        yield f"clip-end-{end}", hf.CLIPModel(config), dict(input_ids=words, attention_mask=mask, pixel_values=torch.randn(3, 1, 12, 12))
    for norm, stable, reduction in (("group", False, "sum"), ("layer", True, "mean")):
        config = hf.Wav2Vec2Config(
            vocab_size=13, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=44, conv_dim=(10, 14),
            conv_kernel=(8, 3), conv_stride=(4, 2), conv_bias=stable, feat_extract_norm=norm, do_stable_layer_norm=stable,
            num_conv_pos_embeddings=7 if stable else 6, num_conv_pos_embedding_groups=2, hidden_dropout=0, activation_dropout=0,
            attention_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, apply_spec_augment=False,
            ctc_loss_reduction=reduction, ctc_zero_infinity=True)
        mask = torch.ones(3, 400, dtype=torch.long)
        mask[1, 300:] = 0
        labels = ids(rng, 3, 6, 13, low=1)
        labels[2, 4:] = -100
        yield f"wav2vec2-{norm}", hf.Wav2Vec2ForCTC(config), dict(input_values=torch.randn(3, 400) * mask, attention_mask=mask, labels=labels)


def shapes(rng):
    """Fields of config.json that the families above leave alone, each at least once: name → (model, inputs)"""
    def causal(name, config_class, model_class, left=False, edit=None, **fields):
        given = dict(vocab_size=79, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=3, intermediate_size=70,
                     attention_dropout=0, bos_token_id=0, eos_token_id=0, max_position_embeddings=32, initializer_range=0.05)
        config = config_class(**{**given, **fields})
        inputs = text(rng, config, types=False, left=left)
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        return name, model_class(config), inputs
    rope = lambda kind, **more: dict(rope_parameters=dict(rope_type=kind, rope_theta=500.0, **more))
    llama = lambda name, **fields: causal(f"llama-{name}", hf.LlamaConfig, hf.LlamaForCausalLM, **fields)
    mistral = lambda name, **fields: causal(f"mistral-{name}", hf.MistralConfig, hf.MistralForCausalLM, **fields)
    qwen = lambda name, **fields: causal(f"qwen2-{name}", hf.Qwen2Config, hf.Qwen2ForCausalLM, **fields)
    yield llama("one-group", num_key_value_heads=1, attention_bias=True, hidden_act="gelu")
    yield llama("wide-heads", head_dim=14, num_key_value_heads=6, mlp_bias=True, rms_norm_eps=1e-3)
    yield llama("tied-padded", tie_word_embeddings=True, pad_token_id=3, left=True)
    yield llama("linear", **rope("linear", factor=3.0))
    yield llama("dynamic", **rope("dynamic", factor=2.0))
    yield llama("dynamic-beyond", max_position_embeddings=8, **rope("dynamic", factor=4.0))
    yield llama("llama3", head_dim=16, **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16))
    yield llama("yarn", head_dim=16, **rope("yarn", factor=4.0, original_max_position_embeddings=8))
    yield llama("yarn-told", head_dim=16, **rope("yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=4.0, beta_slow=0.5, attention_factor=0.9))
    yield llama("yarn-scales", head_dim=16, **rope("yarn", factor=4.0, original_max_position_embeddings=8, mscale=0.7, mscale_all_dim=1.2, truncate=False))
    for original in (8, 24):
        yield llama(f"longrope-{original}", **rope("longrope", factor=2.0, original_max_position_embeddings=original,
                                               short_factor=[1.0, 1.1, 1.2, 1.5], long_factor=[1.0, 2.0, 3.0, 5.0]))
    yield mistral("window", sliding_window=3, left=True)
    yield mistral("no-window", sliding_window=None, num_key_value_heads=3)
    yield mistral("head", head_dim=10, sliding_window=5, tie_word_embeddings=True)
    yield qwen("windows", use_sliding_window=True, sliding_window=4, max_window_layers=1)
    yield qwen("tied", tie_word_embeddings=True, num_key_value_heads=3, hidden_act="relu")
    yield qwen("types", use_sliding_window=True, sliding_window=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"])
    gpt2 = lambda **fields: hf.GPT2Config(**{**dict(vocab_size=77, n_positions=32, n_embd=42, n_head=6, n_layer=2, resid_pdrop=0, embd_pdrop=0,
                                                attn_pdrop=0, bos_token_id=0, eos_token_id=0), **fields})
    for name, config in (("by-layer", gpt2(scale_attn_by_inverse_layer_idx=True)), ("unscaled", gpt2(scale_attn_weights=False, activation_function="silu")),
                         ("three-heads", gpt2(n_head=3, n_embd=27, n_inner=41, layer_norm_epsilon=1e-3))):
        inputs = text(rng, config)
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        yield f"gpt2-{name}", hf.GPT2LMHeadModel(config), inputs
    for kind in ("relu", "silu", "gelu_new", "gated-relu", "gated-gelu", "gated-silu"):
        gated = kind.startswith("gated")
        config = hf.T5Config(vocab_size=73, d_model=32, d_kv=7 if gated else 12, d_ff=51 if kind == "relu" else 50, num_layers=3 if gated else 2,
                             num_decoder_layers=2, num_heads=3 if kind == "silu" else 4, dropout_rate=0, initializer_factor=0.4,
                             feed_forward_proj=kind, relative_attention_num_buckets=8 if gated else 32,
                             relative_attention_max_distance=9 if gated else 128, decoder_start_token_id=0 if gated else 5, pad_token_id=0,
                             tie_word_embeddings=gated, layer_norm_epsilon=1e-4)
        inputs = text(rng, config, types=False, left=kind == "silu")
        inputs["labels"] = ids(rng, 3, 21, 73)
        inputs["labels"][1, 5:] = -100
        if kind == "gated-silu":
            inputs["decoder_attention_mask"] = torch.ones(3, 21, dtype=torch.long)
            inputs["decoder_attention_mask"][1, 6:] = 0
        yield f"t5-{kind}", hf.T5ForConditionalGeneration(config), inputs
    config = hf.BartConfig(vocab_size=71, d_model=30, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=41, decoder_ffn_dim=37, pad_token_id=2,
                           encoder_attention_heads=3, decoder_attention_heads=5, max_position_embeddings=24, dropout=0, decoder_start_token_id=7,
                           activation_function="swish", init_std=0.05, tie_word_embeddings=False)
    inputs = text(rng, config)
    inputs["labels"] = ids(rng, 3, 7, 71)
    model = hf.BartForConditionalGeneration(config)
    model.final_logits_bias.add_(0.1 * torch.randn_like(model.final_logits_bias))
    yield "bart-untied", model, inputs
    picture = dict(hidden_size=36, num_attention_heads=4, num_hidden_layers=2, intermediate_size=51, num_labels=3)
    for name, (high, wide), fields in (("wide", (24, 40), dict(image_size=(24, 40), patch_size=8, num_channels=2)),
                                       ("oblong", (24, 20), dict(image_size=(24, 20), patch_size=(6, 4), layer_norm_eps=1e-3)),
                                       ("rest", (26, 26), dict(image_size=26, patch_size=8, hidden_act="relu", problem_type="single_label_classification"))):
        config = hf.ViTConfig(**picture, **fields)
        yield f"vit-{name}", hf.ViTForImageClassification(config), dict(pixel_values=torch.randn(3, config.num_channels, high, wide), labels=torch.tensor([0, 1, 2]))
    config = hf.CLIPConfig(
        text_config=dict(vocab_size=61, hidden_size=27, intermediate_size=51, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=12,
                         eos_token_id=60, bos_token_id=0, pad_token_id=1, layer_norm_eps=1e-4, hidden_act="quick_gelu"),
        vision_config=dict(hidden_size=30, intermediate_size=45, num_hidden_layers=1, num_attention_heads=5, image_size=14, patch_size=4, hidden_act="gelu"),
        projection_dim=11, logit_scale_init_value=1.5)
    words = ids(rng, 4, 12, 60)
    words[:, 7] = 60
    yield "clip-odd", hf.CLIPModel(config), dict(input_ids=words, pixel_values=torch.randn(4, 3, 14, 14))
    sound = dict(vocab_size=13, hidden_size=36, num_hidden_layers=2, num_attention_heads=3, intermediate_size=45, conv_dim=(10, 14, 9),
                 conv_kernel=(8, 3, 2), conv_stride=(4, 2, 2), num_conv_pos_embeddings=7, num_conv_pos_embedding_groups=3, hidden_dropout=0,
                 activation_dropout=0, attention_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, ctc_loss_reduction="mean", pad_token_id=2, apply_spec_augment=False)
    def speech(name, model_class, config, masked=True):
        mask = torch.ones(3, 500, dtype=torch.long)
        mask[1, 300:] = 0
        labels = ids(rng, 3, 6, 13, low=3)
        labels[2, 4:] = -100
        given = dict(attention_mask=mask) if masked else {}
        return name, model_class(config), dict(input_values=torch.randn(3, 500) * (mask if masked else 1), labels=labels, **given)
    wav = lambda name, masked=True, **fields: speech(f"wav2vec2-{name}", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**{**sound, **fields}), masked)
    yield wav("group-stable", feat_extract_norm="group", do_stable_layer_norm=True, conv_bias=True)
    yield wav("layer-plain", feat_extract_norm="layer", do_stable_layer_norm=False, hidden_act="relu", feat_extract_activation="relu")
    yield wav("unmasked", masked=False, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=1, layer_norm_eps=1e-3)
    yield wav("adapter", add_adapter=True, num_adapter_layers=1, output_hidden_size=20)
    yield wav("adapter-same", add_adapter=True, num_adapter_layers=1, adapter_kernel_size=4)
    audio = dict(conv_pos_kernel_size=5, num_conv_pos_embeddings=3)
    for name, fields in (("", {}), ("-even", dict(conv_pos_kernel_size=4, num_conv_pos_embeddings=1, conv_bias=True, hidden_act="gelu_new"))):
        yield speech(f"data2vec-audio{name}", hf.Data2VecAudioForCTC, hf.Data2VecAudioConfig(**{**sound, **audio, **fields}), not name)
    for name, fields, act in (("eps", dict(layer_norm_eps=1e-3), "relu6"), ("padding", dict(pad_token_id=5), "mish"), ("no-padding", dict(pad_token_id=None), "gelu_python")):
        config = hf.BertConfig(vocab_size=67, hidden_size=27, num_attention_heads=3, num_hidden_layers=2, intermediate_size=41, max_position_embeddings=24,
                               hidden_act=act, hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05, tie_word_embeddings=False, **fields)
        inputs = text(rng, config)
        yield f"bert-{name}", hf.BertForMaskedLM(config), dict(inputs, labels=masked(rng, inputs))
    config = encoder_config(rng, hf.RobertaConfig, tie_word_embeddings=False, pad_token_id=4)
    inputs = text(rng, config, left=True)
    yield "roberta-left-untied", hf.RobertaForMaskedLM(config), dict(inputs, labels=masked(rng, inputs))
    config = encoder_config(rng, hf.BertConfig, num_labels=3, problem_type="regression")
    yield "bert-regression", hf.BertForSequenceClassification(config), dict(text(rng, config), labels=torch.randn(3, 3))
    config = encoder_config(rng, hf.AlbertConfig, embedding_size=15, num_hidden_groups=2, inner_group_num=1, classifier_dropout_prob=0, tie_word_embeddings=False)
    inputs = text(rng, config, types=False)
    yield "albert-untied", hf.AlbertForMaskedLM(config), dict(inputs, labels=masked(rng, inputs))
    for task in ("PreTraining", "MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering"):
        config = encoder_config(rng, hf.MegatronBertConfig, type_vocab_size=2, num_labels=3 if task.endswith("Classification") else 2)
        inputs = text(rng, config)
        if task in ("PreTraining", "MaskedLM"):
            inputs["labels"] = masked(rng, inputs)
        if task == "PreTraining":
            inputs["next_sentence_label"] = torch.tensor([0, 1, 0])
        if task == "SequenceClassification":
            inputs["labels"] = torch.tensor([0, 2, 1])
        if task == "TokenClassification":
            inputs["labels"] = torch.randint(0, 3, inputs["input_ids"].shape).masked_fill(inputs["attention_mask"] == 0, -100)
        if task == "QuestionAnswering":
            inputs.update(start_positions=torch.tensor([1, 2, 40]), end_positions=torch.tensor([3, 4, 40]))
        yield f"megatron-bert-{task.lower()}", getattr(hf, f"MegatronBertFor{task}")(config), inputs


def decoders(rng):
    """OPT, GPT-NeoX and GPT-J: name → (model, inputs)"""
    def causal(name, model_class, config, left=False, mask=True):
        inputs = text(rng, config, types=False, left=left)
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        if not mask:
            del inputs["attention_mask"]
        return name, model_class(config), inputs
    def opt(name, left=False, mask=True, **fields):
        given = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=3, ffn_dim=43, max_position_embeddings=32, dropout=0, init_std=0.05)
        return causal(f"opt-{name}", hf.OPTForCausalLM, hf.OPTConfig(**{**given, **fields}), left, mask)
    def neox(name, left=False, mask=True, **fields):
        given = dict(vocab_size=61, hidden_size=40, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, max_position_embeddings=32, bos_token_id=0,
                     eos_token_id=0, initializer_range=0.05)
        return causal(f"gpt-neox-{name}", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**{**given, **fields}), left, mask)
    def gptj(name, left=False, mask=True, **fields):
        given = dict(vocab_size=61, n_embd=40, n_head=5, n_layer=3, n_inner=43, rotary_dim=4, n_positions=32, bos_token_id=0, eos_token_id=0, initializer_range=0.05)
        return causal(f"gpt-j-{name}", hf.GPTJForCausalLM, hf.GPTJConfig(**{**given, **fields}), left, mask)
    yield opt("odd")
    yield opt("left", left=True, pad_token_id=7, activation_function="gelu", hidden_size=28, num_attention_heads=4, num_hidden_layers=2)
    yield opt("narrow-words", word_embed_proj_dim=14, do_layer_norm_before=False, left=True)
    yield opt("wide-words", word_embed_proj_dim=37, tie_word_embeddings=False)
    yield opt("unbiased", enable_bias=False, mask=False, num_hidden_layers=1)
    yield opt("old", _remove_final_layer_norm=True, num_attention_heads=3, ffn_dim=64, vocab_size=64)
    yield neox("odd")
    yield neox("in-turn", use_parallel_residual=False, left=True, num_attention_heads=4, hidden_act="relu")
    yield neox("whole-heads", rotary_pct=1.0, rotary_emb_base=500, tie_word_embeddings=True, num_hidden_layers=1)
    yield neox("unbiased", attention_bias=False, rotary_pct=0.5, layer_norm_eps=1e-3, mask=False, hidden_size=48, num_attention_heads=3)
    yield neox("stretched", rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=10000.0, partial_rotary_factor=0.25), num_hidden_layers=2)
    yield gptj("odd")
    yield gptj("left", left=True, rotary_dim=8, n_head=4, n_layer=2)
    yield gptj("whole-heads", rotary_dim=8, n_inner=None, activation_function="gelu", mask=False)
    yield gptj("tied", tie_word_embeddings=True, n_embd=48, n_head=3, rotary_dim=6, layer_norm_epsilon=1e-3, n_layer=1)


def tiny(rng):
    """What lies in test/golden/states: families that the folders beside the repository leave out, as small as they may be."""
    def causal(name, model_class, config):
        inputs = dict(input_ids=ids(rng, 3, 7, 19), attention_mask=padding(rng, 3, 7))
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        return name, model_class(config), inputs
    yield causal("opt", hf.OPTForCausalLM, hf.OPTConfig(vocab_size=19, hidden_size=12, num_attention_heads=3, num_hidden_layers=2, ffn_dim=15, max_position_embeddings=24,
                 word_embed_proj_dim=8, dropout=0, init_std=0.4))
    yield causal("gpt-neox", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(vocab_size=19, hidden_size=24, num_attention_heads=3, num_hidden_layers=2, intermediate_size=15,
                 max_position_embeddings=24, bos_token_id=0, eos_token_id=0, initializer_range=0.4))
    yield causal("gpt-j", hf.GPTJForCausalLM, hf.GPTJConfig(vocab_size=19, n_embd=12, n_head=3, n_layer=2, n_inner=15, rotary_dim=2, n_positions=24, bos_token_id=0,
                 eos_token_id=0, initializer_range=0.4))
    yield pretrained("wav2vec2-pretraining", rng, samples=160, hidden_size=12, conv_dim=(6, 6), intermediate_size=15, num_codevectors_per_group=7)


def pretrained(name, rng, rows=3, samples=400, padded=True, probability=0.5, span=2, others=5, **fields):
    """
    wav2vec 2 that learns from recordings alone, with frames masked and negatives drawn as transformers draws them. There are so many codes
    that two frames seldom have the same: transformers tells that by the bits of products, whose last ones depend on the row.
    """
    from transformers.models.wav2vec2 import modeling_wav2vec2 as wav2vec2
    import numpy
    numpy.random.seed(rng.randrange(2**31))
    given = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=35, conv_dim=(10, 14), conv_kernel=(8, 3), conv_stride=(5, 3),
                 num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=2, hidden_dropout=0, activation_dropout=0, attention_dropout=0, feat_proj_dropout=0,
                 final_dropout=0, layerdrop=0, mask_time_prob=0.2, num_codevectors_per_group=53, num_codevector_groups=2, codevector_dim=10, proj_codevector_dim=9,
                 num_negatives=others)
    config = hf.Wav2Vec2Config(**{**given, **fields})
    model = hf.Wav2Vec2ForPreTraining(config)
    mask = torch.ones(rows, samples, dtype=torch.long)
    if padded:
        mask[1, samples * 2 // 3:] = 0
    lengths = model._get_feat_extract_output_lengths(mask.sum(-1))
    frames = int(model._get_feat_extract_output_lengths(samples))
    seen = (torch.arange(frames)[None] < lengths[:, None]).long()
    hidden = wav2vec2._compute_mask_indices((rows, frames), probability, span, attention_mask=seen, min_masks=2)
    negatives = wav2vec2._sample_negative_indices((rows, frames), others, hidden)
    inputs = dict(input_values=torch.randn(rows, samples) * mask, mask_time_indices=torch.tensor(hidden).long(),
                  sampled_negative_indices=torch.tensor(negatives).long())
    return name, model, dict(inputs, attention_mask=mask) if padded else inputs


def firsts(rng):
    """Heads that read one position of the last layer, which is all there is of it: few layers, odd heads, padding in front. name → (model, inputs)"""
    encoders = (("bert", hf.BertConfig, hf.BertForSequenceClassification, {}), ("roberta", hf.RobertaConfig, hf.RobertaForSequenceClassification, {}),
                ("data2vec-text", hf.Data2VecTextConfig, hf.Data2VecTextForSequenceClassification, {}),
                ("megatron-bert", hf.MegatronBertConfig, hf.MegatronBertForSequenceClassification, {}),
                ("albert", hf.AlbertConfig, hf.AlbertForSequenceClassification, dict(embedding_size=13, num_hidden_groups=1, classifier_dropout_prob=0)))
    for name, config_class, model_class, more in encoders:
        for layers, left, labels, act in ((1, True, 1, "relu"), (3, True, 5, "gelu"), (1, False, 3, "gelu_new")):
            config = config_class(vocab_size=61, hidden_size=27, num_attention_heads=3, num_hidden_layers=layers, intermediate_size=41, max_position_embeddings=32,
                                  type_vocab_size=2, hidden_act=act, hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05, num_labels=labels, **more)
            inputs = text(rng, config, left=left)
            rows = inputs["input_ids"].shape[0]
            inputs["labels"] = torch.randn(rows) if labels == 1 else torch.randint(0, labels, (rows,))
            yield f"{name}-first-{layers}-{labels}", model_class(config), inputs
    for layers in (1, 3):
        config = hf.BertConfig(vocab_size=61, hidden_size=45, num_attention_heads=5, num_hidden_layers=layers, intermediate_size=37, max_position_embeddings=32,
                               hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05)
        inputs = text(rng, config, left=layers == 3)
        inputs.update(labels=masked(rng, inputs), next_sentence_label=torch.tensor([0, 1, -100]))
        yield f"bert-pretraining-{layers}", hf.BertForPreTraining(config), inputs
        config = hf.ViTConfig(hidden_size=45, num_attention_heads=5, num_hidden_layers=layers, intermediate_size=37, image_size=(9, 15), patch_size=3, num_channels=5,
                              qkv_bias=layers == 1, num_labels=7, hidden_act="relu", layer_norm_eps=1e-4)
        yield f"vit-first-{layers}", hf.ViTForImageClassification(config), dict(pixel_values=torch.randn(4, 5, 9, 15), labels=torch.tensor([0, 6, 2, 3]))
    for layers, heads, groups, width in ((1, 9, 3, 6), (3, 3, 1, 10)):
        config = hf.LlamaConfig(vocab_size=61, hidden_size=27, num_attention_heads=heads, num_key_value_heads=groups, head_dim=width, num_hidden_layers=layers, intermediate_size=43,
                                attention_dropout=0, bos_token_id=0, eos_token_id=0, initializer_range=0.05, attention_bias=layers == 1, tie_word_embeddings=layers == 3)
        inputs = text(rng, config, types=False, left=layers == 1)
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        yield f"llama-groups-{groups}", hf.LlamaForCausalLM(config), inputs
    yield pretrained("wav2vec2-pretraining", rng)
    yield pretrained("wav2vec2-pretraining-stable", rng, rows=2, samples=333, padded=False, probability=0.7, span=3, others=11, do_stable_layer_norm=True, feat_extract_norm="layer",
                     num_hidden_layers=3, num_codevectors_per_group=19, num_codevector_groups=3, codevector_dim=12, contrastive_logits_temperature=0.3, diversity_loss_weight=0.7)
    yield pretrained("wav2vec2-pretraining-one", rng, others=2, num_hidden_layers=1, num_codevectors_per_group=97, codevector_dim=6, hidden_act="relu")


def corners(rng):
    """What tensor parallelism and stages divide least well: odd heads, words, inner widths and layers. name → (model, inputs)"""
    encoder = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, max_position_embeddings=32,
                   hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05)
    def gaps(name, config_class, model_class, **fields):
        config = config_class(**{**encoder, **fields})
        inputs = text(rng, config, types="types" in name)
        return name, model_class(config), dict(inputs, labels=masked(rng, inputs))
    yield gaps("bert-odd", hf.BertConfig, hf.BertForMaskedLM, type_vocab_size=1, pad_token_id=60)
    yield gaps("roberta-odd-types", hf.RobertaConfig, hf.RobertaForMaskedLM, type_vocab_size=3, pad_token_id=0, hidden_act="gelu_fast")
    yield gaps("data2vec-text-odd", hf.Data2VecTextConfig, hf.Data2VecTextForMaskedLM, num_attention_heads=3)
    yield gaps("megatron-bert-odd-types", hf.MegatronBertConfig, hf.MegatronBertForMaskedLM, type_vocab_size=2, layer_norm_eps=1e-4)
    yield gaps("albert-odd", hf.AlbertConfig, hf.AlbertForMaskedLM, embedding_size=37, num_hidden_layers=5, num_hidden_groups=1, inner_group_num=3,
               classifier_dropout_prob=0, hidden_act="gelu")
    yield gaps("albert-groups", hf.AlbertConfig, hf.AlbertForMaskedLM, embedding_size=8, num_hidden_layers=5, num_hidden_groups=3, classifier_dropout_prob=0)
    config = hf.BertConfig(**encoder, num_labels=7, problem_type="single_label_classification")
    yield "bert-unmasked", hf.BertForSequenceClassification(config), dict(input_ids=ids(rng, 4, 11, 61), labels=torch.tensor([0, 6, 3, 1]))
    config = hf.RobertaConfig(**encoder, num_labels=3, problem_type="multi_label_classification")
    yield "roberta-several", hf.RobertaForSequenceClassification(config), dict(text(rng, config, types=False), labels=torch.randint(0, 2, (3, 3)).float())
    config = hf.AlbertConfig(**encoder, embedding_size=11, num_labels=1, classifier_dropout_prob=0)
    yield "albert-number", hf.AlbertForSequenceClassification(config), dict(text(rng, config), labels=torch.randn(3))
    decoder = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_key_value_heads=1, num_hidden_layers=3, intermediate_size=43, attention_dropout=0,
                   bos_token_id=0, eos_token_id=0, max_position_embeddings=32, initializer_range=0.05)
    def causal(name, config_class, model_class, left=False, mask=True, **fields):
        config = config_class(**{**decoder, **fields})
        inputs = text(rng, config, types=False, left=left)
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        if not mask:
            del inputs["attention_mask"]
        return name, model_class(config), inputs
    llama = lambda name, **fields: causal(f"llama-{name}", hf.LlamaConfig, hf.LlamaForCausalLM, **fields)
    yield llama("odd-one-group", mlp_bias=True)
    yield llama("odd-alone", num_key_value_heads=5, mask=False, tie_word_embeddings=True)
    yield llama("odd-width", hidden_size=49, num_attention_heads=7, num_key_value_heads=7, head_dim=4, attention_bias=True, hidden_act="relu")
    yield llama("nine-three", hidden_size=36, num_attention_heads=9, num_key_value_heads=3, left=True)
    yield causal("mistral-odd", hf.MistralConfig, hf.MistralForCausalLM, num_attention_heads=9, num_key_value_heads=3, head_dim=6, sliding_window=1)
    yield causal("mistral-wide-window", hf.MistralConfig, hf.MistralForCausalLM, sliding_window=30, mask=False)
    yield causal("qwen2-odd", hf.Qwen2Config, hf.Qwen2ForCausalLM, num_attention_heads=3, num_key_value_heads=3, use_sliding_window=True, sliding_window=2,
                 max_window_layers=2, tie_word_embeddings=True)
    yield causal("qwen2-no-window", hf.Qwen2Config, hf.Qwen2ForCausalLM, use_sliding_window=True, sliding_window=None)
    words = dict(vocab_size=61, n_positions=32, n_embd=30, n_head=5, n_layer=3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    for name, fields in (("odd", {}), ("odd-inner", dict(n_inner=43, tie_word_embeddings=False, activation_function="gelu"))):
        config = hf.GPT2Config(**words, **fields)
        inputs = text(rng, config)
        yield f"gpt2-{name}", hf.GPT2LMHeadModel(config), dict(inputs, labels=inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100))
    for name, fields in (("odd", dict(num_layers=1, num_decoder_layers=1)), ("odd-told", dict(num_layers=1, num_decoder_layers=4, tie_word_embeddings=True,
                          scale_decoder_outputs=False, feed_forward_proj="gated-gelu")), ("odd-starts", dict(num_layers=3, tie_word_embeddings=False, pad_token_id=3))):
        config = hf.T5Config(**{**dict(vocab_size=61, d_model=30, d_kv=5, d_ff=43, num_heads=5, dropout_rate=0, initializer_factor=0.4, decoder_start_token_id=0), **fields})
        inputs = text(rng, config, types=False)
        inputs["labels"] = ids(rng, 3, 9, 61)
        if name == "odd-starts":
            inputs["decoder_input_ids"] = ids(rng, 3, 9, 61)
        yield f"t5-{name}", hf.T5ForConditionalGeneration(config), inputs
    for name, fields in (("odd", dict(decoder_layers=1)), ("odd-masked", dict(encoder_layers=1, scale_embedding=True))):
        config = hf.BartConfig(**{**dict(vocab_size=61, d_model=30, encoder_layers=3, decoder_layers=3, encoder_ffn_dim=43, decoder_ffn_dim=45, encoder_attention_heads=5,
                               decoder_attention_heads=3, max_position_embeddings=24, dropout=0, init_std=0.05), **fields})
        inputs = text(rng, config)
        inputs["labels"] = ids(rng, 3, 7, 61)
        if name == "odd-masked":
            inputs["decoder_attention_mask"] = padding(rng, 3, 7)
            inputs["labels"].masked_fill_(inputs["decoder_attention_mask"] == 0, -100)
        yield f"bart-{name}", hf.BartForConditionalGeneration(config), inputs
    for name, fields in (("", {}), ("-untied", dict(tie_word_embeddings=False, scale_embedding=True, activation_function="relu", encoder_layers=1))):
        config = hf.BlenderbotConfig(**{**dict(vocab_size=61, d_model=30, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=43, decoder_ffn_dim=45,
                                     encoder_attention_heads=5, decoder_attention_heads=3, max_position_embeddings=24, dropout=0, init_std=0.05), **fields})
        inputs = text(rng, config)
        inputs["labels"] = ids(rng, 3, 7, 61)
        inputs["labels"][1, 5:] = -100
        yield f"blenderbot{name}", hf.BlenderbotForConditionalGeneration(config), inputs
    picture = dict(hidden_size=30, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, image_size=12, patch_size=4, num_channels=2)
    for name, fields, labels in (("number", dict(num_labels=1, qkv_bias=False), torch.randn(3)),
                                 ("several", dict(num_labels=4, problem_type="multi_label_classification"), torch.randint(0, 2, (3, 4)).float()),
                                 ("numbers", dict(num_labels=2, problem_type="regression", hidden_act="silu"), torch.randn(3, 2))):
        yield f"vit-{name}", hf.ViTForImageClassification(hf.ViTConfig(**picture, **fields)), dict(pixel_values=torch.randn(3, 2, 12, 12), labels=labels)
    config = hf.CLIPConfig(
        text_config=dict(vocab_size=61, hidden_size=21, intermediate_size=43, num_hidden_layers=1, num_attention_heads=3, max_position_embeddings=12,
                         eos_token_id=2, bos_token_id=0, pad_token_id=1, hidden_act="relu"),
        vision_config=dict(hidden_size=35, intermediate_size=45, num_hidden_layers=3, num_attention_heads=7, image_size=13, patch_size=5, num_channels=1,
                           layer_norm_eps=1e-4), projection_dim=9)
    yield "clip-uneven", hf.CLIPModel(config), dict(input_ids=ids(rng, 5, 8, 61), pixel_values=torch.randn(5, 1, 13, 13))
    sound = dict(vocab_size=11, hidden_size=30, num_hidden_layers=3, num_attention_heads=5, intermediate_size=43, conv_dim=(9,), conv_kernel=(10,), conv_stride=(7,),
                 hidden_dropout=0, activation_dropout=0, attention_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, num_conv_pos_embedding_groups=5,
                 apply_spec_augment=False)
    def speech(name, model_class, config):
        mask = torch.ones(3, 300, dtype=torch.long)
        mask[1, 200:], mask[2, 90:] = 0, 0
        labels = ids(rng, 3, 6, 11, low=3)
        labels[2, 3:] = -100
        return name, model_class(config), dict(input_values=torch.randn(3, 300) * mask, attention_mask=mask, labels=labels)
    yield speech("wav2vec2-odd", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**sound, num_conv_pos_embeddings=6, ctc_loss_reduction="sum", hidden_act="relu"))
    yield speech("wav2vec2-odd-stable", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**{**sound, "conv_dim": (8, 12, 10, 6), "conv_kernel": (6, 3, 2, 2), "conv_stride": (3, 2, 1, 1)},
                 num_conv_pos_embeddings=5, do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True, mask_time_prob=0.0, ctc_loss_reduction="mean"))
    def heard(name, model_class, config, mask=True):
        name, model, inputs = speech(name, model_class, config)
        inputs["labels"] = torch.tensor([0, 2, 1])
        if not mask:
            del inputs["attention_mask"]
        return name, model, inputs
    classes = dict(num_labels=3, classifier_proj_size=13)
    yield heard("wav2vec2-classes", hf.Wav2Vec2ForSequenceClassification, hf.Wav2Vec2Config(**sound, **classes, num_conv_pos_embeddings=6))
    yield heard("wav2vec2-classes-stable", hf.Wav2Vec2ForSequenceClassification, hf.Wav2Vec2Config(**sound, **classes, num_conv_pos_embeddings=5, do_stable_layer_norm=True,
                feat_extract_norm="layer", conv_bias=True), mask=False)
    yield heard("data2vec-audio-classes", hf.Data2VecAudioForSequenceClassification, hf.Data2VecAudioConfig(**sound, **classes, num_conv_pos_embeddings=2, conv_pos_kernel_size=3))
    # Activations that make something of nothing: what the ranks hold unevenly is padded with zeros.
    config = hf.BertConfig(**{**encoder, "hidden_act": "sigmoid"})
    inputs = text(rng, config)
    yield "bert-sigmoid", hf.BertForMaskedLM(config), dict(inputs, labels=masked(rng, inputs))
    config = hf.GPT2Config(**{**words, "activation_function": "laplace", "n_inner": 43, "reorder_and_upcast_attn": True})
    inputs = text(rng, config)
    yield "gpt2-laplace", hf.GPT2LMHeadModel(config), dict(inputs, labels=inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100))
    for kind in ("sqrtsoftplus", "gated-sigmoid", "hardswish"):
        config = hf.T5Config(vocab_size=61, d_model=30, d_kv=5, d_ff=43, num_layers=2, num_heads=5, dropout_rate=0, initializer_factor=0.4, decoder_start_token_id=0,
                             feed_forward_proj=kind, relative_attention_num_buckets=7, relative_attention_max_distance=9)
        yield f"t5-{kind}", hf.T5ForConditionalGeneration(config), dict(text(rng, config, types=False), labels=ids(rng, 3, 9, 61))
    yield speech("data2vec-audio-odd", hf.Data2VecAudioForCTC, hf.Data2VecAudioConfig(**sound, num_conv_pos_embeddings=2, conv_pos_kernel_size=3, ctc_loss_reduction="mean"))


def rest(rng):
    """Fields of config.json that nothing above varies, one head, one layer, one position, masks with holes. name → (model, inputs)"""
    encoder = dict(vocab_size=61, hidden_size=24, num_attention_heads=1, num_hidden_layers=1, intermediate_size=33, max_position_embeddings=32,
                   hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.1)
    narrow = dict(embedding_size=9, classifier_dropout_prob=0)
    for name, config_class, fields in (
            ("bert", hf.BertConfig, dict(pad_token_id=9, layer_norm_eps=1e-6, type_vocab_size=1)),
            ("roberta", hf.RobertaConfig, dict(pad_token_id=3, layer_norm_eps=1e-5, type_vocab_size=4)),
            ("data2vec-text", hf.Data2VecTextConfig, dict(pad_token_id=0, layer_norm_eps=1e-5, type_vocab_size=3, tie_word_embeddings=False)),
            ("megatron-bert", hf.MegatronBertConfig, dict(pad_token_id=7, type_vocab_size=3, tie_word_embeddings=False)),
            ("albert", hf.AlbertConfig, dict(narrow, pad_token_id=5, layer_norm_eps=1e-5, type_vocab_size=3))):
        prefix = dict(bert="Bert", roberta="Roberta", albert="Albert").get(name, "Data2VecText" if name == "data2vec-text" else "MegatronBert")
        config = config_class(**encoder, **fields)
        inputs = text(rng, config)
        yield f"{name}-one-head", getattr(hf, f"{prefix}ForMaskedLM")(config), dict(inputs, labels=masked(rng, inputs))
        config = config_class(**{**encoder, "num_attention_heads": 4, "num_hidden_layers": 3}, **fields, num_labels=3)
        inputs = text(rng, config)
        inputs["attention_mask"] = (torch.rand(inputs["input_ids"].shape) < 0.7).long()
        inputs["attention_mask"][:, 2] = 1
        yield f"{name}-holes", getattr(hf, f"{prefix}ForTokenClassification")(config), dict(inputs, labels=torch.randint(0, 3, inputs["input_ids"].shape))
        config = config_class(**{**encoder, "num_attention_heads": 3}, **fields, num_labels=5)
        yield f"{name}-one-word", getattr(hf, f"{prefix}ForSequenceClassification")(config), dict(input_ids=ids(rng, 1, 1, 61, low=10), labels=torch.tensor([4]))
    def causal(name, model_class, config, left=False, rows=3):
        inputs = text(rng, config, types=False, left=left, rows=rows)
        return name, model_class(config), dict(inputs, labels=inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100))
    tokens = dict(bos_token_id=0, eos_token_id=0)
    decoder = dict(vocab_size=53, hidden_size=24, num_attention_heads=1, num_hidden_layers=1, intermediate_size=33, max_position_embeddings=40, initializer_range=0.1, **tokens)
    grouped = dict(decoder, num_attention_heads=4, num_key_value_heads=2, head_dim=10, num_hidden_layers=2)
    rope = lambda kind, **more: dict(rope_parameters=dict(rope_type=kind, rope_theta=300.0, **more))
    for name, config_class, model_class in (("llama", hf.LlamaConfig, hf.LlamaForCausalLM), ("mistral", hf.MistralConfig, hf.MistralForCausalLM), ("qwen2", hf.Qwen2Config, hf.Qwen2ForCausalLM)):
        yield causal(f"{name}-one-head", model_class, config_class(**decoder, num_key_value_heads=1, pad_token_id=4, rms_norm_eps=1e-4, hidden_act="gelu_new", **rope("default")), rows=1)
        yield causal(f"{name}-stretched", model_class, config_class(**grouped, rms_norm_eps=1e-5, hidden_act="relu2", **rope("yarn", factor=3.0, original_max_position_embeddings=8)), left=True)
        yield causal(f"{name}-far", model_class, config_class(**{**grouped, "num_hidden_layers": 5}, pad_token_id=52, **rope("llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0, original_max_position_embeddings=12)))
    yield causal("gpt2-one-head", hf.GPT2LMHeadModel, hf.GPT2Config(vocab_size=53, n_embd=24, n_head=1, n_layer=1, n_positions=20, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                 pad_token_id=3, initializer_range=0.1, scale_attn_by_inverse_layer_idx=True, **tokens), rows=1)
    yield causal("gpt-neox-one-head", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**decoder, pad_token_id=6, rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=300.0, partial_rotary_factor=0.5)))
    yield causal("gpt-neox-far", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**{**decoder, "num_attention_heads": 2, "num_hidden_layers": 3, "max_position_embeddings": 8},
                 rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=300.0, partial_rotary_factor=1.0), use_parallel_residual=False))
    yield causal("gpt-j-one-head", hf.GPTJForCausalLM, hf.GPTJConfig(vocab_size=53, n_embd=24, n_head=1, n_layer=1, n_positions=24, rotary_dim=24, n_inner=33, pad_token_id=2, initializer_range=0.1, **tokens))
    opt = dict(vocab_size=53, hidden_size=24, num_attention_heads=1, num_hidden_layers=1, ffn_dim=33, max_position_embeddings=20, dropout=0, init_std=0.1, **tokens)
    yield causal("opt-one-head", hf.OPTForCausalLM, hf.OPTConfig(**opt, pad_token_id=0, activation_function="gelu_new"))
    yield causal("opt-bare-norms", hf.OPTForCausalLM, hf.OPTConfig(**{**opt, "num_attention_heads": 3, "num_hidden_layers": 3}, pad_token_id=1, layer_norm_elementwise_affine=False), left=True)
    yield causal("opt-bare-norms-behind", hf.OPTForCausalLM, hf.OPTConfig(**{**opt, "num_attention_heads": 4, "num_hidden_layers": 2}, layer_norm_elementwise_affine=False, do_layer_norm_before=False,
                 enable_bias=False, word_embed_proj_dim=10))
    def replied(config, vocabulary, length, **more):
        return dict(text(rng, config, types=False, **more), labels=ids(rng, more.get("rows", 3), length, vocabulary))
    for name, length, fields in (("one-head", 1, dict(num_heads=1, num_layers=1, num_decoder_layers=1, d_kv=5)),
                                 ("wide", 9, dict(num_heads=2, num_layers=2, num_decoder_layers=5, d_kv=17, relative_attention_num_buckets=4, relative_attention_max_distance=5, layer_norm_epsilon=1e-3)),
                                 ("never-tied", 2, dict(num_heads=4, num_layers=4, num_decoder_layers=1, d_kv=3, feed_forward_proj="gated-relu", pad_token_id=2, decoder_start_token_id=2, eos_token_id=4))):
        config = hf.T5Config(**{**dict(vocab_size=53, d_model=24, d_ff=33, dropout_rate=0, initializer_factor=0.4, decoder_start_token_id=0), **fields}, tie_word_embeddings=name != "never-tied")
        yield f"t5-{name}", hf.T5ForConditionalGeneration(config), replied(config, 53, length, left=name == "wide")
    stacks = dict(vocab_size=53, d_model=24, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=33, decoder_ffn_dim=31, encoder_attention_heads=1, decoder_attention_heads=1,
                  max_position_embeddings=21, dropout=0, init_std=0.1)
    for name, config_class, model_class in (("bart", hf.BartConfig, hf.BartForConditionalGeneration), ("blenderbot", hf.BlenderbotConfig, hf.BlenderbotForConditionalGeneration)):
        config = config_class(**stacks, pad_token_id=4, decoder_start_token_id=6, eos_token_id=5, activation_function="silu")
        yield f"{name}-one-head", model_class(config), replied(config, 53, 1)
        config = config_class(**{**stacks, "encoder_layers": 4, "decoder_layers": 1, "encoder_attention_heads": 3, "decoder_attention_heads": 4}, scale_embedding=True, pad_token_id=0,
                              decoder_start_token_id=0, activation_function="gelu_fast")
        yield f"{name}-deep", model_class(config), replied(config, 53, 8, left=True, rows=2)
    picture = dict(hidden_size=24, num_attention_heads=1, num_hidden_layers=1, intermediate_size=33, initializer_range=0.1, layer_norm_eps=1e-6)
    for name, fields, side in (("one-patch", dict(image_size=5, patch_size=5, num_channels=1, num_labels=2), (5, 5)),
                               ("one-row", dict(num_hidden_layers=4, num_attention_heads=3, image_size=(3, 12), patch_size=3, num_channels=4, num_labels=9, hidden_act="quick_gelu", pooler_act="relu", pooler_output_size=7), (3, 12))):
        config = hf.ViTConfig(**{**picture, **fields})
        yield f"vit-{name}", hf.ViTForImageClassification(config), dict(pixel_values=torch.randn(2, config.num_channels, *side), labels=torch.tensor([1, 0]))
    words, pictures = dict(vocab_size=53, hidden_size=24, intermediate_size=33, num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=9), {**picture, "image_size": 7, "patch_size": 7, "num_channels": 2}
    del pictures["layer_norm_eps"]
    for name, fields, more in (("one-head", {}, {}), ("left", dict(num_hidden_layers=4, num_attention_heads=3, pad_token_id=0, hidden_act="gelu_new"), dict(num_hidden_layers=2, num_attention_heads=4, hidden_act="relu"))):
        config = hf.CLIPConfig(text_config=dict(words, **fields, eos_token_id=52, bos_token_id=51) if not fields else {**words, **fields, "eos_token_id": 52, "bos_token_id": 51},
                               vision_config={**pictures, **more}, projection_dim=5, logit_scale_init_value=0.3)
        given = ids(rng, 2, 9, 51)
        mask = padding(rng, 2, 9)
        given[:, -1 if fields else 3] = 52
        yield f"clip-{name}", hf.CLIPModel(config), dict(input_ids=given, attention_mask=mask.flip(1) if fields else mask, pixel_values=torch.randn(2, 2, 7, 7))
    sound = dict(vocab_size=11, hidden_size=24, num_hidden_layers=1, num_attention_heads=1, intermediate_size=33, conv_dim=(6, 8), conv_kernel=(7, 3), conv_stride=(3, 2),
                 hidden_dropout=0, activation_dropout=0, attention_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, apply_spec_augment=False, initializer_range=0.1)
    def heard(name, model_class, config, length=2, classes=0, masked=True):
        mask = torch.ones(3, 150, dtype=torch.long)
        mask[1, 100:], mask[2, 40:] = 0, 0
        labels = torch.randint(0, classes, (3,)) if classes else ids(rng, 3, length, 11, low=1)
        given = dict(input_values=torch.randn(3, 150) * (mask if masked else 1), labels=labels)
        return name, model_class(config), dict(given, attention_mask=mask) if masked else given
    places = dict(num_conv_pos_embeddings=1, num_conv_pos_embedding_groups=24)
    yield heard("wav2vec2-one-head", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**sound, **places, mask_feature_prob=0.1, mask_feature_length=4, mask_time_prob=0.0))
    # A row whose text is longer than its frames has no path.
    yield heard("wav2vec2-no-path", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**sound, **places, ctc_zero_infinity=True, ctc_loss_reduction="mean"), length=20)
    yield heard("wav2vec2-languages", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**{**sound, "num_attention_heads": 3, "num_hidden_layers": 3}, **places, adapter_attn_dim=5, do_stable_layer_norm=True,
                feat_extract_norm="layer"))
    yield heard("wav2vec2-languages-unread", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**{**sound, "num_attention_heads": 4, "num_hidden_layers": 2}, **places, adapter_attn_dim=5))
    for stride in (1, 3):
        yield heard(f"wav2vec2-adapter-{stride}", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**{**sound, "num_hidden_layers": 2}, **places, add_adapter=True, num_adapter_layers=2, adapter_stride=stride,
                    adapter_kernel_size=3, output_hidden_size=24 if stride == 1 else 13, ctc_zero_infinity=True))
    classes = dict(num_labels=3, classifier_proj_size=7, use_weighted_layer_sum=True)
    yield heard("wav2vec2-layers-weighed", hf.Wav2Vec2ForSequenceClassification, hf.Wav2Vec2Config(**{**sound, "num_attention_heads": 4, "num_hidden_layers": 3}, **places, **classes), classes=3)
    yield heard("wav2vec2-layers-weighed-stable", hf.Wav2Vec2ForSequenceClassification, hf.Wav2Vec2Config(**{**sound, "num_attention_heads": 3, "num_hidden_layers": 2}, **places, **classes,
                do_stable_layer_norm=True), classes=3, masked=False)
    audio = dict(num_conv_pos_embeddings=2, conv_pos_kernel_size=5, num_conv_pos_embedding_groups=6, layer_norm_eps=1e-3, feat_extract_activation="relu")
    yield heard("data2vec-audio-one-head", hf.Data2VecAudioForCTC, hf.Data2VecAudioConfig(**sound, **audio, mask_time_prob=0.0, ctc_zero_infinity=True), length=20)
    yield heard("data2vec-audio-adapter", hf.Data2VecAudioForCTC, hf.Data2VecAudioConfig(**{**sound, "num_hidden_layers": 3, "num_attention_heads": 3}, **audio, add_adapter=True, num_adapter_layers=1,
                output_hidden_size=10, ctc_zero_infinity=True))
    yield heard("data2vec-audio-layers-weighed", hf.Data2VecAudioForSequenceClassification, hf.Data2VecAudioConfig(**{**sound, "num_hidden_layers": 4, "num_attention_heads": 2}, **audio, **classes), classes=3)


def tuned(rng):
    """LoRA of what is divided least well: name → (base, the fields of peft, inputs)"""
    decoder = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_key_value_heads=1, num_hidden_layers=3, intermediate_size=43, attention_dropout=0,
                   bos_token_id=0, eos_token_id=0, max_position_embeddings=32, initializer_range=0.05)
    encoder = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, max_position_embeddings=32,
                   hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05)
    def causal(config):
        inputs = text(rng, config, types=False)
        return dict(inputs, labels=inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100))
    config = hf.LlamaConfig(**decoder)
    settings = dict(r=3, lora_alpha=7, use_rslora=True, target_modules="all-linear", modules_to_save=["lm_head"], task_type="CAUSAL_LM")
    yield "llama-odd", hf.LlamaForCausalLM(config), settings, causal(config)
    config = hf.MistralConfig(**{**decoder, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 6}, sliding_window=4)
    settings = dict(r=5, lora_alpha=2, target_modules=["k_proj", "v_proj", "o_proj", "up_proj"], exclude_modules=r".*layers\.1\..*", bias="none", task_type="CAUSAL_LM")
    yield "mistral-odd", hf.MistralForCausalLM(config), settings, causal(config)
    config = hf.GPT2Config(vocab_size=61, n_positions=32, n_embd=30, n_head=5, n_layer=3, n_inner=43, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    settings = dict(r=4, lora_alpha=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM", rank_pattern={"mlp.c_proj": 2})
    yield "gpt2-odd", hf.GPT2LMHeadModel(config), settings, causal(config)
    config = hf.BertConfig(**encoder, num_labels=3)
    settings = dict(r=2, lora_alpha=3, target_modules=["key", "dense"], modules_to_save=["classifier", "pooler"], task_type="SEQ_CLS")
    yield "bert-saved", hf.BertForSequenceClassification(config), settings, dict(text(rng, config), labels=torch.tensor([0, 2, 1]))
    config = hf.MegatronBertConfig(**encoder, num_labels=3)
    settings = dict(r=2, lora_alpha=3, target_modules=["query", "dense"], bias="all", task_type="TOKEN_CLS")
    inputs = text(rng, config)
    yield "megatron-bert-tokens", hf.MegatronBertForTokenClassification(config), settings, dict(inputs, labels=torch.randint(0, 3, inputs["input_ids"].shape))
    config = hf.GPTNeoXConfig(vocab_size=61, hidden_size=40, num_attention_heads=5, num_hidden_layers=2, intermediate_size=43, max_position_embeddings=32, bos_token_id=0,
                              eos_token_id=0, initializer_range=0.05)
    yield "gpt-neox-odd", hf.GPTNeoXForCausalLM(config), dict(r=3, lora_alpha=7, target_modules="all-linear", task_type="CAUSAL_LM"), causal(config)
    config = hf.GPTJConfig(vocab_size=61, n_embd=40, n_head=5, n_layer=2, n_inner=43, rotary_dim=4, n_positions=32, bos_token_id=0, eos_token_id=0, initializer_range=0.05)
    yield "gpt-j-odd", hf.GPTJForCausalLM(config), dict(r=2, lora_alpha=3, target_modules=["k_proj", "fc_in", "out_proj"], task_type="CAUSAL_LM"), causal(config)
    config = hf.OPTConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=2, ffn_dim=43, max_position_embeddings=32, word_embed_proj_dim=14,
                          dropout=0, init_std=0.05)
    yield "opt-odd", hf.OPTForCausalLM(config), dict(r=2, lora_alpha=3, target_modules="all-linear", bias="lora_only", task_type="CAUSAL_LM"), causal(config)
    config = hf.T5Config(vocab_size=61, d_model=30, d_kv=5, d_ff=43, num_layers=3, num_heads=5, dropout_rate=0, initializer_factor=0.4, decoder_start_token_id=0)
    inputs = dict(text(rng, config, types=False), labels=ids(rng, 3, 9, 61))
    settings = dict(r=3, lora_alpha=8, target_modules=["k", "o", "wi", "wo"], alpha_pattern={"EncDecAttention.k": 2})
    yield "t5-odd", hf.T5ForConditionalGeneration(config), settings, inputs


def tuned_elsewhere(rng):
    """LoRA's fields that neither of its neighbours varies: name → (base, the fields of peft, inputs)"""
    decoder = dict(vocab_size=53, hidden_size=24, num_attention_heads=4, num_key_value_heads=1, num_hidden_layers=3, intermediate_size=33, attention_dropout=0, bos_token_id=0,
                   eos_token_id=0, max_position_embeddings=32, initializer_range=0.1)
    def causal(config):
        inputs = text(rng, config, types=False)
        return dict(inputs, labels=inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100))
    config = hf.LlamaConfig(**decoder)
    yield "llama-words-saved", hf.LlamaForCausalLM(config), dict(r=1, lora_alpha=1, target_modules=["v_proj"], modules_to_save=["embed_tokens", "lm_head"], task_type="CAUSAL_LM"), causal(config)
    stacks = hf.BartConfig(vocab_size=53, d_model=24, encoder_layers=2, decoder_layers=3, encoder_ffn_dim=33, decoder_ffn_dim=31, encoder_attention_heads=3, decoder_attention_heads=4,
                           max_position_embeddings=24, dropout=0, init_std=0.1)
    settings = dict(r=3, lora_alpha=4, target_modules=["k_proj", "fc2"], layers_to_transform=1, layers_pattern=["blocks", "layers"])
    yield "bart-second-layers", hf.BartForConditionalGeneration(stacks), settings, dict(text(rng, stacks), labels=ids(rng, 3, 6, 53))
    sound = hf.Wav2Vec2Config(vocab_size=11, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=33, conv_dim=(6, 8), conv_kernel=(7, 3), conv_stride=(3, 2),
                              hidden_dropout=0, activation_dropout=0, attention_dropout=0, feat_proj_dropout=0, final_dropout=0, layerdrop=0, apply_spec_augment=False,
                              num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2)
    settings = dict(r=2, lora_alpha=5, target_modules=["q_proj", "intermediate_dense", "projection"], modules_to_save=["lm_head"], rank_pattern={"q_proj": 24})
    yield "wav2vec2-projections", hf.Wav2Vec2ForCTC(sound), settings, dict(input_values=torch.randn(2, 150), labels=ids(rng, 2, 3, 11, low=1))
    towers = hf.CLIPConfig(text_config=dict(vocab_size=53, hidden_size=24, intermediate_size=33, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=9, eos_token_id=52,
                           bos_token_id=51), vision_config=dict(hidden_size=20, intermediate_size=31, num_hidden_layers=2, num_attention_heads=5, image_size=6, patch_size=3, num_channels=2), projection_dim=7)
    words = ids(rng, 3, 9, 51)
    words[:, 6] = 52
    yield ("clip-both", hf.CLIPModel(towers), dict(r=2, lora_alpha=2, target_modules=["q_proj", "fc1", "text_projection"], use_rslora=True, bias="lora_only"),
           dict(input_ids=words, pixel_values=torch.randn(3, 2, 6, 6)))


def adapters(rng):
    """name → (base, the fields of peft, inputs)"""
    pick = lambda *names: sorted(rng.sample(names, rng.randrange(1, len(names) + 1)))
    common = lambda **more: dict(r=rng.randrange(1, 7), lora_alpha=rng.randrange(1, 20), **more)
    config = encoder_config(rng, hf.BertConfig)
    inputs = text(rng, config)
    yield "bert-all-linear", hf.BertForMaskedLM(config), common(target_modules="all-linear"), dict(inputs, labels=masked(rng, inputs))
    config = encoder_config(rng, hf.RobertaConfig, num_labels=3)
    inputs = text(rng, config, types=False)
    settings = common(target_modules=r".*layer\.\d+\.(attention\.self\.(query|key)|output\.dense)", bias="lora_only", task_type="SEQ_CLS")
    yield "roberta-pattern", hf.RobertaForSequenceClassification(config), settings, dict(inputs, labels=torch.randint(0, 3, (3,)))
    config = encoder_config(rng, hf.AlbertConfig, embedding_size=14, num_hidden_groups=2, classifier_dropout_prob=0)
    inputs = text(rng, config, types=False)
    settings = common(target_modules=pick("query", "value", "ffn"), task_type="QUESTION_ANS", use_rslora=True)
    yield ("albert-spans", hf.AlbertForQuestionAnswering(config), settings,
           dict(inputs, start_positions=torch.tensor([1, 2, 0]), end_positions=torch.tensor([3, 4, 1])))
    config = hf.GPT2Config(vocab_size=77, n_positions=32, n_embd=40, n_head=4, n_layer=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                           bos_token_id=0, eos_token_id=0)
    inputs = text(rng, config)
    inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    settings = common(target_modules=["c_attn", *pick("c_proj", "c_fc")], bias="all", fan_in_fan_out=True, task_type="CAUSAL_LM")
    yield "gpt2-biases", hf.GPT2LMHeadModel(config), settings, inputs
    config = hf.Qwen2Config(vocab_size=79, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=3,
                            intermediate_size=70, attention_dropout=0, bos_token_id=0, eos_token_id=0)
    inputs = text(rng, config, types=False)
    inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    settings = common(target_modules=["q_proj", "k_proj", *pick("o_proj", "gate_proj", "down_proj")], layers_to_transform=[0, 2],
                  rank_pattern={"k_proj": 5}, alpha_pattern={"layers.2.self_attn.q_proj": 3}, task_type="CAUSAL_LM")
    yield "qwen2-layers", hf.Qwen2ForCausalLM(config), settings, inputs
    config = hf.T5Config(vocab_size=73, d_model=32, d_kv=8, d_ff=50, num_layers=2, num_heads=4, dropout_rate=0, initializer_factor=0.3, feed_forward_proj="gated-gelu",
                         decoder_start_token_id=0, pad_token_id=0)
    inputs = text(rng, config, types=False)
    inputs["labels"] = ids(rng, 3, 7, 73)
    yield ("t5-attention", hf.T5ForConditionalGeneration(config), common(target_modules=["q", *pick("v", "wo", "wi_0")]),
           inputs)
    config = hf.BartConfig(vocab_size=71, d_model=36, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=50, decoder_ffn_dim=62,
                           encoder_attention_heads=6, decoder_attention_heads=2, max_position_embeddings=24, dropout=0, init_std=0.05)
    inputs = text(rng, config, types=False)
    inputs["labels"] = ids(rng, 3, 7, 71)
    yield ("bart-halves", hf.BartForConditionalGeneration(config), common(target_modules=["q_proj", *pick("out_proj", "fc1", "fc2")]), inputs)
    config = hf.ViTConfig(hidden_size=36, num_attention_heads=6, num_hidden_layers=2, intermediate_size=50, image_size=24, patch_size=8,
                          num_channels=1, num_labels=5, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    yield ("vit-head", hf.ViTForImageClassification(config), common(target_modules=["q_proj", "v_proj"], modules_to_save=["classifier"]),
           dict(pixel_values=torch.randn(3, 1, 24, 24), labels=torch.tensor([0, 4, 2])))


def prompts(rng):
    """name → (base, the fields of peft, inputs)"""
    config = hf.LlamaConfig(vocab_size=79, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, num_hidden_layers=2,
                            intermediate_size=70, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    inputs = text(rng, config, types=False)
    inputs["labels"] = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    yield "llama", hf.LlamaForCausalLM(config), dict(task_type="CAUSAL_LM", num_virtual_tokens=rng.randrange(1, 7)), inputs
    config = hf.LlamaConfig(vocab_size=79, hidden_size=48, num_attention_heads=6, num_key_value_heads=3, num_hidden_layers=2,
                            intermediate_size=70, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    yield "llama-prefix", hf.LlamaForCausalLM(config), dict(task_type="CAUSAL_LM", num_virtual_tokens=rng.randrange(1, 7), kind="prefix"), inputs
    config = hf.GPT2Config(vocab_size=79, n_positions=32, n_embd=40, n_head=4, n_layer=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                           bos_token_id=0, eos_token_id=0)
    yield "gpt2-prefix", hf.GPT2LMHeadModel(config), dict(task_type="CAUSAL_LM", num_virtual_tokens=rng.randrange(1, 7), kind="prefix"), inputs
    config = encoder_config(rng, hf.BertConfig, num_labels=3)
    inputs = text(rng, config, types=False)
    yield ("bert", hf.BertForSequenceClassification(config), dict(task_type="SEQ_CLS", num_virtual_tokens=rng.randrange(1, 7)),
           dict(inputs, labels=torch.randint(0, 3, (3,))))


    left = lambda given: dict(given, labels=given["input_ids"].masked_fill(given["attention_mask"] == 0, -100))
    config = hf.OPTConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=2, ffn_dim=43, max_position_embeddings=32, word_embed_proj_dim=14,
                          dropout=0, init_std=0.05)
    yield "opt-prefix", hf.OPTForCausalLM(config), dict(task_type="CAUSAL_LM", num_virtual_tokens=3, kind="prefix"), left(text(rng, config, types=False, left=True))
    config = hf.GPTNeoXConfig(vocab_size=61, hidden_size=40, num_attention_heads=5, num_hidden_layers=2, intermediate_size=43, max_position_embeddings=32, bos_token_id=0,
                              eos_token_id=0, initializer_range=0.05)
    yield "gpt-neox", hf.GPTNeoXForCausalLM(config), dict(task_type="CAUSAL_LM", num_virtual_tokens=2), left(text(rng, config, types=False))
    encoder = lambda **fields: hf.BertConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=2, intermediate_size=43, hidden_dropout_prob=0,
                                             attention_probs_dropout_prob=0, max_position_embeddings=32, initializer_range=0.05, **fields)
    t5 = lambda **fields: hf.T5Config(**{**dict(vocab_size=61, d_model=30, d_kv=6, d_ff=43, num_layers=3, num_heads=5, dropout_rate=0, initializer_factor=0.4,
                                      decoder_start_token_id=0), **fields})
    bart = lambda **fields: hf.BartConfig(**{**dict(vocab_size=61, d_model=30, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=43, decoder_ffn_dim=45,
                                          encoder_attention_heads=5, decoder_attention_heads=5, max_position_embeddings=32, dropout=0, init_std=0.05), **fields})
    def replied(config, decoder_mask=False):
        inputs = dict(text(rng, config, types=False), labels=ids(rng, 3, 9, 61))
        if decoder_mask:
            inputs["decoder_attention_mask"] = padding(rng, 3, 9)
            inputs["labels"].masked_fill_(inputs["decoder_attention_mask"] == 0, -100)
        return inputs
    causal = lambda config: (lambda given: dict(given, labels=given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)))(text(rng, config, types=False))
    decoder = lambda **fields: hf.LlamaConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, pad_token_id=0, bos_token_id=1,
                                              eos_token_id=2, **fields)
    both = dict(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=3)
    config = decoder(num_key_value_heads=1)
    yield "llama-projected", hf.LlamaForCausalLM(config), dict(kind="prefix", task_type="CAUSAL_LM", num_virtual_tokens=4, prefix_projection=True, encoder_hidden_size=7), causal(config)
    config = t5()
    yield "t5-prefix", hf.T5ForConditionalGeneration(config), dict(both, kind="prefix"), replied(config)
    config = t5(num_layers=2, feed_forward_proj="gated-gelu")
    yield "t5-projected", hf.T5ForConditionalGeneration(config), dict(both, kind="prefix", prefix_projection=True, encoder_hidden_size=11), replied(config, True)
    config = bart(encoder_layers=3)
    yield "bart-prefix", hf.BartForConditionalGeneration(config), dict(both, kind="prefix"), replied(config, True)
    config = bart(scale_embedding=True)
    yield "bart-scaled", hf.BartForConditionalGeneration(config), dict(both, kind="prompt"), replied(config)
    config = t5()
    yield "t5", hf.T5ForConditionalGeneration(config), dict(both, kind="prompt"), replied(config)
    yield "t5-encoded", hf.T5ForConditionalGeneration(config), dict(both, kind="encoder", encoder_hidden_size=8), replied(config)
    config = decoder(num_key_value_heads=5)
    lstm = dict(kind="encoder", encoder_reparameterization_type="LSTM", encoder_num_layers=2, num_virtual_tokens=4)
    yield "llama-lstm", hf.LlamaForCausalLM(config), dict(lstm, task_type="CAUSAL_LM", encoder_hidden_size=6), causal(config)
    config = encoder(num_labels=3)
    yield ("bert-encoded", hf.BertForSequenceClassification(config), dict(kind="encoder", task_type="SEQ_CLS", num_virtual_tokens=3),
           dict(text(rng, config, types=False), labels=torch.tensor([0, 2, 1])))


def rescaled(rng):
    """(IA)³: name → (base, the fields of peft, inputs)"""
    encoder = dict(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=3, intermediate_size=43, max_position_embeddings=32,
                   hidden_dropout_prob=0, attention_probs_dropout_prob=0, initializer_range=0.05)
    causal = lambda config: (lambda given: dict(given, labels=given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)))(text(rng, config, types=False))
    config = hf.BertConfig(**encoder, num_labels=3)
    yield "bert", hf.BertForSequenceClassification(config), dict(kind="ia3", task_type="SEQ_CLS"), dict(text(rng, config), labels=torch.tensor([0, 2, 1]))
    config = hf.GPT2Config(vocab_size=61, n_positions=32, n_embd=30, n_head=5, n_layer=2, n_inner=43, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    settings = dict(kind="ia3", task_type="CAUSAL_LM", target_modules=["c_attn", "c_fc", "c_proj"], feedforward_modules=["c_fc", "attn.c_proj"])
    # peft wants a subset by name where both are lists.
    settings.update(target_modules=r".*\.(attn\.c_attn|mlp\.c_fc|attn\.c_proj|mlp\.c_proj)", feedforward_modules=r".*\.(mlp\.c_fc|attn\.c_proj)")
    yield "gpt2-odd", hf.GPT2LMHeadModel(config), settings, causal(config)
    config = hf.LlamaConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_key_value_heads=1, num_hidden_layers=3, intermediate_size=43, attention_dropout=0,
                            bos_token_id=0, eos_token_id=0, attention_bias=True, mlp_bias=True)
    yield "llama", hf.LlamaForCausalLM(config), dict(kind="ia3", task_type="CAUSAL_LM"), causal(config)
    config = hf.LlamaConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_key_value_heads=1, num_hidden_layers=2, intermediate_size=43, attention_dropout=0,
                            bos_token_id=0, eos_token_id=0)
    settings = dict(kind="ia3", task_type="CAUSAL_LM", target_modules="all-linear", feedforward_modules=["q_proj", "k_proj", "down_proj"])
    yield "llama-all", hf.LlamaForCausalLM(config), settings, causal(config)
    config = hf.OPTConfig(vocab_size=61, hidden_size=30, num_attention_heads=5, num_hidden_layers=2, ffn_dim=43, max_position_embeddings=32, dropout=0, init_std=0.05)
    yield "opt", hf.OPTForCausalLM(config), dict(kind="ia3", task_type="CAUSAL_LM"), causal(config)
    config = hf.GPTNeoXConfig(vocab_size=61, hidden_size=40, num_attention_heads=5, num_hidden_layers=2, intermediate_size=43, max_position_embeddings=32, bos_token_id=0,
                              eos_token_id=0, initializer_range=0.05)
    yield "gpt-neox", hf.GPTNeoXForCausalLM(config), dict(kind="ia3", task_type="CAUSAL_LM"), causal(config)
    config = hf.T5Config(vocab_size=61, d_model=30, d_kv=5, d_ff=43, num_layers=2, num_heads=5, dropout_rate=0, initializer_factor=0.4, decoder_start_token_id=0)
    yield "t5", hf.T5ForConditionalGeneration(config), dict(kind="ia3"), dict(text(rng, config, types=False), labels=ids(rng, 3, 9, 61))


def write_adapter(folder, base, settings, inputs):
    import peft
    base.eval()
    base.set_attn_implementation("eager")
    randomized(base)
    base.save_pretrained(os.path.join(folder, "base"))
    # What peft 0.21 asks an encoder-decoder for; transformers 5.18 has it by another name.
    for old, new in (("_prepare_encoder_decoder_kwargs_for_generation", "_prepare_text_encoder_decoder_kwargs_for_generation"),):
        if not hasattr(base, old) and hasattr(base, new):
            setattr(base, old, getattr(base, new))
    kinds = dict(prefix=peft.PrefixTuningConfig, prompt=peft.PromptTuningConfig, encoder=peft.PromptEncoderConfig, ia3=peft.IA3Config,
                 lora=lambda **settings: peft.LoraConfig(lora_dropout=0, **settings))
    kind = settings.pop("kind", "prompt" if "num_virtual_tokens" in settings else "lora")
    model = peft.get_peft_model(base, kinds[kind](**settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(os.path.join(folder, "adapter"))
    if kind == "encoder" or settings.get("prefix_projection"):
        write_encoder(os.path.join(folder, "adapter"), model)
    more = dict(return_loss=True) if isinstance(base, hf.CLIPModel) else {}
    record(folder, model, inputs, more, "every trained parameter")


def write_encoder(folder, model):
    """What peft leaves out: it writes the vectors that an encoder makes, with which training cannot go on. As a run of ours keeps it."""
    trained = {name.replace(".default", "", 1): value for name, value in model.state_dict().items() if name.startswith("prompt_encoder.")}
    saved = os.path.join(folder, "adapter_model.safetensors")
    kept = {name: value for name, value in load_file(saved).items() if name != "prompt_embeddings"}
    save_file({name: value.contiguous().clone() for name, value in {**kept, **trained}.items()}, saved)
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    with open(path, "w") as file:
        json.dump(dict(config, inference_mode=False), file, indent=1)


def randomized(model):
    """Norms and biases that are not 1 and 0, or a test would not see them."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() < 2:
                parameter.add_(0.1 * torch.randn_like(parameter))


def train(model, state, call, clip):
    model.load_state_dict(state)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, **ADAMW)
    losses, norms = [], []
    for _ in range(10):
        optimizer.zero_grad()
        loss = call().loss
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained, clip or float("inf"))))
        losses.append(float(loss))
        optimizer.step()
    return losses, norms


def write(folder, model, inputs):
    model.eval()
    model.set_attn_implementation("eager")
    randomized(model)
    model.save_pretrained(folder)
    more = dict(return_loss=True) if isinstance(model, hf.CLIPModel) else {}
    record(folder, model, inputs, more, "every parameter")


@torch.no_grad()
def tell_apart(model, inputs):
    """
    Draws negatives again until those with a masked frame's own code are, bit by bit, what transformers takes for it: by the bits of products
    two frames of one code may differ. Those of other steps are left to chance.
    """
    from transformers.models.wav2vec2 import modeling_wav2vec2 as wav2vec2
    frames = model.wav2vec2.feature_projection(model.wav2vec2.feature_extractor(inputs["input_values"]).transpose(1, 2))[1]
    groups = model.config.num_codevector_groups
    codes = model.quantizer.weight_proj(frames).view(*frames.shape[:2], groups, -1).argmax(-1).reshape(-1, groups)
    hidden = inputs["mask_time_indices"]
    for _ in range(200):
        targets = model(**inputs).projected_quantized_states.flatten(0, 1)
        others = inputs["sampled_negative_indices"].flatten(0, 1)
        same = lambda each: (each[others] == each[:, None]).all(-1)[hidden.flatten().bool()]
        if torch.equal(same(codes), same(targets)):
            return
        drawn = wav2vec2._sample_negative_indices(hidden.shape, others.shape[-1], hidden.numpy().astype(bool))
        inputs["sampled_negative_indices"] = torch.tensor(drawn).long()
    raise ValueError("expected codes enough for frames to differ: give it more num_codevectors_per_group")


def record(folder, model, inputs, more, decay):
    if isinstance(model, hf.Wav2Vec2ForPreTraining):
        tell_apart(model, inputs)
    call = lambda: model(**inputs, **more)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    outputs = call()
    outputs.loss.backward()
    tensors = {f"input.{name}": value.contiguous() for name, value in inputs.items()}
    wanted = ("logits", "start_logits", "end_logits", "prediction_logits", "seq_relationship_logits", "logits_per_image",
              "logits_per_text", "image_embeds", "text_embeds",
              "projected_states", "projected_quantized_states", "codevector_perplexity", "contrastive_loss", "diversity_loss")
    for name in wanted:
        if outputs.get(name) is not None:
            tensors[f"output.{name}"] = outputs[name].detach().contiguous().clone()
    tensors["output.loss"] = outputs.loss.detach().reshape(1)
    encoded = [name for name, _ in model.named_parameters() if name.startswith("prompt_encoder")]
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            name = "prompt_embeddings" if [name] == encoded else name
            tensors[f"grad.{name}"] = parameter.grad.contiguous().clone()
    save_file(tensors, os.path.join(folder, "golden.safetensors"))
    losses, norms = train(model, state, call, None)
    clipped, _ = train(model, state, call, 1.0)
    recipe = dict(transformers=hf.__version__, adamw=dict(ADAMW, decay=decay), losses=losses, grad_norms=norms, losses_clip_1=clipped)
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump(recipe, file, indent=1)


def main():
    root, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    def place(name):
        folder = os.path.join(root, name)
        os.makedirs(folder, exist_ok=True)
        return folder
    for states in (tiny,) if word == "tiny" else (models, shapes, corners, decoders, firsts, rest):
        for name, model, inputs in states(random.Random(seed)):
            if word in name or states is tiny:
                write(place(name), model, inputs)
    for states, suffix in () if word == "tiny" else ((adapters, "lora"), (tuned, "lora"), (tuned_elsewhere, "lora"), (prompts, "prompt"), (rescaled, "ia3")):
        for name, base, settings, inputs in states(random.Random(seed)):
            if word in f"{name}-{suffix}":
                write_adapter(place(f"{name}-{suffix}"), base, settings, inputs)


main()
