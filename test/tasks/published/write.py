"""Writes small datasets as their libraries publish them, for the test beside this file.

    python test/tasks/published/write.py FOLDER

Wants datasets, Pillow and soundfile. Tars are written as webdataset's ShardWriter does.
"""

import io
import json
import os
import sys
import tarfile

import datasets
import numpy
import soundfile
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, List, Value
from PIL import Image as Picture

datasets.disable_progress_bars()
root = sys.argv[1]
NUM = {"train": 7, "test": 3}
SHARDS = {"train": 3, "test": 1}


def picture(number):
    into = io.BytesIO()
    Picture.new("RGB", (4, 4), (30 * number, 0, 0)).save(into, "PNG")
    return {"bytes": into.getvalue(), "path": f"{number}.png"}


def sound(number):
    into = io.BytesIO()
    soundfile.write(into, numpy.full(100 + number, 0.25, "float32"), 16000, format=["WAV", "FLAC"][number % 2])
    return {"bytes": into.getvalue(), "path": None}


def said(number):
    return [{"role": "user", "content": f"q {number}"}, {"role": "assistant", "content": f"a {number}"}]


# The columns of each kind, by the number of a record.
KINDS = {
    "texts": (lambda n: {"text": f"text {n}", "label": n % 2}, {"text": Value("string"), "label": ClassLabel(names=["no", "yes"])}),
    "words": (lambda n: {"tokens": ["word", str(n)], "ner_tags": [0, 1]}, {"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O", "B-N"]))}),
    "chats": (lambda n: {"messages": said(n)}, None),
    "preferences": (lambda n: {"prompt": f"q {n}", "chosen": said(n)[1:], "rejected": [{"role": "assistant", "content": "no"}]}, None),
    "pictures": (lambda n: {"image": picture(n), "label": n % 2}, {"image": Image(), "label": ClassLabel(names=["cat", "dog"])}),
    # As the feature Audio keeps it, which wants torchcodec.
    "sounds": (lambda n: {"audio": sound(n), "text": "a" * (n + 1)}, {"audio": {"bytes": Value("binary"), "path": Value("string")}, "text": Value("string")}),
}


def write(kind, record, features):
    splits = DatasetDict(
        {
            name: Dataset.from_list([record(number) for number in range(count)], features=features and Features(features))
            for name, count in NUM.items()
        }
    )
    splits.save_to_disk(f"{root}/{kind}/saved", num_shards=SHARDS)
    for form in ["parquet/data", "lines"]:
        os.makedirs(f"{root}/{kind}/{form}")
    for name, split in splits.items():
        count = SHARDS[name]
        for index in range(count):
            shard = split.shard(count, index, contiguous=True)
            shard.to_parquet(f"{root}/{kind}/parquet/data/{name}-{index:05d}-of-{count:05d}.parquet")
            if kind not in ("pictures", "sounds"):
                shard.to_json(f"{root}/{kind}/lines/{name}-{index}.jsonl")


def write_tars(kind, members):
    os.makedirs(f"{root}/{kind}/tars")
    for name, count in NUM.items():
        numbers = list(range(count))
        for index, begin in enumerate(range(0, count, 3)):
            with tarfile.open(f"{root}/{kind}/tars/{name}-{index:06d}.tar", "w|") as tar:
                for number in numbers[begin : begin + 3]:
                    for end, data in members(number).items():
                        entry = tarfile.TarInfo(f"{number:09d}.{end}")
                        entry.size, entry.mode, entry.mtime = len(data), 0o444, 1.5e9
                        entry.uname = entry.gname = "bigdata"
                        tar.addfile(entry, io.BytesIO(data))


for kind, (record, features) in KINDS.items():
    write(kind, record, features)
write_tars("pictures", lambda n: {"png": picture(n)["bytes"], "json": json.dumps({"label": n % 2}).encode()})
write_tars("sounds", lambda n: {["wav", "flac"][n % 2]: sound(n)["bytes"], "txt": b"a" * (n + 1)})
