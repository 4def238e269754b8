"""The same training in stock PyTorch and transformers: the folder's weights, the recorded batches in their order.

    python peer.py FOLDER STEPS ROWS RANKS PREDICT

FOLDER holds the model, `train.safetensors` (rows in the order in which they are read), `rates.json` (the learning rate of each
step), `validation.safetensors`, and gets `predicted.safetensors`. RANKS 1: eager, as many threads as there are cores. 2: FSDP2 (fully_shard) over gloo, a thread each.
Prints one line of JSON.
"""

import json
import os
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import transformers as hf
from safetensors import safe_open
from safetensors.torch import save_file

NAMES = {"inputIds": "input_ids", "attentionMask": "attention_mask", "tokenTypeIds": "token_type_ids",
         "pixelValues": "pixel_values", "inputValues": "input_values", "labels": "labels"}


def rows(state, first, count):
    return {NAMES[name]: state.get_slice(name)[first : first + count] for name in state.keys()}


def predict(model, architecture, batch):
    labels = batch.pop("labels")
    logits = model(**batch).logits.float()
    if architecture.endswith("ForCausalLM"):
        targets = F.pad(labels[:, 1:], (0, 1), value=-100)
        nats = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=-100, reduction="none")
        return {"nats": torch.stack([nats.view(targets.shape).sum(1), (targets >= 0).sum(1).float()], 1)}
    if architecture.endswith("ForCTC"):
        frames = model._get_feat_extract_output_lengths(batch["attention_mask"].sum(1))
        paths = logits.argmax(2)
        return {"paths": paths.masked_fill(torch.arange(paths.shape[1])[None] >= frames[:, None], -1)}
    if architecture.endswith("ForTokenClassification"):
        return {"guesses": logits.argmax(2)}
    return {"logits": logits}


def fastest_in_a_row(times, count=10):
    """As bench/learning/page.ts has it."""
    count = min(count, len(times))
    return min(sum(times[first : first + count]) / count for first in range(len(times) - count + 1))


def run(rank, folder, steps, batch, ranks, predicting):
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    if ranks > 1:
        import torch.distributed as dist

        os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(rank), WORLD_SIZE=str(ranks))
        dist.init_process_group("gloo")
    hf.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    architecture = json.load(open(folder + "/config.json"))["architectures"][0]
    model = getattr(hf, architecture).from_pretrained(folder).train()
    if ranks > 1:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (ranks,))
        lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module) > 1]
        for block in [block for blocks in lists for block in blocks if any(True for _ in block.parameters())]:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    rates = json.load(open(folder + "/rates.json"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rates[0], betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    train = safe_open(folder + "/train.safetensors", "pt")
    losses, times = [], []
    share = batch // ranks
    for step in range(steps):
        begin = time.perf_counter()
        optimizer.param_groups[0]["lr"] = rates[step]
        loss = model(**rows(train, step * batch + rank * share, share)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        reported = loss.detach()
        if ranks > 1:
            dist.all_reduce(reported)
            reported = reported / ranks
        losses.append(float(reported))
        times.append(time.perf_counter() - begin)
    peak = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]
    if ranks > 1:
        peaks = [None] * ranks
        dist.all_gather_object(peaks, peak[0])
        peak = peaks
    if predicting:
        model.eval()
        held = safe_open(folder + "/validation.safetensors", "pt")
        count = held.get_slice("labels").get_shape()[0]
        with torch.no_grad():
            parts = [predict(model, architecture, rows(held, first, 50)) for first in range(0, count, 50)]
        save_file({name: torch.cat([part[name] for part in parts]).contiguous() for name in parts[0]}, folder + "/predicted.safetensors")
    if rank == 0:
        print(json.dumps(dict(torch=torch.__version__, transformers=hf.__version__, losses=losses, scores={},
                              step_s=statistics.median(times[3:]), fastest_s=fastest_in_a_row(times[3:]), peak_bytes=peak)), flush=True)
    if ranks > 1:
        dist.barrier()
        # All has been reported. Gloo's threads abort a process now and then that takes itself down in order.
        os._exit(0)


if __name__ == "__main__":
    folder, steps, batch, ranks, predicting = sys.argv[1:6]
    args = (folder, int(steps), int(batch), int(ranks), predicting == "1")
    if args[3] == 1:
        run(0, *args)
    else:
        import socket

        import torch.multiprocessing as mp

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])
        mp.spawn(run, args=args, nprocs=args[3])
