"""Writes what Hugging Face's tokenizers make of 10,000 lines: real ones of shared/data, and random ones of many scripts.

    python3 make.py DATA OUT SEED

OUT/lines.json, and for each kind of tokenizer OUT/KIND/{tokenizer.json, oracle.json}: tokens and offsets of each line, and rows of
pairs under each strategy of truncation.
"""

import json
import os
import random
import struct
import sys
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

NUM_LINES = 10_000
data, out, seed = sys.argv[1:]
rng = random.Random(int(seed))
text = open(f"{data}/tinyshakespeare/input.txt").read().split("\n")
mrpc = []
for f in sorted(os.listdir(f"{data}/mrpc")):
    for row in open(f"{data}/mrpc/{f}", encoding="utf-8-sig").read().split("\n")[1:]:
        mrpc += row.split("\t")[3:]
ewt = [l[9:] for f in ("dev", "test") for l in open(f"{data}/ewt/{f}.conllu") if l.startswith("# text = ")]
ewt = [l.rstrip("\n") for l in ewt]
ranges = [
    (0x20, 0x7F),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x3FF),
    (0x400, 0x4FF),
    (0x590, 0x5FF),
    (0x600, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1100, 0x11FF),
    (0x1E00, 0x1EFF),
    (0x2000, 0x206F),
    (0x20A0, 0x20BF),
    (0x2100, 0x214F),
    (0x2190, 0x21FF),
    (0x2460, 0x24FF),
    (0x3000, 0x30FF),
    (0x4E00, 0x4FFF),
    (0xAC00, 0xACFF),
    (0xFF00, 0xFFEF),
    (0x1F300, 0x1F6FF),
    (0x1F900, 0x1F9FF),
    (0x20000, 0x200FF),
    (0x0, 0x1F),
    (0x7F, 0x9F),
    (0xFE00, 0xFE0F),
    (0xE000, 0xE010),
    (0x2F800, 0x2F810),
]
# U+061D is punctuation since Unicode 14, which Rust's tables of BERT's normalizer do not have.
DISAGREED = "\u061d"


def strange():
    words = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.random()
        if kind < 0.35:
            words.append(rng.choice(rng.choice(mrpc).split(" ")))
        else:
            a, b = rng.choice(ranges)
            cs = [chr(rng.randrange(a, b)) for _ in range(rng.randrange(1, 7))]
            words.append(
                "".join(
                    c
                    for c in cs
                    if unicodedata.category(c) != "Cn" and c not in DISAGREED and not 0xD800 <= ord(c) < 0xE000
                )
            )
    return rng.choice([" ", "  ", "\t", "\u00a0", "", " \u3000"]).join(words)


special = [
    "[MASK] of [CLS]",
    "a<|endoftext|>b",
    "x [SEP]y",
    "don't can't I'LL we've 'tis",
    "e\u0301\u0323 vs \u1ec7",
    "İstanbul ǅ ẞ ß ﬁ ﬀ",
    "a" * 150 + " b",
    "  lead and trail  ",
    "tab\tand\rcr",
    "",
    " ",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪",
    "١٢٣ ½ ² ①",
    "100,000.50$ #tag @me http://a.b/c?d=e&f",
    "\ufeffbom",
    "a\u200bb\u200dc",
    "한국어 日本語 中文",
    "naïve café résumé",
    "Ω≈ç√∫˜µ≤≥÷",
]
k = NUM_LINES // 4
lines = special + rng.sample([l for l in text if l], k) + rng.sample(mrpc, k) + rng.sample(ewt, min(k, len(ewt)))
while len(lines) < NUM_LINES:
    lines.append(strange().replace("\n", " "))
json.dump(lines, open(f"{out}/lines.json", "w"))
vocabs = os.listdir(f"{data}/vocab")


def wordpiece(lower, strip, chinese):
    vocab = {t.rstrip("\n"): i for i, t in enumerate(open(f"{data}/vocab/" + [v for v in vocabs if "bert" in v][0]))}
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
    t.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip, lowercase=lower
    )
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])]
    )
    t.decoder = decoders.WordPiece()
    return t


def gpt2(prefix, roberta):
    vocab = json.load(open(f"{data}/vocab/" + [v for v in vocabs if v.endswith(".json")][0]))
    merges = [
        tuple(l.rstrip("\n").split(" "))
        for l in open(f"{data}/vocab/" + [v for v in vocabs if "merges" in v][0])
        if not l.startswith("#version") and l.strip()
    ]
    t = Tokenizer(models.BPE(vocab, merges))
    t.add_special_tokens(["<|endoftext|>"])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    t.decoder = decoders.ByteLevel()
    e = ("<|endoftext|>", vocab["<|endoftext|>"])
    t.post_processor = (
        processors.RobertaProcessing(e, e, trim_offsets=True, add_prefix_space=prefix)
        if roberta
        else processors.ByteLevel(trim_offsets=False)
    )
    return t


def unigram(*steps):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([*steps, normalizers.Strip(left=False)])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.train_from_iterator(
        text[:20000] + mrpc[:4000] + ewt,
        trainers.UnigramTrainer(
            vocab_size=3000, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    t.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", t.token_to_id("</s>"))])
    return t


def charsmap():
    """A table of SentencePiece's kind, of what NFKC makes of characters, of letters with accents as two, and of what is dropped."""
    replaced = {"\u00ad": "", "\u200b": " ", "\t": " ", "\u3000": " "}
    for a, b in ranges:
        for c in map(chr, range(a, b)):
            made = unicodedata.normalize("NFKC", c)
            if made != c and unicodedata.category(c) != "Cs":
                replaced[c] = made
            parts = unicodedata.normalize("NFD", c)
            if len(parts) == 2 and unicodedata.normalize("NFC", parts) == c:
                replaced[parts] = c
    return double_array({k.encode(): v for k, v in replaced.items()})


def double_array(replaced):
    """Darts' format: a unit is a label, an offset to its children, and whether a key ends there; then what replaces."""
    replacements, places = b"", {}
    for made in sorted(set(replaced.values())):
        places[made] = len(replacements)
        replacements += made.encode() + b"\0"
    trie = {}
    for key, made in replaced.items():
        node = trie
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = places[made]
    units, used, bases, pending = {0: 0}, {0}, set(), [(0, trie)]
    while pending:
        place, node = pending.pop()
        base = len(bases) // 2 + 1
        # Children of two nodes share no place, and no two nodes a base.
        while base in bases or any(base ^ place ^ label in used for label in node):
            base += 1
        bases.add(base)
        units[place] |= base << 10 | (0x100 if 0 in node else 0)
        for label, child in node.items():
            at = base ^ place ^ label
            used.add(at)
            units[at] = child | 0x80000000 if label == 0 else label
            if label:
                pending.append((at, child))
    length = max(units) + 256
    packed = b"".join(struct.pack("<I", units.get(at, 0)) for at in range(length))
    return struct.pack("<I", len(packed)) + packed + replacements


def llama():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    t.train_from_iterator(
        text[:20000],
        trainers.BpeTrainer(
            vocab_size=2000,
            special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)],
            show_progress=False,
            max_token_length=12,
        ),
    )
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(j))
    t.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", t.token_to_id("<s>"))])
    return t


made = {
    "bert-uncased": wordpiece(True, None, True),
    "bert-cased": wordpiece(False, None, True),
    "bert-accents": wordpiece(True, False, False),
    "gpt2": gpt2(False, False),
    "roberta": gpt2(True, True),
    "unigram": unigram(normalizers.NFKC()),
    "nmt": unigram(normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")),
    "albert": unigram(
        normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()
    ),
    "charsmap": unigram(normalizers.Precompiled(charsmap())),
    "llama": llama(),
}
for name, t in made.items():
    os.makedirs(f"{out}/{name}", exist_ok=True)
    t.save(f"{out}/{name}/tokenizer.json")
    t = Tokenizer.from_file(f"{out}/{name}/tokenizer.json")
    rows = []
    for i, line in enumerate(lines):
        plain = t.encode(line, add_special_tokens=False)
        rows.append(dict(ids=plain.ids, offsets=plain.offsets))
    pairs = []
    for strategy in ("longest_first", "only_first", "only_second"):
        for length in (8, 16, 33):
            t.enable_truncation(length, strategy=strategy)
            for i in range(0, 400, 2):
                try:
                    e = t.encode(lines[i], lines[i + 1])
                    pairs.append(
                        dict(
                            first=i,
                            second=i + 1,
                            strategy=strategy,
                            length=length,
                            ids=e.ids,
                            types=e.type_ids,
                            special=e.special_tokens_mask,
                            offsets=e.offsets,
                        )
                    )
                except Exception as error:
                    pairs.append(dict(first=i, second=i + 1, strategy=strategy, length=length, error=str(error)))
    t.no_truncation()
    json.dump(dict(rows=rows, pairs=pairs), open(f"{out}/{name}/oracle.json", "w"))
