/**
 * A row of a table in stock PyTorch, one process a rank over gloo: `python -c SCRIPT ASKED RANK`, ASKED as `AskedOfPeer` in JSON.
 * DDP where nothing is sharded, ZeroRedundancyOptimizer for optimizer states, `fully_shard` for gradients and parameters;
 * autocast to bfloat16 for mixed precision. Rank 0 prints one line of JSON.
 */
export const peerScript = `
import contextlib, json, sys, time
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

asked, rank = json.loads(sys.argv[1]), int(sys.argv[2])
size, ranks, zero = asked["size"], asked["ranks"], asked["zero"]
layers, width, heads = size["layers"], size["width"], size["heads"]
vocab, length, micro = size["vocab"], size["length"], size["microBatch"]
causal = asked["subject"] == "gpt"
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
        q, k, v = (each.unflatten(2, (heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, 2))
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
            logits = F.linear(self.norm(x), self.words.weight)[:, :-1]
            return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss = F.cross_entropy(self.order(torch.tanh(self.pool(x[:, 0]))).float(), order)
        if asked["subject"] == "classifier":
            return loss
        logits = F.linear(self.last(F.gelu(self.dense(x))), self.words.weight, self.bias)
        return loss + F.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())


model = Model()
for parameter in model.parameters():
    if parameter.ndim > 1:
        nn.init.normal_(parameter, 0, 0.02)
options = dict(lr=1e-4, weight_decay=0.01)
if zero >= 2:
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, reshard_after_forward=zero == 3)
    fully_shard(model, reshard_after_forward=False)
    optimizer = torch.optim.AdamW(model.parameters(), **options)
elif zero == 1:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **options)
else:
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), **options)
accumulation = size["batch"] // (micro * ranks)
draws = torch.Generator().manual_seed(7 + rank)


def step():
    optimizer.zero_grad(set_to_none=True)
    for turn in range(accumulation):
        ids = torch.randint(0, vocab, (micro, length), generator=draws)
        order = torch.randint(0, 2, (micro,), generator=draws)
        is_last = turn == accumulation - 1
        if zero >= 2:
            model.set_requires_gradient_sync(is_last)
        waits = contextlib.nullcontext() if is_last or zero >= 2 else model.no_sync()
        with waits:
            with torch.autocast("cpu", torch.bfloat16, enabled=asked["isMixed"]):
                loss = model(ids, order)
            (loss / accumulation).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


for _ in range(asked["warmupSteps"]):
    step()
speeds = []
for _ in range(asked["windows"]):
    dist.barrier()
    began = time.perf_counter()
    for _ in range(asked["stepsOfWindow"]):
        step()
    dist.barrier()
    speeds.append(asked["stepsOfWindow"] * size["batch"] / (time.perf_counter() - began))
if rank == 0:
    print(json.dumps({"torch": torch.__version__, "samplesPerSecond": speeds}))
dist.destroy_process_group()
`;
