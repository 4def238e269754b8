// Reads a million samples from ten tars: over HTTP and locally by turns, then by a run of three ranks that is killed and resumed on five.
//
//   npm run bench -- data [--samples 1000000] [--files 10] [--rounds 3]
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { countOf, readArguments } from "../scripts/arguments.mjs";
import { openRecords } from "../src/entries/data.ts";
import { makeTars } from "./data/tars.ts";
import { load } from "./measure/machine.ts";

const usage = `
usage: npm run bench -- data [OPTIONS]

  --samples N  of all files (1000000)
  --files N    tars (10)
  --rounds N   of reading over HTTP and locally (3)`;
const { values: flags } = readArguments(usage, {
  samples: { type: "string", default: "1000000" },
  files: { type: "string", default: "10" },
  rounds: { type: "string", default: "3" },
});
const numSamples = countOf(usage, "samples", flags.samples);
const numFiles = countOf(usage, "files", flags.files);
const numRounds = countOf(usage, "rounds", flags.rounds);

/** A step's samples, divisible by three ranks and by five. */
const BATCH = 1_500;
const SEED = 1;
const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
const [cache, log, saved] = ["cache", "log", "saved"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
mkdirSync(log);
const names = `train-{0000..${`${numFiles - 1}`.padStart(4, "0")}}.tar`;

await makeTars(folder, numSamples, numFiles);
const server = program("serve", folder);
const origin = await new Promise<string>((resolve) => linesOf(server).once("line", resolve));
try {
  const [far, near] = [`${origin}/${names}`, join(folder, names)];
  console.log(`${numSamples} samples in ${numFiles} tars, load ${load()}`);
  await reading(far, near);
  await running(far);
} finally {
  server.kill();
  rmSync(folder, { recursive: true, force: true });
}

async function reading(far: string, near: string): Promise<void> {
  for (const [where, source] of Object.entries({ HTTP: far, "the disk": near })) {
    const begun = performance.now();
    await openRecords(source, { cacheDir: cache });
    console.log(`searched once over ${where}: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  }
  const rounds: { readonly remote: Read; readonly local: Read }[] = [];
  for (let round = 0; round < numRounds; round++) {
    const sources = round % 2 === 0 ? [far, near] : [near, far];
    const read = sources.map((source) => read1(source));
    const [remote, local] = (round % 2 === 0 ? read : read.toReversed()) as [Read, Read];
    rounds.push({ remote, local });
    const rate = ({ seconds }: Read) => `${(numSamples / seconds / 1_000).toFixed(1)} thousand/s`;
    const memory = remote.megabytes.map((each) => each.toFixed(0)).join(" ");
    console.log(
      `read by one thread: HTTP ${rate(remote)}, disk ${rate(local)}; ` +
        `memory over HTTP by tenths: ${memory} MB; load ${load()}`,
    );
  }
  const fastest = (side: "remote" | "local", what: "seconds" | "processor") =>
    Math.min(...rounds.map((round) => round[side][what]));
  const ratio = (what: "seconds" | "processor") =>
    (fastest("local", what) / fastest("remote", what)).toFixed(2);
  console.log(
    `HTTP / disk: ${ratio("seconds")}, by the reader's processor time ${ratio("processor")}; fastest of ${numRounds} rounds each`,
  );
}

/** Figures of {@link read1}. */
interface Read {
  readonly seconds: number;
  readonly processor: number;
  readonly megabytes: readonly number[];
}

function read1(source: string): Read {
  const path = fileURLToPath(new URL("./data/read.ts", import.meta.url));
  const printed = execFileSync(process.execPath, [path, source, cache, `${BATCH}`], { encoding: "utf8" });
  return JSON.parse(printed.trim().split("\n").at(-1) ?? "") as Read;
}

async function running(source: string): Promise<void> {
  const steps = Math.ceil(numSamples / BATCH);
  const checkpoint = { dir: saved, everySteps: Math.max(1, Math.floor(steps / 12)) };
  const config = { source, cache, log, batch: BATCH, epochSamples: numSamples };
  const memory: string[] = [];
  const run = async (options: object, killAt: number) => {
    const child = program("run", JSON.stringify({ options: { seed: SEED, checkpoint, ...options }, config }));
    const ended = once(child, "exit");
    for await (const line of linesOf(child)) {
      const { step, megabytes } = JSON.parse(line) as { step?: number; megabytes?: number };
      if (step !== undefined && step % (10 * Math.ceil(steps / 200)) === 0)
        memory.push(`${megabytes?.toFixed(0)}`);
      if (step !== undefined && step >= killAt) child.kill("SIGKILL");
    }
    const [code, signal] = (await ended) as [number | null, string | null];
    if (code !== 0 && signal !== "SIGKILL") throw new Error(`the run ended with ${code}`);
  };
  const begun = performance.now();
  await run({ ranks: 3 }, Math.floor(steps * 0.55));
  console.log(
    `3 ranks, killed at step ${Math.floor(steps * 0.55)} of ${steps}; memory ${memory.join(" ")} MB`,
  );
  memory.length = 0;
  await run({ ranks: 5, resume: saved }, Number.POSITIVE_INFINITY);
  console.log(`5 ranks, resumed; memory ${memory.join(" ")} MB`);
  console.log(`both together ${((performance.now() - begun) / 1_000).toFixed(0)} s`);
  await check(source);
}

/** Compares what the ranks trained on with the order of the seed: positions made again must have the same samples. */
async function check(source: string): Promise<void> {
  const records = await openRecords(source, {
    cacheDir: cache,
    map: ({ json }) => (json as { number: number }).number,
  });
  const numbers = new Float64Array(numSamples).fill(-1);
  let [numAgain, numOther] = [0, 0];
  for (const name of readdirSync(log)) {
    const bytes = readFileSync(join(log, name));
    const pairs = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    for (let at = 0; at < pairs.length; at += 2) {
      const [position = 0, number = 0] = pairs.subarray(at, at + 2);
      if (position >= numSamples) continue;
      if (numbers[position] !== -1) numAgain++;
      if (numbers[position] !== -1 && numbers[position] !== number) numOther++;
      numbers[position] = number;
    }
  }
  let numWrong = 0;
  for (let position = 0; position < numSamples; position++) {
    const expected = await records.at(records.indexAt(position, { seed: SEED, isShuffled: true }));
    if (numbers[position] !== expected) numWrong++;
  }
  const distinct = new Set(numbers).size;
  console.log(
    `${distinct} of ${numSamples} samples trained on${numbers.includes(-1) ? ", some never" : ", each once"}; ` +
      `${numWrong} not in the seed's order; ${numAgain} made again after the kill, ${numOther} of them otherwise`,
  );
  if (distinct !== numSamples || numWrong + numOther > 0) process.exitCode = 1;
}

function program(name: string, argument: string): ChildProcess {
  const path = fileURLToPath(new URL(`./data/${name}.ts`, import.meta.url));
  return spawn(process.execPath, [path, argument], { stdio: ["ignore", "pipe", "inherit"] });
}

function linesOf(child: ChildProcess) {
  return createInterface({ input: child.stdout as NodeJS.ReadableStream });
}
