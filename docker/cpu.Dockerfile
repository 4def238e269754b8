# Troupe on the CPU: docker build -f docker/cpu.Dockerfile -t troupe .
FROM node:24-bookworm-slim AS build
RUN apt-get update && \
    apt-get install -y --no-install-recommends cmake g++ git libgloo-dev make python3 && \
    rm -rf /var/lib/apt/lists/* && \
    install -d -o node -g node /home/node/troupe
USER node
WORKDIR /home/node/troupe
COPY --chown=node:node package.json package-lock.json .npmrc ./
COPY --chown=node:node scripts/arguments.mjs scripts/build-native.mjs scripts/
COPY --chown=node:node scripts/setup scripts/setup
COPY --chown=node:node native native
# The packages, libtorch and the addon, which a change of any other file leaves as they are.
RUN npm run build:native && rm -rf build/native /home/node/.npm

FROM node:24-bookworm-slim
USER node
RUN mkdir -p /home/node/.cache /home/node/troupe
WORKDIR /home/node/troupe
COPY --from=build --chown=node:node /home/node/.cache/troupe /home/node/.cache/troupe
COPY --from=build --chown=node:node /home/node/troupe .
COPY --chown=node:node . .
CMD ["npm", "start"]
