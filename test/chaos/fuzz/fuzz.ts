import { TroupeError } from "../../../src/entries/index.ts";
import type { Chance } from "../chance.ts";
import { Coverage } from "./coverage.ts";
import type { Target } from "./target.ts";

/** The result of a fuzz run. */
export interface FuzzReport {
  readonly target: string;
  readonly numInputs: number;
  readonly numKept: number;
  readonly numCovered: number;
  /** The longest computing time of one input, in ms. */
  readonly slowestMs: number;
  /** Inputs that were not taken or refused as they should be, in base64, and what happened. */
  readonly findings: readonly { readonly input: string; readonly what: string }[];
}

/** How long a run goes on: by the clock, or by inputs, which a seed repeats. */
export type Until = { readonly durationMs: number } | { readonly numInputs: number };

/** Inputs between two looks at what was covered: a look costs more than an input. */
const BATCH = 64;
/** No parser may compute for longer over a few kilobytes, in ms; the clock would blame it for what else the machine does. */
const SLOW_MS = 1_000;
const MAX_BYTES = 1 << 14;
const MAX_FINDINGS = 5;

/**
 * Gives a parser inputs that are made of its corpus by small changes. Who reaches code that no other has joins the corpus.
 */
export async function fuzz(target: Target, chance: Chance, until: Until): Promise<FuzzReport> {
  using coverage = new Coverage(target.sources);
  const corpus = [...target.corpus];
  const findings: FuzzReport["findings"][number][] = [];
  const begin = performance.now();
  let numInputs = 0;
  let slowestMs = 0;
  const run = async (input: Uint8Array): Promise<void> => {
    const before = process.cpuUsage();
    const what = await faultOf(target, input);
    const { user, system } = process.cpuUsage(before);
    const tookMs = (user + system) / 1_000;
    slowestMs = Math.max(slowestMs, tookMs);
    numInputs += 1;
    const finding = what ?? (tookMs > SLOW_MS ? `took ${tookMs.toFixed(0)} ms` : undefined);
    if (finding !== undefined) findings.push({ input: Buffer.from(input).toString("base64"), what: finding });
  };
  for (const input of target.corpus) await run(input);
  coverage.hasNew();
  const isOver = (): boolean =>
    findings.length >= MAX_FINDINGS ||
    ("numInputs" in until ? numInputs >= until.numInputs : performance.now() - begin >= until.durationMs);
  while (!isOver()) {
    const batch = Array.from({ length: BATCH }, () => changed(chance.pick(corpus), corpus, chance));
    for (const input of batch) await run(input);
    if (!coverage.hasNew()) continue;
    // Which of them it was does not matter enough to run them all again: a few more in the corpus do no harm.
    corpus.push(...batch.filter((input) => input.length <= MAX_BYTES).slice(0, 8));
  }
  return {
    target: target.name,
    numInputs,
    numKept: corpus.length,
    numCovered: coverage.size,
    slowestMs,
    findings,
  };
}

/** @returns what is wrong with how an input was taken, if anything */
export async function faultOf(target: Target, input: Uint8Array): Promise<string | undefined> {
  try {
    await target.take(input);
  } catch (error) {
    if (error instanceof TroupeError && target.refusals.includes(error.code)) return undefined;
    return `${(error as Error).name}: ${(error as Error).message}`.slice(0, 300);
  }
  return undefined;
}

const telling = [0, 1, 0x7f, 0x80, 0xff, ...Buffer.from('{}[]",:\\-.eE0199_ \n')];

/** One to eight changes: bits, telling bytes, stretches left out, doubled, or taken from another input. */
function changed(from: Uint8Array, corpus: readonly Uint8Array[], chance: Chance): Uint8Array {
  let bytes = Buffer.from(from);
  for (let count = 1 + chance.below(8); count > 0; count--) bytes = changedOnce(bytes, corpus, chance);
  return bytes;
}

function changedOnce(
  bytes: Buffer<ArrayBuffer>,
  corpus: readonly Uint8Array[],
  chance: Chance,
): Buffer<ArrayBuffer> {
  const at = chance.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + chance.below(16));
  const [head, tail] = [bytes.subarray(0, at), bytes.subarray(end)];
  const other = chance.pick(corpus);
  const from = chance.below(other.length + 1);
  switch (chance.below(6)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = (copy[at] as number) ^ (1 << chance.below(8));
      return copy;
    }
    case 1:
      return Buffer.concat([head, Buffer.of(chance.pick(telling)), bytes.subarray(at)]);
    case 2:
      return Buffer.concat([head, tail]);
    case 3:
      return Buffer.concat([head, bytes.subarray(at, end), bytes.subarray(at)]);
    case 4:
      return Buffer.concat([head, other.subarray(from, from + 1 + chance.below(64)), tail]);
    default:
      return Buffer.concat([
        head,
        Buffer.of(chance.pick(telling)),
        bytes.subarray(Math.min(at + 1, bytes.length)),
      ]);
  }
}
