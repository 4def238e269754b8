import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import type { TroupeEvent } from "../../src/job/events/index.ts";
import { tinyJob, type Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

/** A port without a listener. */
export async function freePort(): Promise<number> {
  const server = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Resolves at the first connection to this port, at which nothing listens before or after. */
export async function untilCalled(port: number): Promise<void> {
  const server = createServer().listen({ host: "127.0.0.1", port });
  const [caller] = (await once(server, "connection")) as [Socket];
  caller.destroy();
  server.close();
  await once(server, "close");
}

/** Resolves once a process listens at this port. */
export async function untilAnswered(port: number): Promise<void> {
  for (;;) {
    const caller = connect({ host: "127.0.0.1", port });
    try {
      await once(caller, "connect");
      return;
    } catch {
      // Nothing listens yet.
    } finally {
      caller.destroy();
    }
  }
}

/** A `troupe run` that a launcher has started, as it is seen from outside. */
export class LaunchedRun {
  readonly events: TroupeEvent[] = [];
  readonly child: ChildProcess;
  err = "";
  readonly #ended: Promise<number | null>;
  #waiting: { readonly matches: (event: TroupeEvent) => boolean; readonly resolve: () => void }[] = [];

  /** @param command - the command before `troupe run`'s own arguments; Node by default */
  constructor(
    workspace: Workspace,
    env: Readonly<Record<string, string>>,
    args: readonly string[],
    command: readonly string[] = [process.execPath],
  ) {
    const [program = "", ...before] = command;
    const data = ["--set", `data=${workspace.text}`, "--set", `cache=${workspace.path("cache")}`];
    const job = fileURLToPath(tinyJob);
    this.child = spawn(program, [...before, troupe, "run", job, ...data, "--json", ...args], {
      cwd: workspace.folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let rest = "";
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("{")) this.#hear(JSON.parse(line) as TroupeEvent);
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.err += text;
    });
    this.#ended = once(this.child, "close").then(([code]) => code as number | null);
  }

  /** Resolves with the exit code when it has ended. */
  get ended(): Promise<number | null> {
    return this.#ended;
  }

  /** The last loss that was reported for each step. */
  get losses(): number[] {
    const losses: number[] = [];
    for (const event of this.events)
      if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
    return losses;
  }

  /** Resolves once such an event has been reported; rejects if the run ends before. */
  async until(matches: (event: TroupeEvent) => boolean): Promise<void> {
    if (this.events.some(matches)) return;
    const heard = new Promise<void>((resolve) => this.#waiting.push({ matches, resolve }));
    const ended = this.#ended.then((code) => {
      throw new Error(`it ended with ${code} before: ${this.err}`);
    });
    await Promise.race([heard, ended]);
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }

  #hear(event: TroupeEvent): void {
    this.events.push(event);
    const matched = this.#waiting.filter(({ matches }) => matches(event));
    this.#waiting = this.#waiting.filter((each) => !matched.includes(each));
    for (const { resolve } of matched) resolve();
  }
}

/** The variables by which torchrun tells processes of one host each where they stand. */
export function torchVariables(rank: number, size: number, port: number): Record<string, string> {
  return { RANK: `${rank}`, WORLD_SIZE: `${size}`, MASTER_ADDR: "127.0.0.1", MASTER_PORT: `${port}` };
}
