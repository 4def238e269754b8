import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { TroupeError } from "../../src/entries/index.ts";
import { type Damage, verifyCheckpoint } from "../../src/library/checkpoint/reading/verify.ts";
import { writeCheckpoint } from "../../src/library/checkpoint/saving/save-checkpoint.ts";
import { LocalFolder } from "../../src/library/checkpoint/storage/local-folder.ts";
import type { Chance } from "./chance.ts";

/** How one kind of damage was seen. */
export interface Sightings {
  readonly kind: string;
  readonly numTried: number;
  /** Faults after which nothing was found, or another file was blamed, or tensor or place were not named. */
  readonly missed: readonly string[];
}

/** How much is damaged. */
export interface DamageOptions {
  /** Damages every n-th bit of headers and manifest, and tries every n-th truncation; 1: all. */
  readonly every: number;
  readonly numDataBits: number;
  readonly chance: Chance;
}

const page = 4096;
const stepName = "step-000001";

/** Damages a checkpoint of several files in every way that disks and people do, and looks whether it is seen and named. */
export async function damageEverywhere(folder: string, options: DamageOptions): Promise<Sightings[]> {
  mkdirSync(folder, { recursive: true });
  await writeCheckpoint(folder, contentOf(options.chance), { maxFileBytes: 300_000, chunkBytes: 1 << 16 });
  const step = new Step(folder);
  return [
    await bitsOfText(step, "manifest.json", options.every),
    ...(await headerBits(step, options.every)),
    await dataBits(step, options),
    await truncations(step, options.every),
    await swaps(step),
    await zeroedPages(step, options),
    await missingFiles(step),
  ];
}

/** The checkpoint, its files as they should be, and what is found where one is not. */
class Step {
  readonly path: string;
  readonly shards: readonly string[];
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly #storage: LocalFolder;

  constructor(folder: string) {
    this.#storage = new LocalFolder(folder);
    this.path = join(folder, stepName);
    const names = readdirSync(this.path);
    this.shards = names.filter((name) => name.endsWith(".safetensors")).toSorted();
    this.files = new Map(names.map((name) => [name, readFileSync(join(this.path, name))]));
  }

  bytes(name: string): Uint8Array {
    return this.files.get(name) as Uint8Array;
  }

  /** The byte at which a shard's tensors begin. */
  dataBegin(name: string): number {
    const bytes = this.bytes(name);
    return 8 + Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  }

  /** Does damage, looks for it, and mends it. */
  async tell(damage: () => void, mend: () => void): Promise<readonly Damage[] | TroupeError> {
    damage();
    try {
      return await verifyCheckpoint(this.#storage, stepName);
    } catch (error) {
      if (error instanceof TroupeError) return error;
      throw error;
    } finally {
      mend();
    }
  }

  write(name: string, bytes: Uint8Array): void {
    writeFileSync(join(this.path, name), bytes);
  }

  async tellFlip(name: string, bit: number): Promise<readonly Damage[] | TroupeError> {
    const good = this.bytes(name);
    const bad = Uint8Array.from(good);
    bad[bit >> 3] = (bad[bit >> 3] as number) ^ (1 << (bit & 7));
    return this.tell(
      () => this.write(name, bad),
      () => this.write(name, good),
    );
  }
}

async function bitsOfText(step: Step, name: string, every: number): Promise<Sightings> {
  const tally = new Tally(`each ${every === 1 ? "" : `${every}th `}bit of ${name}`);
  for (let bit = 0; bit < 8 * step.bytes(name).length; bit += every) {
    tally.saw(`bit ${bit}`, await step.tellFlip(name, bit), name);
  }
  return tally;
}

async function headerBits(step: Step, every: number): Promise<Sightings[]> {
  const tally = new Tally(`each ${every === 1 ? "" : `${every}th `}bit of every header`);
  for (const name of step.shards) {
    for (let bit = 0; bit < 8 * step.dataBegin(name); bit += every) {
      tally.saw(`${name} bit ${bit}`, await step.tellFlip(name, bit), name);
    }
  }
  return [tally];
}

async function dataBits(step: Step, { numDataBits, chance }: DamageOptions): Promise<Sightings> {
  const tally = new Tally(`${numDataBits} random bits of data`);
  for (let count = 0; count < numDataBits; count++) {
    const name = chance.pick(step.shards);
    const begin = step.dataBegin(name);
    const at = begin + chance.below(step.bytes(name).length - begin);
    const complaint = await step.tellFlip(name, 8 * at + chance.below(8));
    // The first chunk holds the header too: there it is the header that is found damaged.
    tally.saw(`${name} byte ${at}`, complaint, name, at < 1 << 16 ? undefined : at);
  }
  return tally;
}

async function truncations(step: Step, every: number): Promise<Sightings> {
  const tally = new Tally(`truncations at each ${every === 1 ? "" : `${every}th `}4 KiB`);
  for (const [name, good] of step.files) {
    for (let size = 0; size < good.length; size += page * Math.min(every, 16)) {
      const complaint = await step.tell(
        () => truncateSync(join(step.path, name), size),
        () => step.write(name, good),
      );
      tally.saw(`${name} at ${size}`, complaint, name);
    }
  }
  return tally;
}

async function swaps(step: Step): Promise<Sightings> {
  const tally = new Tally("shards swapped");
  for (const [index, left] of step.shards.entries()) {
    for (const right of step.shards.slice(index + 1)) {
      const swap = (): void => {
        const aside = join(step.path, "aside");
        renameSync(join(step.path, left), aside);
        renameSync(join(step.path, right), join(step.path, left));
        renameSync(aside, join(step.path, right));
      };
      tally.saw(`${left} and ${right}`, await step.tell(swap, swap), left);
    }
  }
  return tally;
}

async function zeroedPages(step: Step, { every }: DamageOptions): Promise<Sightings> {
  const tally = new Tally(`each ${every === 1 ? "" : `${every}th `}page zeroed`);
  for (const name of step.shards) {
    const good = step.bytes(name);
    for (let begin = 0; begin < good.length; begin += page * Math.min(every, 16)) {
      const bad = Uint8Array.from(good).fill(0, begin, begin + page);
      const complaint = await step.tell(
        () => step.write(name, bad),
        () => step.write(name, good),
      );
      tally.saw(`${name} at ${begin}`, complaint, name, begin < 1 << 16 ? undefined : begin);
    }
  }
  return tally;
}

async function missingFiles(step: Step): Promise<Sightings> {
  const tally = new Tally("files missing");
  for (const [name, good] of step.files) {
    const complaint = await step.tell(
      () => rmSync(join(step.path, name)),
      () => step.write(name, good),
    );
    tally.saw(name, complaint, name);
  }
  return tally;
}

/** Counts what was seen. */
class Tally implements Sightings {
  readonly kind: string;
  readonly missed: string[] = [];
  numTried = 0;

  constructor(kind: string) {
    this.kind = kind;
  }

  /** @param at - where the damage is, where tensor and chunk must be named */
  saw(what: string, complaint: readonly Damage[] | TroupeError, file: string, at?: number): void {
    this.numTried += 1;
    if (complaint instanceof TroupeError) {
      this.missed.push(`${what}: thrown ${complaint.message}`);
      return;
    }
    const found = complaint.find(({ path }) => path.endsWith(`/${file}`));
    const chunk = 1 << 16;
    const isPlaced =
      at === undefined ||
      complaint.some(
        ({ path, tensor, offsetBytes = -1 }) =>
          path.endsWith(`/${file}`) && tensor !== undefined && offsetBytes <= at && at < offsetBytes + chunk,
      );
    if (found === undefined || !isPlaced) this.missed.push(`${what}: ${JSON.stringify(complaint)}`);
  }
}

/** Random numbers, so that no two pages are alike. */
function contentOf(chance: Chance): Parameters<typeof writeCheckpoint>[1] {
  const source = (name: string) => {
    const numbers = Uint32Array.from({ length: 60_000 }, () => chance.next() * 2 ** 32);
    return { name, dtype: "F32" as const, shape: [200, 300], read: () => new Uint8Array(numbers.buffer) };
  };
  return {
    state: { step: 1, seed: 7, samplesConsumed: 4, job: {}, tokenizer: null },
    config: { model_type: "gpt2" },
    weights: ["h.0.weight", "h.1.weight", "h.2.weight"].map(source),
    optimizer: ["exp_avg.h.0.weight", "exp_avg.h.1.weight"].map(source),
  };
}
