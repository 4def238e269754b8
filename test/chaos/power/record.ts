import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { countedEnv } from "../../fixtures/can-inject.ts";
import type { Operation } from "./operation.ts";

const calls =
  "openat,open,creat,pwrite64,write,fsync,fdatasync,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,ftruncate";

/** Whether programs can be watched here. */
export const canRecord =
  spawnSync("strace", ["-qq", "-o", "/dev/null", "-e", "trace=fsync", "true"], { stdio: "ignore" }).status ===
  0;

/**
 * Runs a program and records what it does below `folder`, system call by system call.
 * @param folder - must be there, and everything that the program is to find in it
 * @throws {Error} where the program fails, or does what no record can be made of
 */
export function record(folder: string, args: readonly string[]): Operation[] {
  const output = `${folder}.trace`;
  const options = ["-f", "-y", "-xx", "-s", "100000000", "-qq", "-o", output, "-e", `trace=${calls}`];
  const program = [process.execPath, ...args];
  const { status, stderr } = spawnSync("strace", [...options, ...program], { env: countedEnv });
  if (status !== 0) throw new Error(`the recorded program failed: ${stderr}`);
  const lines = whole(readFileSync(output, "latin1").split("\n"));
  rmSync(output);
  return lines.flatMap((line) => operationOf(line, folder) ?? []);
}

/** Lines of calls that others interrupted, put together where they end. */
function whole(lines: readonly string[]): string[] {
  const begun = new Map<string, string>();
  return lines.flatMap((line) => {
    const [pid = ""] = line.split(" ", 1);
    const unfinished = line.indexOf(" <unfinished ...>");
    if (unfinished >= 0) {
      begun.set(pid, line.slice(0, unfinished));
      return [];
    }
    const resumed = /^\d+\s+<\.\.\. \w+ resumed>/.exec(line);
    if (resumed === null) return [line];
    return [(begun.get(pid) ?? "") + line.slice(resumed[0].length)];
  });
}

function operationOf(line: string, folder: string): Operation | undefined {
  const match = /^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)/.exec(line);
  if (match === null) return undefined;
  const [, call = "", args = "", result = ""] = match;
  if (Number(result) < 0) return undefined;
  const texts = [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = ""]) => bytesOf(hex));
  const below = (bytes: Uint8Array | undefined): string | undefined => inside(folder, textOf(bytes));
  const ofDescriptor = (): string | undefined =>
    inside(folder, textOf(bytesOf(/^\d+<((?:\\x[0-9a-f]{2})*)>/.exec(args)?.[1] ?? "")));
  if (call === "write" && args.startsWith("1<")) return { kind: "acknowledge", text: textOf(texts[0]) };
  if (/^(openat|open|creat)$/.test(call)) {
    const path = below(texts[0]);
    return path !== undefined && args.includes("O_CREAT") ? { kind: "create", path } : undefined;
  }
  if (call === "write" || call === "pwrite64") {
    const path = ofDescriptor();
    if (path === undefined) return undefined;
    if (call === "write") throw new Error(`a write without a place: ${line.slice(0, 200)}`);
    const [, size, offset] = /, (\d+), (\d+)$/.exec(args) ?? [];
    if (Number(size) !== Number(result)) throw new Error("a short write");
    return { kind: "write", path, offset: Number(offset), bytes: texts[0] as Uint8Array };
  }
  if (call === "fsync" || call === "fdatasync") {
    const path = ofDescriptor();
    return path === undefined ? undefined : { kind: "sync", path };
  }
  const path = below(texts[0]);
  if (path === undefined) return undefined;
  if (call.startsWith("mkdir")) return { kind: "mkdir", path };
  if (call.startsWith("rename")) return { kind: "rename", from: path, to: below(texts[1]) as string };
  if (call === "ftruncate") throw new Error("a truncation");
  return { kind: "remove", path };
}

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll("\\x", ""), "hex"));
}

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

/** The path below `folder`, "" for itself; undefined for other paths. */
function inside(folder: string, path: string): string | undefined {
  if (path === "") return undefined;
  const place = relative(folder, path.startsWith("/") ? path : join(process.cwd(), path));
  return place.startsWith("..") ? undefined : place;
}
