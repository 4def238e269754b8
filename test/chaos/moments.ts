import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { listCheckpoints, openStorage, standingOf } from "../../src/library/checkpoint/index.ts";
import { verifyCheckpoint } from "../../src/library/checkpoint/reading/verify.ts";
import { exitCodes } from "../../src/tools/cli/main.ts";
import { lossesOf, type Workspace } from "../fixtures/run-tiny.ts";
import { atExit } from "./at-exit.ts";
import type { Chance } from "./chance.ts";
import { EditedFiles, type EditStrike, editStrikes, isOfFiles } from "./edited-files.ts";
import { leftovers, type Place, type Possessions, possessions } from "./leftovers.ts";
import { type ClockStrike, clockStrikes, isOfClock, MovedClock } from "./moved-clock.ts";
import { canPreload } from "./preloaded.ts";
import { type FolderStrike, folderStrikes, isOfFolder, Replacing } from "./replaced-folder.ts";
import { SmallDisk } from "./small-disk.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

/** How a run is asked or made to end, or is disturbed. */
const strikes = [
  "SIGKILL",
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
  "SIGUSR1",
  "SIGUSR2",
  "twice",
  "full disk",
  ...folderStrikes,
  ...editStrikes,
  ...(Object.keys(clockStrikes) as ClockStrike[]),
] as const;
type Strike = (typeof strikes)[number];
type StrikeOfProgram = Exclude<Strike, FolderStrike | EditStrike | ClockStrike>;

/** When: after a time since its start, or so long after an event of a kind. */
type Moment = { readonly after: string; readonly waitMs: number };

const STEPS = 40;
const SAVE_EVERY = 4;
/** How long what a dead program started may outlive it: a bound, reached only where something is left. */
const GRACE_MS = 15_000;
/** The layouts of runs: each with the losses of its own undisturbed run. */
const layouts = {
  threads: { ranks: 2, zero: 3 },
  processes: { ranks: 2, zero: 3, placement: "process" },
  pipeline: { ranks: 2, pp: 2, accumulation: 2 },
} as const;

/** The result of programs that were disturbed. */
export interface MomentsReport {
  /** Programs that were struck. */
  readonly numStruck: number;
  /** How many by strike, and by what the run had reported last. */
  readonly counts: ReadonlyMap<string, number>;
  /** Steps whose save was reported, over all programs. */
  readonly numAcknowledged: number;
  /** Programs that went on from a checkpoint. */
  readonly numResumed: number;
  readonly wrong: readonly string[];
}

/** How programs are struck. */
export interface MomentsOptions {
  readonly numMoments: number;
  readonly chance: Chance;
  /** Called after each moment, with all that was wrong so far. */
  readonly onMoment?: (numStruck: number, what: string, wrong: readonly string[]) => void;
}

/**
 * Starts `troupe run` again and again, each time going on where the last one was ended at a moment that chance chooses: by
 * `kill -9`, by signals, in a full disk; its folder is moved away, deleted, or replaced by that of another run; its job or its data is edited
 * while it runs, mostly with the death of a rank that would load it again; the clock is set. After each: what was reported as saved is
 * there and complete, every reported loss is that of the undisturbed run to the last bit, what the other run has saved is there as it was,
 * an edited file was not used, and no process is left; when a run has come to its end, nothing else of it is left either.
 */
export async function strikeAtMoments(
  workspace: Workspace,
  { numMoments, chance, onMoment = () => {} }: MomentsOptions,
): Promise<MomentsReport> {
  const tally = new Tally();
  for (let journey = 0; tally.numStruck < numMoments; journey++) {
    const layout = chance.pick(Object.keys(layouts) as (keyof typeof layouts)[]);
    const undisturbed = await undisturbedOf(workspace, layout);
    using disk = SmallDisk.mount(workspace.path(`moments-${journey}`));
    await travel(new Journey(workspace, layout, disk, undisturbed, tally), numMoments, chance, onMoment);
  }
  return tally;
}

/** One run, from its first step to its last, in as many programs as it takes. */
async function travel(
  journey: Journey,
  numMoments: number,
  chance: Chance,
  onMoment: NonNullable<MomentsOptions["onMoment"]>,
): Promise<void> {
  const { tally, disk } = journey;
  for (;;) {
    // The last program of a journey is left alone.
    const isStruck = tally.numStruck < numMoments && chance.below(8) > 0;
    const strike = isStruck ? chance.pick(strikes.filter((each) => canStrike(each, disk))) : undefined;
    const ended = await journey.go(strike, momentOf(chance), chance);
    if (ended.what !== undefined) onMoment(tally.numStruck, ended.what, tally.wrong);
    if (ended.isOver) break;
  }
  journey.checkNothingLeft();
}

function canStrike(strike: Strike, disk: SmallDisk): boolean {
  if (strike === "full disk") return disk.isSmall;
  return !isOfClock(strike) || canPreload;
}

function momentOf(chance: Chance): Moment {
  const after = chance.pick([
    "spawn",
    "run.started",
    "step.finished",
    "checkpoint.started",
    "checkpoint.started",
  ]);
  const waitMs =
    { spawn: 2_500, "run.started": 600, "step.finished": 150, "checkpoint.started": 40 }[after] ?? 0;
  return { after, waitMs: chance.below(waitMs) };
}

class Tally implements MomentsReport {
  numStruck = 0;
  numAcknowledged = 0;
  numResumed = 0;
  readonly counts = new Map<string, number>();
  readonly wrong: string[] = [];

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

/** The reports of one program. */
class Account {
  readonly losses: (readonly [step: number, lossNats: number])[] = [];
  /** The newest step whose save was reported. */
  saved = 0;
  /** The latest event. */
  last = "nothing";
  numFailedSaves = 0;
  isResumed = false;

  take(line: string): void {
    const event = JSON.parse(line) as { kind: string; step: number; lossNats: number };
    if (/^(run|step|checkpoint|actor|evaluation)\./.test(event.kind)) this.last = event.kind;
    if (event.kind === "step.finished") this.losses.push([event.step, event.lossNats]);
    if (event.kind === "checkpoint.saved") this.saved = event.step;
    if (event.kind === "checkpoint.failed") this.numFailedSaves += 1;
    if (event.kind === "run.resumed") this.isResumed = true;
  }
}

class Journey {
  readonly tally: Tally;
  readonly disk: SmallDisk;
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  readonly #place: Place & { readonly pids: Set<number> };
  readonly #before: Possessions;
  readonly #undisturbed: readonly number[];
  readonly #files: EditedFiles;
  readonly #clock: MovedClock;
  /** The folder that the job looks into for a rank's deed. */
  readonly #strikes: string;
  /** The newest step that any of its programs has reported as saved. */
  #acknowledged = 0;

  constructor(
    workspace: Workspace,
    layout: keyof typeof layouts,
    disk: SmallDisk,
    undisturbed: readonly number[],
    tally: Tally,
  ) {
    this.tally = tally;
    this.disk = disk;
    this.#undisturbed = undisturbed;
    this.#files = new EditedFiles(disk.folder, workspace.text);
    this.#clock = new MovedClock(workspace, basename(disk.folder));
    this.#strikes = `${disk.folder}-strikes`;
    mkdirSync(this.#strikes);
    const { text: data, job } = this.#files;
    const settings = { data, cache: workspace.path("cache"), strikes: this.#strikes, pauseMs: 10 };
    this.#args = [
      ...["run", job, "--json", "--steps", `${STEPS}`, "--threads-per-rank", "1", "--no-warm-standby"],
      ...["--checkpoint", this.#folder, "--checkpoint-every", `${SAVE_EVERY}`, "--checkpoint-keep-last", "3"],
      ...Object.entries(layouts[layout]).flatMap(([name, value]) => [`--${name}`, `${value}`]),
      ...Object.entries(settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]),
    ];
    const temporary = `${disk.folder}-temporary`;
    mkdirSync(temporary);
    const [name, value] = ["TROUPE_CHAOS", randomUUID()];
    this.#env = {
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      ...process.env,
      ...this.#clock.env,
      TMPDIR: temporary,
      [name]: value,
    };
    this.#place = { mark: `${name}=${value}`, folder: temporary, pids: new Set() };
    this.#before = possessions(this.#place);
  }

  get #folder(): string {
    return join(this.disk.folder, "run");
  }

  /**
   * Goes on until a strike ends it, or to its last step.
   * @returns whether that is made, and what befell it, if anything did
   */
  async go(
    strike: Strike | undefined,
    moment: Moment,
    chance: Chance,
  ): Promise<{ isOver: boolean; what?: string }> {
    const isKnown = this.#stepsIn().length > 0;
    const args = [...this.#args, ...(isKnown ? ["--resume", this.#folder] : [])];
    const program = spawn(process.execPath, [troupe, ...args], {
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#place.pids.add(program.pid as number);
    using _ended = atExit(() => program.kill("SIGKILL"));
    const account = new Account();
    const complained = program.stderr.toArray();
    const heard = this.#hear(program, account);
    let what: string | undefined;
    await using replacing = new Replacing(this.#folder);
    // Before it has taken the folder and read the files, there is none to be taken away, and any text is the one it begins with.
    const isOfItsFiles = strike !== undefined && (isOfFolder(strike) || isOfFiles(strike));
    const isTooEarly = isOfItsFiles && moment.after === "spawn";
    const { waitMs } = moment;
    const at = isTooEarly ? { after: "run.started", waitMs } : moment;
    if (strike !== undefined && (await this.#comes(program, at, account))) {
      what = `${strike} after ${account.last}`;
      this.tally.numStruck += 1;
      this.tally.count(strike);
      this.tally.count(`after ${account.last}`);
      if (isOfClock(strike)) this.#clock.strike(strike);
      else if (isOfFiles(strike)) await this.#edit(program, strike, chance);
      else if (isOfFolder(strike)) await this.#strikeFolder(program, strike, replacing, chance);
      else await this.#strike(program, strike, account, chance);
    }
    await heard;
    const ending = program.signalCode ?? program.exitCode;
    const goesOn = ending !== exitCodes.done && this.#stepsIn().length > 0;
    const taken = strike === "data edited" && goesOn ? this.#takenWhenEdited() : [];
    this.#files.restore();
    for (const deed of readdirSync(this.#strikes)) rmSync(join(this.#strikes, deed));
    const wrongInPlace = await replacing.end();
    if (strike === "folder deleted" && replacing.hasStruck) this.#acknowledged = account.saved = 0;
    this.disk.free();
    const error = (await complained).join("").trim().split("\n").slice(-3).join(" / ");
    const title = `${what ?? "nothing"}, with args ${args.slice(9).join(" ")}`;
    const wrong = await this.#judge(account, ending, strike, what !== undefined, error);
    for (const each of [...taken, ...wrongInPlace, ...wrong])
      this.tally.wrong.push(`${each} (${title}; ended by ${ending}: ${error.slice(0, 300)})`);
    if (account.isResumed) this.tally.numResumed += 1;
    return { isOver: ending === exitCodes.done, ...(what !== undefined && { what }) };
  }

  /** To be called when the run has come to its end, by itself. */
  checkNothingLeft(): void {
    // Descriptors are this program's own, and not of what it has started.
    const now = { ...possessions(this.#place), descriptors: [] };
    const left = leftovers(this.#before, now);
    const hidden = readdirSync(this.#folder).filter((entry) => entry.startsWith("."));
    for (const each of [...left, ...hidden.map((entry) => `in its folder: ${entry}`)])
      this.tally.wrong.push(`left when the run was over: ${each}`);
  }

  async #hear(program: ChildProcess, account: Account): Promise<void> {
    const closed = once(program, "close");
    for await (const line of createInterface({ input: program.stdout as NodeJS.ReadableStream })) {
      // The last line of a program that is killed may be half of one.
      if (line.startsWith("{") && line.endsWith("}")) account.take(line);
    }
    await closed;
  }

  /** @returns whether the program still ran when its moment came */
  async #comes(program: ChildProcess, { after, waitMs }: Moment, account: Account): Promise<boolean> {
    while (after !== "spawn" && account.last !== after && isAlive(program)) await pause(1);
    await pause(waitMs);
    return isAlive(program);
  }

  async #strike(
    program: ChildProcess,
    strike: StrikeOfProgram,
    account: Account,
    chance: Chance,
  ): Promise<void> {
    if (strike === "twice") {
      program.kill("SIGTERM");
      await pause(chance.below(300));
      program.kill("SIGINT");
    } else if (strike === "full disk") {
      this.disk.fill();
      const numBefore = account.numFailedSaves;
      for (
        let waited = 0;
        waited < 3_000 && account.numFailedSaves === numBefore && isAlive(program);
        waited += 10
      )
        await pause(10);
      if (chance.below(2) === 0) program.kill("SIGKILL");
      this.disk.free();
    } else program.kill(strike);
  }

  /** Edits a file of the run's, and mostly ends a rank, whose restart must not read it. */
  async #edit(program: ChildProcess, strike: EditStrike, chance: Chance): Promise<void> {
    const [isKilled, waitMs] = [chance.below(3) === 0, chance.below(1_500)];
    this.#files.strike(strike, chance);
    if (chance.below(4) > 0) writeFileSync(join(this.#strikes, `rank-${chance.below(2)}`), "exit");
    if (!isKilled) return;
    await pause(waitMs);
    program.kill("SIGKILL");
  }

  /** Tries to go on with edited data. @returns what is wrong: it must be refused by the name of the data */
  #takenWhenEdited(): string[] {
    const args = [troupe, ...this.#args, "--resume", this.#folder];
    const { status, stderr } = spawnSync(process.execPath, args, { env: this.#env, encoding: "utf8" });
    const isRefused =
      (status === exitCodes.failed || status === exitCodes.usage) && /data\.text|-text\.txt/.test(stderr);
    return isRefused
      ? []
      : [`edited data was taken, or refused without its name (${status}): ${stderr.slice(-300)}`];
  }

  /** The fault of its folder, after which the program runs on, mostly to its end. */
  async #strikeFolder(
    program: ChildProcess,
    strike: FolderStrike,
    replacing: Replacing,
    chance: Chance,
  ): Promise<void> {
    const [isKilled, waitMs] = [chance.below(3) === 0, chance.below(1_500)];
    await replacing.strike(strike, chance.below(2) === 0);
    if (!isKilled) return;
    await pause(waitMs);
    program.kill("SIGKILL");
  }

  async #judge(
    account: Account,
    ending: NodeJS.Signals | number | null,
    strike: Strike | undefined,
    isStruck: boolean,
    error: string,
  ): Promise<string[]> {
    const wrong: string[] = [];
    const others = account.losses.filter(([step, loss]) => !Object.is(loss, this.#undisturbed[step - 1]));
    if (others.length > 0) wrong.push(`other losses: ${JSON.stringify(others.slice(0, 3))}`);
    this.tally.numAcknowledged += Number(account.saved > 0);
    this.#acknowledged = Math.max(this.#acknowledged, account.saved, stepSavedBy(error));
    wrong.push(...(await this.#wrongInFolder()));
    if (!isExpected(ending, isStruck ? strike : undefined))
      wrong.push("ended otherwise than it was asked to");
    const left = await this.#processesLeft();
    if (left.length > 0) wrong.push(`processes left: ${left}`);
    return wrong;
  }

  async #wrongInFolder(): Promise<string[]> {
    const storage = await openStorage(this.#folder);
    const listed = await listCheckpoints(storage);
    const wrong = listed.flatMap(({ name, damage, foreign }) =>
      damage === undefined && !foreign ? [] : [`${name}: ${damage?.message ?? "of another run"}`],
    );
    for (const { name } of listed)
      for (const { path, message } of await verifyCheckpoint(storage, name))
        wrong.push(`${path}: ${message}`);
    const newest = listed[0]?.step ?? 0;
    if (newest < this.#acknowledged)
      wrong.push(`step ${this.#acknowledged} was reported saved, ${newest} is there`);
    const standing = await standingOf(storage, listed[0]?.savedAt);
    if (standing?.state === "running") wrong.push(`its folder is still held by ${standing.holder.pid}`);
    return wrong;
  }

  async #processesLeft(): Promise<readonly string[]> {
    const begin = performance.now();
    for (;;) {
      const { processes } = possessions(this.#place);
      if (processes.length === 0 || performance.now() - begin > GRACE_MS) return processes;
      await pause(20);
    }
  }

  #stepsIn(): string[] {
    return existsSync(this.#folder)
      ? readdirSync(this.#folder).filter((entry) => /^(step|\.replaced-step)-/.test(entry))
      : [];
  }
}

/** The losses of the undisturbed run; processes have those of threads. */
function undisturbedOf(workspace: Workspace, layout: keyof typeof layouts): Promise<readonly number[]> {
  const options = layout === "processes" ? layouts.threads : layouts[layout];
  return lossesOf(workspace, { ...options, steps: STEPS });
}

/** The step that an interrupted run says it has saved; 0 for any other last word. */
function stepSavedBy(error: string): number {
  return Number(/after step (\d+), whose state is saved/.exec(error)?.[1] ?? 0);
}

function isExpected(ending: NodeJS.Signals | number | null, strike: Strike | undefined): boolean {
  if (ending === exitCodes.done) return true;
  switch (strike) {
    case undefined:
    case "clock set back":
    case "clock set ahead":
      return false;
    case "SIGKILL":
    case "job edited":
      return ending === "SIGKILL";
    case "folder moved":
    case "folder deleted":
    case "folder replaced":
      // Its last save fails, or it finds nothing to begin with.
      return ending === "SIGKILL" || ending === exitCodes.failed;
    case "full disk":
      // A run that begins, or ends, without room for its state fails, and says so.
      return ending === "SIGKILL" || ending === exitCodes.failed;
    case "data edited":
      // Its restart, or it before its first step, finds other data or none, and names it.
      return ending === "SIGKILL" || ending === exitCodes.failed || ending === exitCodes.usage;
    case "twice":
      // The one that is heard second ends it at once, unless the first was faster, or came before anyone listened.
      return [130, 143, "SIGTERM", "SIGINT", exitCodes.interrupted].includes(ending as number);
    default:
      // Before the program has loaded, signals do what they always do.
      return ending === exitCodes.interrupted || ending === strike;
  }
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
