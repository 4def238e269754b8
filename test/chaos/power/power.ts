import { mkdirSync, rmSync } from "node:fs";
import { TroupeError } from "../../../src/entries/index.ts";
import { openCheckpoint } from "../../../src/library/checkpoint/reading/open-checkpoint.ts";
import { LocalFolder } from "../../../src/library/checkpoint/storage/local-folder.ts";
import { Disk, materialize } from "./disk.ts";
import type { Operation } from "./operation.ts";
import { record } from "./record.ts";

/** Which saves, and how thoroughly. */
export interface PowerOptions {
  readonly keep: number | "all";
  readonly steps: readonly number[];
  /** Every n-th state is tried; 1: all. */
  readonly every: number;
  /** Selects the operations that happened: a disk without some of them shows why they are needed. Default: all. */
  readonly believe?: (operation: Operation) => boolean;
}

/** The findings on disks after power cuts. */
export interface PowerReport {
  readonly numOperations: number;
  readonly numStates: number;
  /** States in which an acknowledged save is gone, or the newest checkpoint is not complete. */
  readonly lost: readonly string[];
}

const program = new URL("./save-steps.ts", import.meta.url).pathname;

/**
 * Has a program save steps, and cuts the power after each of its operations: in every state that the disk may then be in,
 * the last step it said was saved, or a later one, must open and read completely; before and after leftovers are swept.
 * @param folder - where to work
 */
export async function cutPower(folder: string, options: PowerOptions): Promise<PowerReport> {
  const { keep, steps, every, believe = () => true } = options;
  const recorded = `${folder}/recorded`;
  const found = `${folder}/found`;
  mkdirSync(recorded, { recursive: true });
  const operations = record(recorded, [program, recorded, String(keep), ...steps.map(String)]);
  const disk = new Disk();
  const lost: string[] = [];
  let numStates = 0;
  let acknowledged: number | undefined;
  for (const [index, operation] of operations.entries()) {
    if (believe(operation)) disk.do(operation);
    if (operation.kind === "acknowledge") acknowledged = Number(operation.text.split(" ")[1]);
    for (const state of disk.states()) {
      if (numStates++ % every !== 0) continue;
      materialize(state, found);
      const fault = (await faultIn(found, acknowledged)) ?? (await sweptFault(found, acknowledged));
      if (fault !== undefined) lost.push(`after operation ${index} (${operation.kind}): ${fault}`);
      rmSync(found, { recursive: true });
    }
  }
  return { numOperations: operations.length, numStates: Math.ceil(numStates / every), lost };
}

async function sweptFault(folder: string, acknowledged: number | undefined): Promise<string | undefined> {
  await new LocalFolder(folder).sweep();
  const fault = await faultIn(folder, acknowledged);
  return fault === undefined ? undefined : `swept: ${fault}`;
}

/** The fault of a disk that must hold `acknowledged`, if it has one. */
async function faultIn(folder: string, acknowledged: number | undefined): Promise<string | undefined> {
  try {
    await using checkpoint = await openCheckpoint(folder);
    const { step } = checkpoint.state;
    if (step < (acknowledged ?? 0)) return `step ${acknowledged} was acknowledged, ${step} is there`;
    for (const name of checkpoint.names) await checkpoint.read(name, new Uint8Array(160));
    return undefined;
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (acknowledged === undefined && error.code === "CHECKPOINT_MISSING") return undefined;
    return error.message;
  }
}
