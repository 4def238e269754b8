import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseZeroLevel } from "../../src/compute/parallel/index.ts";
import { temporaryRoot } from "../../src/errors/untrusted/index.ts";
import { type BenchRow, NUM_RANKS, type Sizes, type Subject } from "./dimensions.ts";
import { type MeasureOptions, meanOf, type PeerResult, WARMUP_STEPS } from "./measure.ts";
import { peerScript } from "./peer-script.ts";

/**
 * Measures the same row in stock PyTorch: as many processes over gloo, one thread each, with the same sizes, samples
 * and steps.
 * @param python - an interpreter with torch
 * @throws where it does not run
 */
export async function measurePeer(
  python: string,
  subject: Subject,
  { options }: BenchRow,
  size: Sizes,
  { windows, stepsOfWindow }: MeasureOptions,
): Promise<PeerResult> {
  const { tp = 1, pp = 1, zero = 0, precision } = options;
  const folder = mkdtempSync(join(temporaryRoot(), "troupe-bench-"));
  const asked = JSON.stringify({
    ...{
      subject,
      size,
      ranks: NUM_RANKS,
      zero: parseZeroLevel(zero),
      tp,
      pp,
      isMixed: precision !== undefined,
    },
    ...{ warmupSteps: WARMUP_STEPS, windows, stepsOfWindow },
    store: String(pathToFileURL(join(folder, "store"))),
  });
  const children = Array.from({ length: NUM_RANKS }, (_, rank) =>
    spawn(python, ["-c", peerScript, asked, `${rank}`], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  try {
    const [first = ""] = await Promise.all(children.map((child) => outputOf(python, child)));
    const answer = JSON.parse(first) as
      | { readonly torch: string; readonly none: string }
      | { readonly torch: string; readonly samplesPerSecond: readonly number[]; readonly peakBytes: number };
    return "none" in answer ? answer : { ...answer, samplesPerSecond: meanOf(answer.samplesPerSecond) };
  } finally {
    // If one failed, the others wait for ever.
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function outputOf(python: string, child: ChildProcess): Promise<string> {
  let [out, err] = ["", ""];
  child.stdout?.on("data", (data) => {
    out += data;
  });
  child.stderr?.on("data", (data) => {
    err += data;
  });
  const failed = once(child, "error").then(([error]) => (error as Error).message);
  const ended = once(child, "close").then(([code]) => (code === 0 ? "" : err.trim().split("\n").at(-1)));
  const why = await Promise.race([failed, ended]);
  if (why === "") return out;
  const got = why || "an exit without an error message";
  throw new Error(
    `[bench] expected ${python} to train with torch, got ${got} (--peer names a Python with PyTorch)`,
  );
}
