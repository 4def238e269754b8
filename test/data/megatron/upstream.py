"""Random corpora, and digests of the samples that Megatron-LM's own code makes of them: upstream.py MEGATRON FOLDER CASES SEED."""
import hashlib, json, os, sys, types

megatron_path, folder, cases, seed_of_all = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
import numpy as np
import torch

np.float, np.int, np.bool = np.float64, np.int64, np.bool_
distributed = torch.distributed
distributed.get_rank = lambda *a, **k: 0
distributed.get_world_size = lambda *a, **k: 1
distributed.barrier = distributed.all_reduce = lambda *a, **k: None
torch.cuda.LongTensor = torch.LongTensor


class Groups:
    def __getattr__(self, name):
        return lambda *a, **k: 1 if "size" in name else 0


class Any:
    pass


# The package without what asks for GPUs: its data alone.
package = types.ModuleType("megatron")
package.__path__ = [os.path.join(megatron_path, "megatron")]
tokenizer, arguments = Any(), Any()
package.mpu, package.print_rank_0 = Groups(), lambda *a: None
package.get_tokenizer, package.get_args = lambda: tokenizer, lambda: arguments
sys.modules["megatron"] = package
from megatron.data import dataset_utils, gpt_dataset, indexed_dataset

os.makedirs(folder, exist_ok=True)
size = 400
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
words += [("##s%d" if i % 4 == 0 else "w%d") % i for i in range(5, size)]
open(folder + "/vocab.txt", "w").write("\n".join(words) + "\n")
tokenizer.inv_vocab = dict(enumerate(words))
tokenizer.cls, tokenizer.sep, tokenizer.mask, tokenizer.pad = 2, 3, 4, 0
tokenizer.bos_token_id, tokenizer.eos_token_id = size, size + 1
tokenizer.additional_special_tokens_ids = list(range(size + 2, size + 102))


def digest(dataset, keys):
    if dataset is None:
        return None
    hashed = hashlib.sha256()
    for i in range(min(len(dataset), 30)):
        item = dataset[i]
        for key in keys:
            hashed.update(np.asarray(item[key]).astype("<i8").tobytes())
    return [len(dataset), hashed.hexdigest()]


def digests(make, keys):
    try:
        return [digest(dataset, keys) for dataset in make()]
    except (AssertionError, IndexError):  # splits too small for its own checks, or its own code
        return None


draws, out = np.random.RandomState(seed_of_all), []
for case in range(cases):
    prefix = "%s/corpus%d" % (folder, case)
    # The same in both formats; samples are made of the first alone.
    writer = indexed_dataset.MMapIndexedDatasetBuilder(prefix + ".bin", dtype=np.uint16 if case % 2 else np.int32)
    before = indexed_dataset.IndexedDatasetBuilder(prefix + "-cached.bin", dtype=np.int32)
    for _ in range(draws.randint(100, 300)):
        for _ in range(draws.randint(1, 9)):
            long = draws.random_sample() < 0.02
            count = draws.randint(500, 530) if long else draws.randint(1, 40)
            sequence = torch.IntTensor(draws.randint(5, size, count).astype(np.int32))
            writer.add_item(sequence)
            before.add_item(sequence)
        writer.end_document()
        before.end_document()
    writer.finalize(prefix + ".idx")
    before.finalize(prefix + "-cached.idx")
    seed, length = int(draws.randint(0, 100000)), int(draws.randint(24, 130))
    samples = [int(draws.randint(20, 300)), int(draws.randint(4, 40)), int(draws.randint(2, 20))]
    split = ["969, 30, 1", "980,20", "90,5,5", "8/1/1", "60,25,15"][case % 5]
    short, mask = [0.1, 0.25][case % 2], [0.15, 0.3][case % 2]
    record = dict(prefix=prefix, seed=seed, length=length, samples=samples, split=split, short=short, mask=mask)
    build = gpt_dataset.build_train_valid_test_datasets
    record["gpt"] = digests(lambda: build([prefix], "mmap", split, samples, length, seed, True), ["text"])
    # What was written so far, by turns, as a blend of three: weights that are no round shares.
    if case >= 2:
        weights = ["%.3f" % draws.uniform(0.1, 2) for _ in range(3)]
        blended = [word for i, weight in enumerate(weights) for word in (weight, "%s/corpus%d" % (folder, case - i))]
        record["blend"] = blended
        record["gptOfBlend"] = digests(lambda: build(blended, "mmap", split, samples, length, seed, True), ["text"])
    for key, kind, binary in (("bert", "standard_bert", True), ("bertAlone", "standard_bert", False), ("t5", "t5", False)):
        for name in os.listdir(folder):
            if "ssp_" in name:  # kept samples, which do not say whom they are for
                os.remove(os.path.join(folder, name))
        keys = ["text", "types", "labels", "is_random", "loss_mask", "padding_mask"]
        keys = ["text_enc", "text_dec", "labels", "loss_mask"] if kind == "t5" else keys
        record[key] = digests(lambda: dataset_utils.build_train_valid_test_datasets(
            [prefix], "mmap", split, samples, length, mask, short, seed, True, binary_head=binary,
            max_seq_length_dec=length, dataset_type=kind), keys)
    out.append(record)
json.dump(out, open(folder + "/reference.json", "w"))
