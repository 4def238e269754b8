#!/usr/bin/env node
// Rapidformer's own name: `rapidformer --task … ` is `troupe rapidformer --task …`.
process.argv.splice(2, 0, "rapidformer");
await import("./troupe.mjs");
