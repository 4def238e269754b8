#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
export MASTER_ADDR=localhost
export MASTER_PORT=6010
export NNODES=1
export NODE_RANK=0

rapidformer --user-script $HERE/finetune-template.ts \
            --task sequence_classification \
            --pretrained-model-name-or-path 'bert-base-cased' \
            --data-path glue \
            --data-name mrpc \
            --epochs 6 \
            --micro-batch-size 8 \
            --global-batch-size 16 \
            --lr 1e-3 \
            --lr-decay-style linear \
            --lr-warmup-iters 4 \
            --weight-decay 1e-2 \
            --clip-grad 1.0 \
            --mixed-precision \
            --zero-3-memory-optimization \
            --onnx-runtime-training
