import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import {
  JsonRefused,
  parseBoundedJson,
  readBounded,
  readBoundedSync,
} from "../../src/errors/untrusted/index.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const root = fileURLToPath(new URL("../../src", import.meta.url));
const sources = globSync("**/*.ts", { cwd: root });

/** Functions of Node's that open a file for reading without checking its kind, and a line of each that must be found. */
const way =
  /import [^;]*\b(readFile|readFileSync|open|openSync|createReadStream|openAsBlob)\b[^;]*from "node:fs(\/promises)?"|\bfs\.(readFile|open|createReadStream)|\basyncBufferFromFile\b/;
const seen = [
  'import { type FileHandle, open } from "node:fs/promises";',
  'import {\n  readFileSync,\n  statSync,\n} from "node:fs";',
  'await fs.readFile(path, "utf8")',
  "await asyncBufferFromFile(path)",
];

/** Reads of the machine's or the product's own files, which are trusted, and files that are opened for writing. */
const ours: Readonly<Record<string, string>> = {
  "errors/untrusted/bounded-file.ts": "the one place",
  "runtime/actor-system.ts": "/proc",
  "actors/trainer/stalls/stalls.ts": "/proc",
  "runtime/process-mark.ts": "/proc",
  "compute/tensor/processors.ts": "/proc and /sys",
  "runtime/transport/shared-memory.ts": "written",
  "job/events/sinks/descriptor-outlet.ts": "written",
  "job/events/sinks/record-file.ts": "written; refuses what is no regular file itself",
  "library/data/megatron/indexed-writer.ts": "written",
  "job/explain-import.ts": "a message that opens a folder by name",
  "tools/cli/main.ts": "the product's own package",
  "library/data/text/token-file.ts": "written",
  "library/export/onnx/write-model.ts": "written",
  "library/export/gguf/write-gguf.ts": "written",
  "tools/sinks/mlflow/client.ts": "checkpoints that were just written",
  "tools/sinks/wandb/sink.ts": "written",
  "errors/frames.ts": "lines of the program that runs",
  "job/dashboard/assets.ts": "the product's own page",
  "job/dashboard/follow-file.ts": "never waits, and reads a piece at a time of regular files",
  "runtime/access/token.ts": "follows no link, and asks for its owner and its size",
  "library/checkpoint/storage/held-folder.ts": "opens folders, and files to write",
  "library/checkpoint/storage/folder-lock.ts": "locks, by flags of its own",
  "library/checkpoint/storage/durable-file.ts": "folders, to synchronise them",
  "library/hub/download.ts": "what was just written",
  "library/data/formats/lines.ts": "a stream of what is open already",
};

describe("an untrusted file", () => {
  it("untrusted files are opened in one place, which every reader uses", () => {
    expect(seen.filter((line) => !way.test(line))).toEqual([]);
    expect(sources.length).toBeGreaterThan(300);
    const found = sources.filter((file) => way.test(readFileSync(join(root, file), "utf8")));
    expect(found.toSorted()).toEqual(Object.keys(ours).toSorted());
  });

  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("an untrusted file is read only if it is a regular file of an allowed size, and else refused at once", async () => {
    const folder = workspace.path("files");
    mkdirSync(folder, { recursive: true });
    const [good, pipe, huge] = ["good", "pipe", "huge"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(good, "0123456789");
    execFileSync("mkfifo", [pipe]);
    writeFileSync(huge, "");
    truncateSync(huge, 2 ** 40);
    for (const read of [readBounded, async (path: string, most: number) => readBoundedSync(path, most)]) {
      expect((await read(good, 10)).toString()).toBe("0123456789");
      expect((await read("/proc/self/status", 1 << 16)).toString()).toContain("VmRSS");
      await expect(read(good, 9)).rejects.toThrow("10 bytes, where such a file has at most 9");
      await expect(read("/proc/self/status", 20)).rejects.toThrow("at most 20");
      await expect(read(huge, 1 << 20)).rejects.toThrow(`${2 ** 40} bytes`);
      await expect(read(pipe, 10)).rejects.toThrow("a pipe, no regular file");
      await expect(read("/dev/zero", 10)).rejects.toThrow("a device, no regular file");
      await expect(read(folder, 10)).rejects.toThrow("a folder");
      await expect(read(join(folder, "none"), 10)).rejects.toThrow("ENOENT");
    }
  });

  it("that is JSON is no deeper than 64 levels and no longer than 2.5 million values", () => {
    const text = '{"a":["\\\\","]}\\"{[",{"b":null}],"c":-1.5e3}';
    expect(parseBoundedJson(text)).toEqual(JSON.parse(text));
    expect(parseBoundedJson("[".repeat(64) + "]".repeat(64))).toHaveLength(1);
    expect(() => parseBoundedJson("[".repeat(65) + "]".repeat(65))).toThrow(JsonRefused);
    expect(() => parseBoundedJson(`[${"[],".repeat(2_500_000)}0]`)).toThrow(JsonRefused);
    expect(() => parseBoundedJson('"\\')).toThrow(SyntaxError);
  });
});
