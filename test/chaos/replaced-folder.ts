import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type CheckpointStorage,
  LocalFolder,
  listCheckpoints,
  ownerOf,
  type RunRecord,
  stepFolder,
  takeEmpty,
  verifyCheckpoint,
  writeCheckpoint,
} from "../../src/library/checkpoint/index.ts";
import { contentOf } from "../checkpoint/content.ts";

/** Faults of a running run's folder. */
export const folderStrikes = ["folder moved", "folder deleted", "folder replaced"] as const;
export type FolderStrike = (typeof folderStrikes)[number];

/** Whether a strike hits a run's folder, and not its program. */
export function isOfFolder(strike: string): strike is FolderStrike {
  return (folderStrikes as readonly string[]).includes(strike);
}

/** Saves of the other run: as often as the first run saves, so that steps have the same names. */
const EVERY = 4;
const NUM_SAVES = 10;
const PAUSE_MS = 40;

const another: RunRecord = {
  id: "22222222-0000-4000-8000-000000000000",
  job: "another.ts",
  startedAt: "2026-11-22T11:00:00.000Z",
};

/** Takes the folder of a living run away, and puts another run's in its place, which saves there. */
export class Replacing implements AsyncDisposable {
  readonly #folder: string;
  readonly #aside: string;
  #strike: FolderStrike | undefined;
  #saving: Promise<void> = Promise.resolve();
  #isOver = false;
  /** The steps that the other run has saved. */
  readonly #acknowledged: number[] = [];

  constructor(folder: string) {
    this.#folder = folder;
    this.#aside = `${folder}-aside`;
  }

  /** Whether there was a folder to be struck. */
  get hasStruck(): boolean {
    return this.#strike !== undefined;
  }

  /** @param stays - whether the other run holds the folder until the first one has ended */
  async strike(strike: FolderStrike, stays: boolean): Promise<void> {
    if (!existsSync(this.#folder)) return;
    this.#strike = strike;
    // A file written meanwhile makes the removal of a folder fail that was empty a moment before.
    if (strike === "folder deleted") rmSync(this.#folder, { recursive: true, maxRetries: 20, retryDelay: 5 });
    else renameSync(this.#folder, this.#aside);
    if (strike !== "folder replaced") return;
    const begun = Promise.withResolvers<void>();
    this.#saving = this.#saveAsAnother(stays, begun.resolve);
    await Promise.race([begun.promise, this.#saving]);
  }

  /**
   * To be called when the first run has ended: puts its folder back.
   * @returns what is not as it must be where the folder was
   */
  async end(): Promise<string[]> {
    this.#isOver = true;
    await this.#saving;
    if (this.#strike === undefined) return [];
    const wrong = this.#strike === "folder replaced" ? await this.#wrongOfAnother() : [];
    if (this.#strike !== "folder replaced" && existsSync(this.#folder))
      wrong.push(`made again where the folder was: ${readdirSync(this.#folder)}`);
    rmSync(this.#folder, { recursive: true, force: true });
    if (this.#strike !== "folder deleted") renameSync(this.#aside, this.#folder);
    return wrong;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#saving;
  }

  async #saveAsAnother(stays: boolean, begun: () => void): Promise<void> {
    const storage = new LocalFolder(this.#folder);
    await using _lock = await storage.lock("another run");
    await takeEmpty(storage, another);
    for (let save = 1; save <= NUM_SAVES; save++) {
      await this.#save(storage, save * EVERY);
      begun();
      await pause(PAUSE_MS);
    }
    while (stays && !this.#isOver) await pause(PAUSE_MS);
  }

  async #save(storage: CheckpointStorage, step: number): Promise<void> {
    const content = contentOf(step);
    await writeCheckpoint(storage, { ...content, state: { ...content.state, run: { ...another } } });
    this.#acknowledged.push(step);
  }

  async #wrongOfAnother(): Promise<string[]> {
    const storage = new LocalFolder(this.#folder);
    const listed = await listCheckpoints(storage);
    const wrong: string[] = [];
    const ofAnother = listed.filter(({ run }) => run?.id === another.id).map(({ step }) => step);
    if (ofAnother.toReversed().join() !== this.#acknowledged.join())
      wrong.push(`the other run has saved ${this.#acknowledged}, of which ${ofAnother} are there`);
    for (const { name } of listed)
      for (const { path, message } of await verifyCheckpoint(storage, name))
        wrong.push(`${path}: ${message}`);
    const last = this.#acknowledged.at(-1) ?? 0;
    if ((await storage.latest()) !== stepFolder(last)) wrong.push(`latest names ${await storage.latest()}`);
    if ((await ownerOf(storage))?.id !== another.id)
      wrong.push("run.json is of the run that was there before");
    const known = new Set(["latest", "run.json", ...this.#acknowledged.map(stepFolder)]);
    const more = readdirSync(this.#folder).filter((entry) => !known.has(entry));
    if (more.length > 0)
      wrong.push(`in the other run's folder: ${more.map((entry) => join(this.#folder, entry))}`);
    return wrong;
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
