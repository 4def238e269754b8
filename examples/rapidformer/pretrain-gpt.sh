#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1,2,3
export MASTER_ADDR=localhost
export MASTER_PORT=6010
export NNODES=1
export NODE_RANK=0
DATA_PATH=gpt_small_text_document
rapidformer --user-script $HERE/pretrain-gpt.ts \
       --tensor-model-parallel-size 2 \
       --pipeline-model-parallel-size 2 \
       --num-layers 2 \
       --hidden-size 64 \
       --num-attention-heads 4 \
       --micro-batch-size 4 \
       --global-batch-size 16 \
       --seq-length 64 \
       --tokenizer-type GPT2BPETokenizer \
       --max-position-embeddings 64 \
       --train-iters 60 \
       --data-path $DATA_PATH \
       --vocab-file gpt2-vocab.json \
       --merge-file gpt2-merges.txt \
       --data-impl mmap \
       --split 980,20 \
       --lr 1e-3 \
       --lr-decay-style linear \
       --min-lr 0.0 \
       --lr-decay-iters 120 \
       --weight-decay 1e-2 \
       --clip-grad 1.0 \
       --lr-warmup-fraction .05 \
       --log-interval 1 \
       --zero-2-memory-optimization \
       --checkpoint-activations \
       --mixed-precision
