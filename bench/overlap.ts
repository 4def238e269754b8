// Does a layer that is split over ranks hide a slow link behind its matrix product?
//
//   npm run bench -- overlap
//
// Two ranks whose link takes some time for every operation, however small. The same chunks are moved and multiplied one after
// the other and overlapped: in turn costs the product and all operations, overlapped the longer of the two and one chunk of
// the other. Medians of rank 0.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { readArguments } from "../scripts/arguments.mjs";
import { loadNative } from "../src/compute/tensor/index.ts";
import type { OverlapRow, OverlapTask } from "./overlap/rank.ts";

const delayMs = 100;
const numChunks = 4;

readArguments("usage: npm run bench -- overlap", {});
loadNative();
const ranks = [0, 1].map((rank) => {
  const workerData: OverlapTask = { rank, delayMs, numChunks };
  return new Worker(new URL("./overlap/rank.ts", import.meta.url), { workerData });
});
const ended = Promise.all(ranks.map((rank) => once(rank, "exit")));
const [[rows]] = (await Promise.all(ranks.map((rank) => once(rank, "message")))) as [[OverlapRow[]], unknown];
await ended;

console.log(`two ranks, ${numChunks} chunks, a link of ${delayMs} ms an operation; ms`);
console.log("                                product   in turn  overlapped   exposed: in turn  overlapped");
for (const { name, productMs, inTurnMs, overlappedMs } of rows) {
  const figures = [productMs, inTurnMs, overlappedMs].map((ms) => ms.toFixed(0).padStart(10)).join("");
  const exposed = [inTurnMs, overlappedMs].map((ms) => (ms - productMs).toFixed(0).padStart(12)).join("");
  console.log(`${name.padEnd(29)}${figures}      ${exposed}`);
}
