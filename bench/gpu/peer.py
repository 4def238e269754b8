"""Stock PyTorch on one GPU, the work of bench/gpu/job.ts: same model, batch, optimizer and clipping. Prints one JSON line.

    python3 bench/gpu/peer.py --model gpt2 --mode eager|compile|fsdp2 --batch 16 --sequence 1024 --steps 20

bfloat16: eager and compile run under autocast over float32 weights, which is what PyTorch's users write; fsdp2 is
fully_shard of each layer with MixedPrecisionPolicy(bfloat16) on a mesh of one. Times are CUDA events around all timed
steps at once: nothing is read back in between.
"""

import argparse
import json
import os

import torch
from torch import nn
from torch.nn import functional as F

SHAPES = {
    "gpt2": dict(layers=12, width=768, heads=12, vocabulary=50257),
    "gpt-1.3b": dict(layers=24, width=2048, heads=16, vocabulary=50257),
    "bert": dict(layers=12, width=768, heads=12, vocabulary=30522),
}


class Layer(nn.Module):
    """Pre-norm (GPT) or post-norm (BERT) transformer layer."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-5), nn.LayerNorm(width, 1e-5)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        B, T, D = x.shape
        q, k, v = (p.view(B, T, self.heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(B, T, D))

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.causal else "none"))

    def forward(self, x):
        if self.causal:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class Transformer(nn.Module):
    """GPT-2, or BERT with its masked-LM head; the output layer is the token embedding."""

    def __init__(self, layers, width, heads, vocabulary, positions, causal):
        super().__init__()
        self.causal, self.vocabulary = causal, vocabulary
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        if not causal:
            self.types, self.norm0 = nn.Embedding(2, width), nn.LayerNorm(width, 1e-12)
            self.transform, self.bias = nn.Linear(width, width), nn.Parameter(torch.zeros(vocabulary))
        self.layers = nn.ModuleList(Layer(width, heads, causal) for _ in range(layers))
        self.norm = nn.LayerNorm(width, 1e-5)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0.0, 0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        if not self.causal:
            x = self.norm0(x + self.types.weight[0])
        for layer in self.layers:
            x = layer(x)
        if self.causal:
            logits = F.linear(self.norm(x), self.tokens.weight)
        else:
            logits = F.linear(self.norm(F.gelu(self.transform(x))), self.tokens.weight, self.bias)
        return F.cross_entropy(logits.view(-1, self.vocabulary).float(), targets.view(-1), ignore_index=-100)


def shard(model):
    """FSDP2 as its documentation writes it, on a mesh of one."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (1,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=SHAPES, default="gpt2")
    parser.add_argument("--mode", choices=["eager", "compile", "fsdp2"], default="eager")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    causal = args.model != "bert"
    shape = SHAPES[args.model]
    with torch.device("cuda"):
        model = Transformer(**shape, positions=args.sequence, causal=causal)
    num_parameters = sum(p.numel() for p in model.parameters())
    if args.mode == "fsdp2":
        model = shard(model)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if args.mode == "compile" else model
    generator = torch.Generator("cuda").manual_seed(1)

    def batch():
        ids = torch.randint(0, shape["vocabulary"], (args.batch, args.sequence + 1), generator=generator, device="cuda")
        if causal:
            return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        chosen = torch.rand(args.batch, args.sequence, generator=generator, device="cuda") < 0.15
        inputs = ids[:, :-1]
        return inputs.masked_fill(chosen, 103), inputs.masked_fill(~chosen, -100)

    losses = []

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=args.mode != "fsdp2"):
            loss = run(*batch())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())

    for _ in range(args.warmup):
        step()
    torch.cuda.reset_peak_memory_stats()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(args.steps):
        step()
    end.record()
    torch.cuda.synchronize()
    seconds = begin.elapsed_time(end) / 1000 / args.steps
    print(
        json.dumps(
            dict(
                peer=f"pytorch {args.mode}",
                torch=torch.__version__,
                device=torch.cuda.get_device_name(),
                model=args.model,
                params=num_parameters,
                batch=args.batch,
                sequence=args.sequence,
                step_s=round(seconds, 5),
                tokens_per_s=round(args.batch * args.sequence / seconds),
                peak_bytes=torch.cuda.max_memory_allocated(),
                held_bytes=torch.cuda.max_memory_reserved(),
                losses=[round(float(loss), 4) for loss in losses[:3] + losses[-3:]],
            )
        )
    )


if __name__ == "__main__":
    main()
