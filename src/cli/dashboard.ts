import { dirname } from "node:path";
import type { Command } from "commander";
import { type CheckpointStorage, openStorage, standingOf } from "../checkpoint/index.ts";
import { Dashboard, type FileReader, findEventFile, followFile } from "../dashboard/index.ts";
import type { TroupeEvent } from "../events/index.ts";
import { number } from "./flags.ts";

/** Says where to look: on standard error, since standard output is for results. */
export function printAddress(url: string | undefined): void {
  if (url !== undefined) process.stderr.write(`dashboard: ${url}\n`);
}

/** Adds `troupe dashboard PATH`. */
export function addDashboardCommand(program: Command): void {
  program
    .command("dashboard")
    .description("show a run, also one that goes on or is over, from the events it wrote")
    .argument("<path>", "the folder of a run, or its file of events: FILE.jsonl")
    .option("--port <port>", "where to serve it (default: 4747, or any free port)", number)
    .option("--host <address>", "open it to other machines too, by this address of this one")
    .action(show);
}

interface ShowFlags {
  readonly port?: number;
  readonly host?: string;
}

/** Until it is interrupted. */
async function show(path: string, { port, host }: ShowFlags): Promise<void> {
  const file = await findEventFile(path);
  await using dashboard = await Dashboard.open({
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
  });
  printAddress(dashboard.url);
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  await followFile(file, new Watched(dashboard, await openStorage(dirname(file))), interrupted.signal);
}

const LOOK_MS = 1_000;

/** A record on its way to the page, which is told too where its run is gone from the folder without a word. */
class Watched implements FileReader {
  readonly #dashboard: Dashboard;
  readonly #folder: CheckpointStorage;
  #heardAtMs = Number.NaN;
  #lookedAtMs = 0;

  constructor(dashboard: Dashboard, folder: CheckpointStorage) {
    this.#dashboard = dashboard;
    this.#folder = folder;
  }

  write(event: TroupeEvent): void {
    this.#heardAtMs = event.timeMs;
    this.#dashboard.write(event);
  }

  reset(): void {
    this.#dashboard.reset();
  }

  async wait(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - this.#lookedAtMs < LOOK_MS) return;
    this.#lookedAtMs = nowMs;
    const standing = await standingOf(this.#folder, undefined).catch(() => undefined);
    if (standing?.state === "silent") this.#dashboard.fallSilent(this.#heardAtMs);
  }
}
