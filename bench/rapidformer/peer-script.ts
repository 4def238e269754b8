/**
 * A row of a table in stock PyTorch, one process per rank over gloo: `python -c SCRIPT ASKED RANK`, with ASKED as
 * `AskedOfPeer` in JSON. Uses DDP where nothing is sharded, ZeroRedundancyOptimizer for optimizer states, `fully_shard`
 * for gradients and parameters, `parallelize_module` for split layers, `Schedule1F1B` for stages; autocast to bfloat16
 * for mixed precision. Rank 0 prints one line of JSON.
 *
 * Memory is what PyTorch's allocator of host memory reports to its profiler from the model's creation to the end of the
 * warm-up: a rank's tensors, including DDP's buckets and FSDP's shards. Windows are timed without the profiler.
 */
export const peerScript = `
import contextlib, json, os, sys, time
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.profiler import ProfilerActivity, profile

asked, rank = json.loads(sys.argv[1]), int(sys.argv[2])
size, ranks, zero, tp, pp = (asked[name] for name in ("size", "ranks", "zero", "tp", "pp"))
layers, width, heads = size["layers"], size["width"], size["heads"]
vocab, length, micro = size["vocab"], size["length"], size["microBatch"]
causal = asked["subject"] == "gpt"
dp = ranks // (tp * pp)
accumulation = size["batch"] // (micro * dp)
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", init_method=asked["store"], rank=rank, world_size=ranks)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x):
        q, k, v = (each.unflatten(2, (-1, width // heads)).transpose(1, 2) for each in self.qkv(x).chunk(3, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def feed(self, x):
        return self.narrow(F.gelu(self.wide(x), approximate="tanh" if causal else "none"))

    def forward(self, x):
        if causal:
            x = x + self.attend(self.first(x))
            return x + self.feed(self.second(x))
        x = self.first(x + self.attend(x))
        return self.second(x + self.feed(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        if not causal:
            self.types, self.pool = nn.Embedding(2, width), nn.Linear(width, width)
            self.order = nn.Linear(width, 2)
        if asked["subject"] == "bert":
            self.dense, self.last = nn.Linear(width, width), nn.LayerNorm(width)
            self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, ids, order):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        if not causal:
            x = self.norm(x + self.types.weight[0])
        for block in self.blocks:
            x = block(x)
        if causal:
            return next_token_loss(self.norm(x), self.words.weight, ids)
        loss = F.cross_entropy(self.order(torch.tanh(self.pool(x[:, 0]))).float(), order)
        if asked["subject"] == "classifier":
            return loss
        logits = F.linear(self.last(F.gelu(self.dense(x))), self.words.weight, self.bias)
        return loss + F.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())


class Stage(nn.Module):
    """One rank's part of a causal model: layers, the embedding before the first, the head after the last."""

    def __init__(self, index):
        super().__init__()
        self.is_first, self.is_last = index == 0, index == pp - 1
        if self.is_first or self.is_last:
            self.words = nn.Embedding(vocab, width)
        if self.is_first:
            self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block() for _ in range(layers // pp))
        if self.is_last:
            self.norm = nn.LayerNorm(width)

    def forward(self, x):
        if self.is_first:
            x = self.words(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) if self.is_last else x


def next_token_loss(hidden, words, ids):
    labels = ids[:, 1:].flatten()
    if tp == 1:
        return F.cross_entropy(F.linear(hidden, words)[:, :-1].flatten(0, 1).float(), labels)
    from torch.distributed.tensor import DTensor, Replicate
    from torch.distributed.tensor.parallel import loss_parallel

    hidden = DTensor.from_local(hidden[:, :-1].flatten(0, 1), words.device_mesh, [Replicate()])
    labels = DTensor.from_local(labels, words.device_mesh, [Replicate()])
    with loss_parallel():
        return F.cross_entropy(F.linear(hidden, words).float(), labels).to_local()


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class Parallel:
    """Split layers, stages, or both; replicas sum their gradients one tensor at a time."""

    def __init__(self):
        mesh = init_device_mesh("cpu", (pp, dp, tp), mesh_dim_names=("pp", "dp", "tp"))
        self.replicas, self.stages, self.parts = (mesh.get_group(name) for name in ("dp", "pp", "tp"))
        self.replica = mesh.get_local_rank("dp")
        self.model = Stage(mesh.get_local_rank("pp"))
        initialize(self.model)
        if tp > 1:
            from torch.distributed.tensor import Replicate
            from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

            columns, rows = ColwiseParallel, RowwiseParallel
            plan = {"qkv": columns(), "out": rows(), "wide": columns(), "narrow": rows()}
            for block in self.model.blocks:
                parallelize_module(block, mesh["tp"], plan)
            if hasattr(self.model, "words"):
                parallelize_module(self.model, mesh["tp"], {"words": rows(input_layouts=Replicate())})
        self.tied = None
        if pp > 1:
            from torch.distributed.pipelining import PipelineStage, Schedule1F1B

            for replica in range(dp):
                for part in range(tp):
                    ends = [replica * tp + part, (pp - 1) * dp * tp + replica * tp + part]
                    group = dist.new_group(ends)
                    if rank in ends:
                        self.tied = group
            stage = PipelineStage(self.model, mesh.get_local_rank("pp"), pp, torch.device("cpu"), group=self.stages)
            self.schedule = Schedule1F1B(stage, accumulation, loss_fn=self.loss)

    def loss(self, hidden, ids):
        return next_token_loss(hidden, self.model.words.weight, ids)

    def gradients(self, batches):
        if pp == 1:
            for ids, _ in batches:
                with autocast():
                    loss = self.loss(self.model(ids), ids)
                (loss / accumulation).backward()
        else:
            ids = torch.cat([ids for ids, _ in batches])
            with autocast():
                if self.model.is_first:
                    self.schedule.step(ids)
                elif self.model.is_last:
                    self.schedule.step(target=ids)
                else:
                    self.schedule.step()
        if self.tied is not None:
            dist.all_reduce(local(self.model.words.weight.grad), group=self.tied)
        if dp > 1:
            grads = [local(each.grad) for each in self.model.parameters()]
            for wait in [dist.all_reduce(grad, group=self.replicas, async_op=True) for grad in grads]:
                wait.wait()
            torch._foreach_div_(grads, dp)

    def clip(self):
        split, full = torch.zeros(()), torch.zeros(())
        for name, each in self.model.named_parameters():
            # Of the words that two stages have, the last one's count.
            if name == "words.weight" and pp > 1 and not self.model.is_last:
                continue
            squares = local(each.grad).float().pow(2).sum()
            is_split = hasattr(each, "placements") and each.placements[0].is_shard()
            split, full = (split + squares, full) if is_split else (split, full + squares)
        dist.all_reduce(split, group=self.parts)
        total = split + full
        dist.all_reduce(total, group=self.stages)
        share = torch.clamp(1.0 / (total.sqrt() + 1e-6), max=1.0)
        torch._foreach_mul_([local(each.grad) for each in self.model.parameters()], share)


class Replicated:
    """A complete model; a rank has only its shard of sharded states."""

    def __init__(self):
        self.model, self.replica = Model(), rank
        initialize(self.model)
        if zero >= 2:
            from torch.distributed.fsdp import fully_shard

            for block in self.model.blocks:
                fully_shard(block, reshard_after_forward=zero == 3)
            fully_shard(self.model, reshard_after_forward=False)
        else:
            self.model = nn.parallel.DistributedDataParallel(self.model)

    def gradients(self, batches):
        for turn, (ids, order) in enumerate(batches):
            is_last = turn == accumulation - 1
            if zero >= 2:
                self.model.set_requires_gradient_sync(is_last)
            waits = contextlib.nullcontext() if is_last or zero >= 2 else self.model.no_sync()
            with waits:
                with autocast():
                    loss = self.model(ids, order)
                (loss / accumulation).backward()

    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)


def initialize(model):
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, 0, 0.02)


def autocast():
    return torch.autocast("cpu", torch.bfloat16, enabled=asked["isMixed"])


def optimizer_of(model):
    options = dict(lr=1e-4, weight_decay=0.01)
    if zero != 1:
        return torch.optim.AdamW(model.parameters(), **options)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    return ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **options)


def step():
    optimizer.zero_grad(set_to_none=True)
    batches = []
    for _ in range(accumulation):
        ids = torch.randint(0, vocab, (micro, length), generator=draws)
        batches.append((ids, torch.randint(0, 2, (micro,), generator=draws)))
    trained.gradients(batches)
    trained.clip()
    optimizer.step()


with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
    try:
        trained = Parallel() if tp * pp > 1 else Replicated()
    except ImportError as missing:
        if rank == 0:
            print(json.dumps({"torch": torch.__version__, "none": f"{missing}"}), flush=True)
        os._exit(0)
    optimizer = optimizer_of(trained.model)
    draws = torch.Generator().manual_seed(7 + trained.replica)
    for _ in range(asked["warmupSteps"]):
        step()
changes = sorted(
    (event.start_ns(), event.nbytes())
    for event in profiled.profiler.kineto_results.events()
    if event.name() == "[memory]"
)
held = peak = 0
for _, nbytes in changes:
    held += nbytes
    peak = max(peak, held)
peak = torch.tensor(peak)
dist.all_reduce(peak)
speeds = []
for _ in range(asked["windows"]):
    dist.barrier()
    began = time.perf_counter()
    for _ in range(asked["stepsOfWindow"]):
        step()
    dist.barrier()
    speeds.append(asked["stepsOfWindow"] * size["batch"] / (time.perf_counter() - began))
if rank == 0:
    print(json.dumps({"torch": torch.__version__, "samplesPerSecond": speeds, "peakBytes": peak.item()}), flush=True)
dist.barrier()
# The result is printed. Gloo's threads sometimes abort a process that exits in order.
os._exit(0)
`;
