import { dirname, join } from "node:path";
import type { Command } from "commander";
import { makeOwnFolder, userCache, whyUnsafe } from "../../errors/untrusted/index.ts";
import { Dashboard, type FileReader, findEventFile, followFile } from "../../job/dashboard/index.ts";
import type { TroupeEvent } from "../../job/events/index.ts";
import { type CheckpointStorage, openStorage, standingOf } from "../../library/checkpoint/index.ts";
import { number } from "./flags.ts";

/**
 * Prints the dashboard's address to standard error, since standard output is for results. Only a terminal shows the token: other
 * output, such as a job's log, may have other readers. There it prints a command that shows the address with the token.
 * @param tokenFile - readable by its owner only
 */
export function printAddress(url: string | undefined, tokenFile: string | undefined): void {
  if (url === undefined) return;
  const [page] = url.split("#");
  const how =
    tokenFile === undefined
      ? "needs a token, which is shown on a terminal only (--dashboard-token-file FILE keeps it in a file)"
      : `needs a token; for its address with the token: echo "${page}#token=$(cat '${tokenFile}')"`;
  process.stderr.write(process.stderr.isTTY ? `dashboard: ${url}\n` : `dashboard: ${page} ${how}\n`);
}

/** Adds `troupe dashboard PATH`. */
export function addDashboardCommand(program: Command): void {
  program
    .command("dashboard")
    .description("show a run, finished or not, from the events it wrote")
    .argument("<path>", "folder of a run, or its events: FILE.jsonl")
    .option("--port <port>", "port to serve it on (default: 4747, or any free port)", number)
    .option("--host <address>", "address to serve it on, to let other machines in (default: 127.0.0.1)")
    .action(show);
}

interface ShowFlags {
  readonly port?: number;
  readonly host?: string;
}

/** Serves the dashboard until interrupted. */
async function show(path: string, { port, host }: ShowFlags): Promise<void> {
  const file = await findEventFile(path);
  const tokenFile = ownTokenFile();
  await using dashboard = await Dashboard.open({
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
  });
  printAddress(dashboard.url, tokenFile);
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());
  await followFile(file, new Watched(dashboard, await openStorage(dirname(file))), interrupted.signal);
}

/** The token's file, not in the run's folder, which may be another user's; undefined for a user without a folder. */
function ownTokenFile(): string | undefined {
  const { XDG_RUNTIME_DIR: runtime } = process.env;
  if (runtime !== undefined && whyUnsafe(runtime) === undefined) return join(runtime, TOKEN_NAME);
  return makeOwnFolder(userCache()) === undefined ? join(userCache(), TOKEN_NAME) : undefined;
}

const TOKEN_NAME = "troupe-dashboard.token";
const LOOK_MS = 1_000;

/** Forwards a run's events to the page, and reports to it when the run has ended without a record. */
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
