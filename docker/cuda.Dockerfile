# Troupe on NVIDIA GPUs: docker build -f docker/cuda.Dockerfile -t troupe-cuda .
FROM node:24-bookworm-slim AS node

FROM nvidia/cuda:13.0.2-devel-ubuntu24.04 AS build
RUN apt-get update && \
    apt-get install -y --no-install-recommends cmake g++ git libgloo-dev make python3 python3-pip && \
    rm -rf /var/lib/apt/lists/* && \
    install -d -o ubuntu -g ubuntu /home/ubuntu/troupe
RUN pip install --no-cache-dir --target /opt/torch torch==2.13.0 --index-url https://download.pytorch.org/whl/cu130
COPY --from=node /usr/local/bin /usr/local/bin
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
ENV TROUPE_LIBTORCH=/opt/torch
# The GPUs that kernels are compiled for, by compute capability.
ARG TORCH_CUDA_ARCH_LIST="8.0 9.0"
USER ubuntu
WORKDIR /home/ubuntu/troupe
COPY --chown=ubuntu:ubuntu package.json package-lock.json .npmrc ./
COPY --chown=ubuntu:ubuntu scripts/arguments.mjs scripts/build-native.mjs scripts/
COPY --chown=ubuntu:ubuntu scripts/setup scripts/setup
COPY --chown=ubuntu:ubuntu native native
RUN npm run build:native && rm -rf build/native /home/ubuntu/.npm

# CUDA's libraries come with torch's wheel, and the driver's from the host.
FROM ubuntu:24.04
COPY --from=node /usr/local/bin /usr/local/bin
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
COPY --from=build /opt/torch/nvidia /opt/torch/nvidia
COPY --from=build /opt/torch/torch /opt/torch/torch
ENV TROUPE_LIBTORCH=/opt/torch LD_LIBRARY_PATH=/opt/torch/nvidia/cu13/lib
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER ubuntu
RUN mkdir -p /home/ubuntu/troupe
WORKDIR /home/ubuntu/troupe
COPY --from=build --chown=ubuntu:ubuntu /home/ubuntu/troupe .
COPY --chown=ubuntu:ubuntu . .
CMD ["npm", "start"]
