/**
 * Measures the cost of CheckpointService for its user: how long `save` holds its caller up, beside a plain copy of the same bytes; how
 * long the caller's event loop is held up while a save is written; how long until it is durable, and read again, beside a
 * plain write and fsync; what handing tensors over by socket adds; and whether memory grows from save to save.
 *
 *   npm run bench -- service [--megabytes N] [--rounds N] [--saves N] [--dir FOLDER]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { CheckpointService, ones, type Tensor } from "troupe";
import { CheckpointServer } from "troupe/checkpoint";
import { countOf, readArguments } from "../scripts/arguments.mjs";
import { write } from "./checkpoint/files.ts";
import { slopeOf } from "./checkpoint/growth.ts";
import { median } from "./measure/median.ts";
import { timed } from "./measure/timed.ts";

const usage = `
usage: npm run bench -- service [OPTIONS]

  --megabytes N  that are saved (256)
  --rounds N     (5)
  --saves N      over which memory is looked at (200)
  --dir FOLDER   where they are saved (a temporary folder)`;
const { values: flags } = readArguments(usage, {
  megabytes: { type: "string", default: "256" },
  rounds: { type: "string", default: "5" },
  saves: { type: "string", default: "200" },
  dir: { type: "string", default: tmpdir() },
});
const numTensors = 32;
const sizeBytes = countOf(usage, "megabytes", flags.megabytes) * 1e6;
const numRounds = countOf(usage, "rounds", flags.rounds);
const numSaves = countOf(usage, "saves", flags.saves);
const folder = mkdtempSync(join(flags.dir, "troupe-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const held = Array.from({ length: numTensors }, () => ones([Math.round(sizeBytes / 4 / numTensors)]));
const tensors: Record<string, Tensor> = Object.fromEntries(
  held.map((tensor, index) => [`tensor.${index}`, tensor]),
);

interface Times {
  readonly plainCopyMs: number;
  readonly heldUpMs: number;
  readonly loopMs: number;
  readonly plainWriteMs: number;
  readonly durableMs: number;
  readonly verifiedMs: number;
  readonly servedMs: number;
}

const rounds: Times[] = [];
await using plain = await CheckpointService.open({ dir: join(folder, "plain"), keepLast: 1, verify: false });
await using verified = await CheckpointService.open({ dir: join(folder, "verified"), keepLast: 1 });
const socket = join(folder, "socket");
await using _server = await CheckpointServer.listen(verified, { socket });
for (let step = 1; step <= numRounds + 1; step++) {
  const plainCopyMs = copy();
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const begin = performance.now();
  const save = plain.save({ step, tensors });
  const heldUpMs = performance.now() - begin;
  loop.enable();
  await save.durable;
  const durableMs = performance.now() - begin;
  loop.disable();
  const verifiedMs = await timed(() => verified.save({ step: 2 * step, tensors }).durable);
  const servedMs = await timed(() => serve(2 * step + 1));
  const path = join(folder, "file");
  const plainWriteMs = await timed(() => write(path, sizeBytes));
  rmSync(path);
  // The first round makes memory and code warm.
  if (step > 1)
    rounds.push({
      plainCopyMs,
      heldUpMs,
      loopMs: loop.max / 1e6,
      plainWriteMs,
      durableMs,
      verifiedMs,
      servedMs,
    });
}

const usual = (of: keyof Times) => median(rounds.map((times) => times[of]));
const ms = (of: keyof Times) => `${usual(of).toFixed(1)} ms`;
const to = (of: keyof Times, other: keyof Times) => `${(usual(of) / usual(other)).toFixed(2)} ×`;
console.log(`${numTensors} tensors, ${(sizeBytes / 1e6).toFixed(0)} MB, medians of ${numRounds}`);
console.log(
  `save returns after ${ms("heldUpMs")}: ${to("heldUpMs", "plainCopyMs")} a plain copy; the loop is then held up ${ms("loopMs")} at most`,
);
console.log(`durable after ${ms("durableMs")}: ${to("durableMs", "plainWriteMs")} a plain write and fsync`);
console.log(
  `durable and read again after ${ms("verifiedMs")}: ${to("verifiedMs", "plainWriteMs")}; from another program ${ms("servedMs")}: ${to("servedMs", "plainWriteMs")}`,
);
console.log(`memory grows by ${(await growth(numSaves)).toFixed(3)} MiB a save (target 0 ± 1)`);

/** A plain copy of as many bytes as the tensors have, into memory that was used before. */
function copy(): number {
  const from = new Uint8Array(sizeBytes).fill(1);
  const into = new Uint8Array(sizeBytes).fill(2);
  const begin = performance.now();
  into.set(from);
  return performance.now() - begin;
}

/** Hands the same tensors over by the socket, one after the other, and commits them. */
async function serve(step: number): Promise<void> {
  const bytes = new Uint8Array(Math.round(sizeBytes / 4 / numTensors) * 4);
  for (const name of Object.keys(tensors)) {
    const headers = {
      "troupe-dtype": "F32",
      "troupe-shape": `${bytes.length / 4}`,
      "content-type": "application/octet-stream",
    };
    await ask("PUT", `/checkpoints/${step}/tensors/${name}`, headers, bytes);
  }
  await ask("POST", `/checkpoints/${step}/commit`, { "content-type": "application/json" }, Buffer.from("{}"));
}

function ask(method: string, path: string, headers: Record<string, string>, body: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = { "content-length": String(body.length) };
    const asking = request(
      { socketPath: socket, method, path, headers: { ...headers, ...length } },
      (answer) => {
        if ((answer.statusCode ?? 500) >= 300)
          reject(new Error(`[bench service] ${method} ${path}: ${answer.statusCode}`));
        answer.resume().once("end", resolve);
      },
    );
    asking.once("error", reject).end(body);
  });
}

/** MiB that the process grows by with each save of 4 MB, once it is warm. */
async function growth(numSaves: number): Promise<number> {
  await using service = await CheckpointService.open({
    dir: join(folder, "growth"),
    keepLast: 1,
    verify: false,
  });
  const values = new Float32Array(1_000_000);
  const held: number[] = [];
  for (let step = 1; step <= numSaves + 40; step++) {
    await service.save({ step, tensors: { values } }).durable;
    held.push(process.memoryUsage.rss());
  }
  return slopeOf(held.slice(40)) / 2 ** 20;
}
