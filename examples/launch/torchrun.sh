#!/bin/bash
# On every host, with the same words; hosts may come and go between one and two. When one does, torchrun ends the others by a
# signal, the run saves, and goes on with those that are there.
set -euo pipefail
# Where agents share their store, torch 2.13 tells a host that comes later no address: it and all others wait for it in vain.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
exec torchrun --nnodes=1:2 --nproc-per-node=1 --max-restarts=10 \
  --rdzv-backend=c10d --rdzv-endpoint="${RDZV_ENDPOINT:?host:port of one of them}" --rdzv-id=train \
  --no-python troupe run job.ts --ranks 2 --checkpoint runs/train --resume auto
