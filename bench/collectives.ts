// Measures collectives of two ranks beside a copy of the same bytes in the same run.
//
//   npm run bench -- collectives                   latency of 4 bytes, bandwidth by size, overlap
//   npm run bench -- collectives --bmtrain         BMTrain's sizes (2^10 to 2^26 bytes of float16) and operations
//   npm run bench -- collectives --backend local   one backend alone
//
// Warm-up, then the median of repeats, ranks in turn of cases. Algorithm bandwidth is bytes / time; bus bandwidth takes the
// part of the bytes that has to move ((N-1)/N for a gather or a reduce-scatter, twice that for an all-reduce), as NCCL's
// tests do. For all-gather and reduce-scatter, "bytes" are those of the complete tensor.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, refuse } from "../scripts/arguments.mjs";
import { loadNative, nativeInfo } from "../src/compute/tensor/index.ts";
import { type Measured, type RankTask, startRank } from "./collectives/start-rank.ts";
import { machine } from "./measure/machine.ts";

const settings = [
  { backend: "local", placement: "thread" },
  { backend: "gloo", placement: "thread" },
  { backend: "gloo", placement: "process" },
] as const;
const backends = [...new Set<string>(settings.map(({ backend }) => backend))];

const usage = `
usage: npm run bench -- collectives [OPTIONS]

  --bmtrain       BMTrain's sizes and operations, in place of latency, bandwidth by size and overlap
  --backend NAME  that one alone: ${backends.join(" or ")} (both)`;
const { values: options } = readArguments(usage, {
  backend: { type: "string" },
  bmtrain: { type: "boolean", default: false },
});
if (options.backend !== undefined && !backends.includes(options.backend))
  refuse(usage, `--backend ${backends.join(" or ")}`, options.backend);

loadNative();
console.log(machine(`libtorch ${nativeInfo().torch}`));
for (const setting of settings) {
  if (options.backend !== undefined && options.backend !== setting.backend) continue;
  if (setting.backend === "gloo" && !nativeInfo().gloo) {
    console.log("gloo: not built into the addon");
    continue;
  }
  console.log(`\n${setting.backend}, 2 ranks, a ${setting.placement} each`);
  for (const row of await measure(setting)) console.log(formatRow(row));
}

async function measure(setting: (typeof settings)[number]): Promise<readonly Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
  const task: Omit<RankTask, "rank"> = {
    backend: setting.backend,
    name: `bench-${setting.placement}`,
    suite: options.bmtrain ? "bmtrain" : "usual",
    rendezvous: setting.placement === "process" ? join(folder, "rendezvous") : "",
  };
  const ranks = [0, 1].map((rank) => startRank(setting.placement, { ...task, rank }));
  const ended = Promise.all(ranks.map((rank) => once(rank, "exit")));
  const [first] = await Promise.all(ranks.map((rank) => once(rank, "message")));
  await ended;
  rmSync(folder, { recursive: true });
  return (first as [readonly Measured[]])[0];
}

function formatRow({ name, sizeBytes, timeUs, busBytes, copyUs }: Measured): string {
  const size = sizeBytes === 0 ? "" : `${formatBytes(sizeBytes).padStart(8)}`;
  const bandwidth =
    busBytes === 0
      ? ""
      : `  algorithm ${gigabytes(sizeBytes, timeUs)}  bus ${gigabytes(busBytes, timeUs)}  memcpy ${gigabytes(sizeBytes, copyUs)} GB/s`;
  return `  ${name.padEnd(28)}${size}  ${timeUs.toFixed(1).padStart(10)} µs${bandwidth}`;
}

function gigabytes(sizeBytes: number, timeUs: number): string {
  return (sizeBytes / timeUs / 1e3).toFixed(2).padStart(6);
}

function formatBytes(sizeBytes: number): string {
  const power = Math.min(3, Math.floor(Math.log2(sizeBytes) / 10));
  return `${+(sizeBytes / 2 ** (10 * power)).toFixed(1)} ${["B", "KiB", "MiB", "GiB"][power]}`;
}
