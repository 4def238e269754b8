import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { openStorage, putOwner, writeCheckpoint } from "../../src/library/checkpoint/index.ts";
import { main } from "../../src/tools/cli/main.ts";
import { contentOf } from "../checkpoint/content.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The command as its program runs it, without a process for each. */
async function checkpoint(...args: string[]): Promise<Finished> {
  const output = { out: "", err: "" };
  const hear = (stream: NodeJS.WriteStream, as: "out" | "err") =>
    vi.spyOn(stream, "write").mockImplementation((text) => {
      output[as] += String(text);
      return true;
    });
  const ears = [hear(process.stdout, "out"), hear(process.stderr, "err")];
  try {
    const code = await main(["checkpoint", ...args]);
    return { code, ...output };
  } finally {
    for (const ear of ears) ear.mockRestore();
  }
}

describe("troupe checkpoint", () => {
  let folder: string;
  let run: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-test-"));
    run = join(folder, "run");
    for (const step of [2, 4, 6, 8]) await writeCheckpoint(run, contentOf(step, { numElements: 300_000 }));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test("list shows the checkpoints of a run, the newest first", async () => {
    const { code, out } = await checkpoint("list", run);
    expect(code).toBe(0);
    expect(out.split("\n").map((line) => line.split(/\s+/)[0])).toEqual([
      "checkpoint",
      "step-000008",
      "step-000006",
      "step-000004",
      "step-000002",
      "",
    ]);
    expect(out).toMatch(/^step-000008 +8 .*latest$/m);
    const json = JSON.parse((await checkpoint("list", run, "--json")).out);
    expect(json.checkpoints[0]).toMatchObject({ name: "step-000008", step: 8, latest: true });
  });

  test("list says how the run stands, of one that is gone without a word when it was last heard of", async () => {
    const startedAt = "2026-11-22T10:00:00.000Z";
    await putOwner(await openStorage(run), { id: "1", job: "job.ts", startedAt });
    const { out } = await checkpoint("list", run);
    expect(out).toContain(
      `run of job.ts, begun ${startedAt}: ended without a record, last heard from at ${startedAt}\n`,
    );
    await rm(join(run, "run.json"));
  });

  test("inspect shows where the run stood, its files and its tensors", async () => {
    const { code, out } = await checkpoint("inspect", run, "--step", "4");
    expect(code).toBe(0);
    expect(out).toMatch(/^samplesConsumed +48$/m);
    expect(out).toMatch(/^model\.safetensors /m);
    expect(out).toMatch(/^exp_avg\.wte\.weight +F32 +\[300000\]/m);
    const json = JSON.parse((await checkpoint("inspect", join(run, "step-000004"), "--json")).out);
    expect(json).toMatchObject({ state: { step: 4 }, config: { model_type: "gpt2" } });
    expect(json.tensors).toHaveLength(6);
  });

  test("verify exits with 1 and names file, tensor and offset of what is damaged", async () => {
    expect(await checkpoint("verify", run, "--step", "8")).toMatchObject({
      code: 0,
      out: "step-000008  intact\n",
    });
    const path = join(run, "step-000006", "optimizer.safetensors");
    const bytes = await readFile(path);
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8((damaged.at(-1) as number) ^ 1, damaged.length - 1);
    await writeFile(path, damaged);
    const { code, out, err } = await checkpoint("verify", run);
    expect(code).toBe(1);
    expect(out).toContain("step-000004  intact");
    expect(out).toContain(`${path}, from byte ${4 << 20}: tensor exp_avg_sq.wte.weight`);
    expect(err).toMatch(/^troupe: .*step-000006 damaged/);
    const json = JSON.parse((await checkpoint("verify", run, "--step", "6", "--json")).out);
    expect(json.checkpoints[0].damages[0]).toMatchObject({ path, offsetBytes: 4 << 20 });
    await writeFile(path, bytes);
  });

  test("convert writes another form, and refuses what it cannot", async () => {
    const target = join(folder, "hf");
    const { code, out } = await checkpoint("convert", run, target, "--to", "hf");
    expect([code, out]).toEqual([0, `2 tensors of ${run}/step-000008 (troupe) are in ${target} (hf)\n`]);
    expect((await readdir(target)).toSorted()).toEqual(["config.json", "model.safetensors"]);
    const wrong = async (...args: string[]) => {
      const { code, err } = await checkpoint("convert", ...args);
      expect(err).toMatch(/^(troupe|error): /);
      expect(err.trim().split("\n")).toHaveLength(1);
      return code;
    };
    expect(await wrong(run, target, "--to", "hf")).toBe(2);
    expect(await wrong(run, join(folder, "x"), "--to", "onnx")).toBe(2);
    expect(await wrong(run, join(folder, "x"), "--to", "hf", "--tp", "2")).toBe(2);
    expect(await wrong(join(folder, "none"), join(folder, "x"), "--to", "hf")).toBe(2);
  });

  test("serve tells where it listens, lets in who knows the token, and ends when it is asked to", async () => {
    const dir = join(folder, "served");
    const args = [troupe, "checkpoint", "serve", "--dir", dir, "--port", "0", "--json"];
    const server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void server.kill("SIGKILL"));
    const line = await new Promise<string>((resolve) =>
      server.stderr.setEncoding("utf8").once("data", resolve),
    );
    const [, address = "", tokenFile = ""] = /at (http:\S+), token in (\S+)/.exec(line) ?? [];
    const token = (await readFile(tokenFile, "utf8")).trim();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
    const tensor = { "troupe-dtype": "U8", "troupe-shape": "3" };
    const put = (given: Record<string, string>) =>
      fetch(`${address}/checkpoints/1/tensors/a`, {
        method: "PUT",
        headers: given,
        body: Uint8Array.of(1, 2, 3),
      });
    expect((await put({ ...headers, ...tensor, authorization: "Bearer no" })).status).toBe(401);
    expect((await put({ ...headers, ...tensor })).status).toBe(201);
    const events: string[] = [];
    server.stdout.setEncoding("utf8").on("data", (text) => events.push(text));
    const committed = await fetch(`${address}/checkpoints/1/commit`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
    });
    expect(await committed.json()).toMatchObject({ path: join(dir, "step-000001"), verified: true });
    const ended = new Promise((resolve) => server.once("close", resolve));
    server.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(events.join("")).toContain('"kind":"checkpoint.saved"');
    // Its command line in ps holds no secret.
    expect(server.spawnargs.join(" ")).not.toContain(token);
  });

  test("serve ends in order by a signal that comes while it makes its socket, and leaves nothing of that", async () => {
    const place = join(folder, "socketed");
    await mkdir(place);
    const args = [
      troupe,
      "checkpoint",
      "serve",
      "--dir",
      join(folder, "served-too"),
      "--socket",
      join(place, "s"),
    ];
    const server = spawn(process.execPath, args, { stdio: "ignore" });
    onTestFinished(() => void server.kill("SIGKILL"));
    const ended = once(server, "close");
    while ((await readdir(place)).length === 0 && server.exitCode === null);
    server.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect(await readdir(place)).toEqual([]);
  });

  test("prune removes what need not be kept, and with --dry-run only tells it", async () => {
    const planned = await checkpoint("prune", run, "--keep-last", "1", "--keep-every", "4", "--dry-run");
    expect(planned).toMatchObject({ code: 0, out: "would remove step-000006\nwould remove step-000002\n" });
    expect(await readdir(run)).toHaveLength(5);
    const done = await checkpoint("prune", run, "--keep-last", "1", "--keep-every", "4", "--json");
    expect(JSON.parse(done.out)).toMatchObject({ removed: ["step-000006", "step-000002"] });
    expect((await readdir(run)).toSorted()).toEqual(["latest", "step-000004", "step-000008"]);
  });

  test("prune refuses a place where nothing is, and makes no folder there", async () => {
    const place = join(folder, "tun");
    const { code, err } = await checkpoint("prune", place, "--keep-last", "2");
    expect(code).toBe(2);
    expect(err).toContain(`expected a checkpoint in ${place}, got none`);
    expect(await readdir(folder)).not.toContain("tun");
  });

  test.each([
    [["list", "/nowhere"], "got none"],
    [["verify", "/nowhere"], "got none"],
    [["inspect", "/nowhere"], "got none"],
    [["prune", "RUN", "--keep-last", "0"], "keep.last"],
    [["prune", "RUN"], "--keep-last"],
    [["prune", "RUN/step-000008", "--keep-last", "1"], "expected the folder of a run, got step-000008"],
    [["list", "s3://"], "s3://BUCKET"],
    [["serve", "--dir", "RUN"], "--socket PATH or --port N"],
    [["serve", "--dir", "RUN", "--socket", "s", "--token-file", "t"], "--token-file with --port"],
    [["convert", "RUN", "x", "--to", "megatron", "--max-file-size", "1MB"], "--max-file-size with --to hf"],
    [["serve"], "--dir"],
    [["serve", "--dir", "RUN", "--port", "65536"], "a whole number from 0 to 65535, got 65536"],
    [["verify", "RUN", "--step", "x"], "a number"],
  ])("exits with 2 and one line for %j", async (args, message) => {
    const { code, err, out } = await checkpoint(...args.map((arg) => arg.replace(/^RUN\b/, run)));
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});
