import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../service/temporary-folder.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** A command that serves, once it says so. */
async function serve(
  ...args: string[]
): Promise<{ readonly server: ChildProcess; readonly ended: Promise<number | null> }> {
  const server = spawn(process.execPath, ["bin/troupe.mjs", ...args], { cwd: root });
  onTestFinished(() => void server.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => server.once("exit", resolve));
  await new Promise<void>((resolve, reject) => {
    let output = "";
    server.stderr.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.includes("troupe: serving")) resolve();
    });
    void ended.then((code) => reject(new Error(`ended with ${code}: ${output}`)));
  });
  return { server, ended };
}

describe("examples/service", () => {
  test("save.ts saves the state of a loop of one's own, run as a user runs it", async () => {
    const folder = await temporaryFolder();
    const { stdout, stderr } = await run(process.execPath, ["examples/service/save.ts", folder], {
      cwd: root,
    });
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual([
      ...[10, 20, 30].map((step) => `step ${step} is durable in ${join(folder, `step-0000${step}`)}`),
      "step 30 read back: 465 = 465",
    ]);
    expect((await readdir(folder)).toSorted()).toEqual(["latest", "step-000020", "step-000030"]);
  });

  test("client.py hands over slices from two threads and gets a durable, verified checkpoint", async () => {
    const folder = await temporaryFolder();
    const socket = join(folder, "socket");
    const { server, ended } = await serve(
      "checkpoint",
      "serve",
      "--dir",
      join(folder, "run"),
      "--socket",
      socket,
    );
    const { stdout } = await run("python3", ["examples/service/client.py", socket], { cwd: root });
    expect(stdout).toBe(
      `durable in ${join(folder, "run", "step-000100")}, verified: True\n` +
        "read back 256000 weights, the first 1.0, the last 2.0\n",
    );
    server.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });

  test("a server that is killed while tensors come in leaves nothing, and the next one takes its socket", async () => {
    const folder = await temporaryFolder();
    const socket = join(folder, "socket");
    const dir = join(folder, "run");
    const first = await serve("checkpoint", "serve", "--dir", dir, "--socket", socket);
    const put = `
import sys; sys.path.insert(0, "examples/service")
from client import Checkpoints
Checkpoints(sys.argv[1]).put(1, "a", "U8", (8,), bytes(4), (0,), (4,))`;
    await run("python3", ["-B", "-c", put, socket], { cwd: root });
    first.server.kill("SIGKILL");
    await first.ended;
    // Its lock has ended with it; the file says whose it was.
    expect(await readdir(dir)).toEqual([".lock"]);
    await serve("checkpoint", "serve", "--dir", dir, "--socket", socket);
    await run("python3", ["-B", "examples/service/client.py", socket], { cwd: root });
    expect((await readdir(dir)).toSorted()).toEqual([".lock", "latest", "step-000100"]);
  });

  test("train.py trains a model that `troupe serve` has opened, and its state is saved at the end", async () => {
    const folder = await temporaryFolder();
    const [socket, dir] = [join(folder, "socket"), join(folder, "run")];
    const job = "examples/hello/job.ts";
    const { server, ended } = await serve(
      "serve",
      job,
      "--ranks",
      "2",
      "--checkpoint",
      dir,
      "--socket",
      socket,
    );
    const { stdout } = await run("python3", ["-B", "examples/service/train.py", socket], { cwd: root });
    expect(stdout).toMatch(/^loss \d\.\d+ after 60 steps\nloss 0\.\d+ on a sentence of one's own\nThe cat /);
    expect(stdout).toContain(`step 220 is durable in ${join(dir, "step-000220")}\n`);
    server.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });
});
