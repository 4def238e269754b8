import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The peer's output, and the time it took. */
export interface Written {
  readonly seconds: number;
  /** Number of tokens up to the end of each text. */
  readonly numTokens: number;
}

/** A Python process that generates with the same model on request, a line of JSON each way. */
export class Transformers {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
  }

  static async start(python: string, folder: string, numThreads: number): Promise<Transformers> {
    const script = fileURLToPath(new URL("./peer.py", import.meta.url));
    const child = spawn(python, [script, folder, String(numThreads)], { stdio: ["pipe", "pipe", "inherit"] });
    const peer = new Transformers(child);
    await once(peer.#lines, "line"); // the model is loaded
    return peer;
  }

  async write(asked: {
    readonly prompts: readonly (readonly number[])[];
    readonly samples: number;
    readonly newTokens: number;
    readonly stops: readonly number[];
  }): Promise<Written> {
    this.#child.stdin.write(`${JSON.stringify(asked)}\n`);
    const [line] = (await once(this.#lines, "line")) as [string];
    return JSON.parse(line) as Written;
  }

  stop(): void {
    this.#child.stdin.end();
  }
}
