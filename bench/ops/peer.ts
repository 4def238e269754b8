import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A running Python with torch that times the same operators. */
export interface Peer {
  /** Microseconds per call. */
  time(name: string, numCalls: number): Promise<number>;
  stop(): void;
}

/**
 * Starts a Python script under the first Python that has torch; undefined when none has.
 * @param script - reads "NAME CALLS" lines and answers each with microseconds per call
 */
export async function startPeer(script: URL): Promise<Peer | undefined> {
  const python = candidates().find(hasTorch);
  if (python === undefined) return undefined;
  return connect(spawn(python, [fileURLToPath(script)], { stdio: ["pipe", "pipe", "inherit"] }));
}

/** PYTHON, then the Python whose torch the addon was linked with, then the one on the path. */
function candidates(): string[] {
  const info = new URL("../../build/build-info.json", import.meta.url);
  const linked = existsSync(info)
    ? /"([^"]+)\/lib\/python[\d.]+\/site-packages\/torch/.exec(readFileSync(info, "utf8"))
    : null;
  return [process.env.PYTHON ?? "", linked === null ? "" : `${linked[1]}/bin/python`, "python3"].filter(
    (path) => path !== "",
  );
}

function hasTorch(python: string): boolean {
  try {
    execFileSync(python, ["-c", "import torch"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function connect(child: ChildProcess): Peer {
  if (child.stdout === null || child.stdin === null) throw new Error("the peer has no pipes");
  const { stdin, stdout } = child;
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async time(name, numCalls) {
      stdin.write(`${name} ${numCalls}\n`);
      return Number((await answers.next()).value);
    },
    stop: () => stdin.end(),
  };
}
