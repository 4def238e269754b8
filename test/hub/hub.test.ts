import { execFile } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findData, findModel } from "../../src/library/hub/index.ts";
import { LocalHub } from "../fixtures/hub/local-hub.ts";

const run = promisify(execFile);
const config = JSON.stringify({ model_type: "bert" });
/** Large enough that a connection has more than one piece to lose. */
const weights = Buffer.alloc(3 << 20, "weights of a model, ");
const model = {
  files: {
    "config.json": config,
    "model.safetensors": weights,
    "README.md": "#",
    "flax_model.msgpack": "x",
    "onnx/model.onnx": "x",
  },
  large: ["model.safetensors"],
};

describe("a hub", () => {
  let hub: LocalHub;
  let home: string;
  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), "troupe-test-"));
    hub = await new LocalHub({
      "models/bert-base-cased": model,
      "models/acme/gated": { ...model, gated: true },
      "models/acme/private": { ...model, private: true },
      "models/acme/pickled": { files: { "config.json": config, "pytorch_model.bin": "x" } },
      "models/acme/evil": {
        files: { "config.json": config, "../../../outside.json": "x", "/tmp/outside.json": "x" },
      },
      "datasets/glue": {
        files: {
          "README.md": "#",
          "mrpc/train.jsonl": '{"sentence1":"a","sentence2":"b","label":1}\n',
          "mrpc/validation.jsonl": '{"sentence1":"a","sentence2":"b","label":0}\n',
          "cola/train.jsonl": "{}\n",
        },
      },
      "datasets/acme/pictures": {
        files: { "data/train-000000.tar": "a", "data/train-000001.tar": "b", "data/viewer.py": "c" },
      },
    }).listen();
  });
  afterEach(async () => {
    await hub[Symbol.asyncDispose]();
    rmSync(home, { recursive: true, force: true });
  });

  const environment = (more: Readonly<Record<string, string>> = {}) => ({
    HF_HOME: home,
    HF_ENDPOINT: hub.address,
    ...more,
  });
  const find = (
    name: string,
    more: Readonly<Record<string, string>> = {},
    tell: (line: string) => void = () => {},
  ) => findModel(name, { folder: home, environment: environment(more), firstDelayMs: 1, tell });
  const refusal = (name: string, more: Readonly<Record<string, string>> = {}) =>
    find(name, more).then(
      () => "none",
      (error: Error) => error.message,
    );
  const blobs = (name = "models--bert-base-cased") => join(home, "hub", name, "blobs");
  const sent = (pattern: RegExp) => hub.requests.filter((request) => pattern.test(request));

  it("gives a model's description and weights, nothing else, in Hugging Face's layout; then without a word to it", async () => {
    const folder = await find("bert-base-cased");
    expect(folder).toBe(join(home, "hub/models--bert-base-cased/snapshots", LocalHub.commit));
    expect(readdirSync(folder).toSorted()).toEqual(["config.json", "model.safetensors"]);
    expect(lstatSync(join(folder, "model.safetensors")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, "model.safetensors"))).toEqual(weights);
    expect(readFileSync(join(home, "hub/models--bert-base-cased/refs/main"), "utf8")).toBe(LocalHub.commit);
    const { length } = hub.requests;
    expect(await find("bert-base-cased")).toBe(folder);
    expect(hub.requests).toHaveLength(length);
    expect(await find(`bert-base-cased@${LocalHub.commit}`)).toBe(folder);
  });

  it("an offline hub opens no socket for any request, and finds cached files", async () => {
    for (const variable of ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
      expect(await refusal("bert-base-cased", { [variable]: "1" })).toMatch(
        /^\[hub\] expected a model: .* got bert-base-cased/,
      );
    expect(hub.connections).toBe(0);
    const folder = await find("bert-base-cased");
    const { connections } = hub;
    expect(await find("bert-base-cased", { HF_HUB_OFFLINE: "1" })).toBe(folder);
    expect(hub.connections).toBe(connections);
  });

  it("goes on where connections were cut, and after answers of an overloaded server", async () => {
    hub.failures.push(503, 429);
    hub.cuts.push(10, 1 << 20, 1 << 20);
    const folder = await find("bert-base-cased");
    expect(readFileSync(join(folder, "model.safetensors"))).toEqual(weights);
    expect(readFileSync(join(folder, "config.json"), "utf8")).toBe(config);
    const ranges = sent(/file=model.safetensors/).map((request) =>
      Number(/bytes=(\d+)/.exec(request)?.[1] ?? 0),
    );
    expect(ranges[0]).toBe(0);
    expect(ranges.slice(1).every((begin, index) => begin > (ranges[index] ?? 0))).toBe(true);
    expect(ranges.length).toBeGreaterThan(1);
  });

  it("an interrupted download keeps its partial file under no model's name, and a later run continues it", async () => {
    hub.cuts.push(...Array.from({ length: 12 }, (_, index) => (index < 2 ? 1 << 20 : 0)));
    const message = await refusal("bert-base-cased");
    expect(message).toMatch(
      /got .* after .* MB of (model.safetensors|config.json) \(the part so far is kept/,
    );
    expect(await refusal("bert-base-cased", { HF_HUB_OFFLINE: "1" })).toContain("got bert-base-cased");
    hub.cuts.length = 0;
    const partial = readdirSync(blobs()).find((name) => name.endsWith(".incomplete")) as string;
    const here = statSync(join(blobs(), partial)).size;
    expect(here).toBeGreaterThan(0);
    hub.requests.length = 0;
    const folder = await find("bert-base-cased");
    expect(readFileSync(join(folder, "model.safetensors"))).toEqual(weights);
    expect(sent(new RegExp(`bytes=${here}-`))).toHaveLength(1);
    expect(readdirSync(blobs()).filter((name) => name.endsWith(".incomplete"))).toEqual([]);
  });

  it("does not take bytes for a file that are not those it promised, and leaves none of them behind", async () => {
    hub.corrupts = true;
    expect(await refusal("bert-base-cased")).toMatch(
      /^\[hub\] expected model.safetensors with the checksum [\da-f]{64} that http:.* says it has, got other bytes/,
    );
    expect(readdirSync(blobs()).filter((name) => name.length !== 40)).toEqual([]);
    hub.corrupts = false;
    const folder = await find("bert-base-cased");
    // The partial file of an earlier try is another file's: it is deleted, and fetched again.
    const blob = readdirSync(blobs()).find((name) => name.length === 64) as string;
    rmSync(join(folder, "model.safetensors"));
    rmSync(join(blobs(), blob));
    writeFileSync(join(blobs(), `${blob}.incomplete`), Buffer.alloc(1000, "other"));
    expect(readFileSync(join(await find("bert-base-cased"), "model.safetensors"))).toEqual(weights);
    // More than there is, as of a disk that a fault has filled.
    rmSync(join(folder, "model.safetensors"));
    rmSync(join(blobs(), blob));
    writeFileSync(join(blobs(), `${blob}.incomplete`), Buffer.alloc(4 << 20));
    expect(readFileSync(join(await find("bert-base-cased"), "model.safetensors"))).toEqual(weights);
  });

  it("tells in one sentence why it gives nothing", async () => {
    expect(await refusal("bert-base-uncased")).toMatch(
      /^\[hub\] expected a model bert-base-uncased that everyone may read at 127.0.0.1:\d+, got 401, RepoNotFound \(did you mean bert-base-cased/,
    );
    expect(await refusal("bert-base-uncased", { HF_TOKEN: LocalHub.token })).toContain(
      "got 404, RepoNotFound",
    );
    expect(await refusal("bert-base-cased@v9")).toMatch(
      /expected a revision v9 of the model bert-base-cased .* got 404/,
    );
    expect(await refusal("acme/gated")).toMatch(
      /which is gated at .*, got 401, GatedRepo with none \(accept its terms at http.*acme\/gated, and set HF_TOKEN/,
    );
    expect(await refusal("acme/pickled")).toContain("got pytorch_model.bin, a pickle");
    expect(await refusal("no model's name!")).toContain("expected a model: a path");
    const gone = await new LocalHub({}).listen();
    const away = { HF_ENDPOINT: gone.address };
    await gone[Symbol.asyncDispose]();
    expect(await refusal("bert-base-cased", away)).toMatch(
      /expected an answer from http:\/\/127.0.0.1:\d+, got ECONNREFUSED/,
    );
  });

  it("only the hub itself receives the token, which opens gated and private repositories", async () => {
    for (const name of ["acme/gated", "acme/private"])
      expect(readFileSync(join(await find(name, { HF_TOKEN: LocalHub.token }), "config.json"), "utf8")).toBe(
        config,
      );
    writeFileSync(join(home, "token"), `${LocalHub.token}\n`);
    rmSync(join(home, "hub"), { recursive: true });
    await find("acme/private");
    expect(hub.tokensElsewhere).toEqual([undefined, undefined, undefined]);
  });

  it("is not let out of its folder by the names that it gives its files", async () => {
    const folder = await find("acme/evil");
    expect(readdirSync(folder)).toEqual(["config.json"]);
    expect(existsSync("/tmp/outside.json")).toBe(false);
  });

  it("is asked for one file once, however many processes want it", async () => {
    const script = fileURLToPath(new URL("../fixtures/hub/find-model.ts", import.meta.url));
    const child = () =>
      run(process.execPath, [script, "bert-base-cased"], {
        cwd: home,
        env: { ...process.env, ...environment() },
      });
    const found = await Promise.all([child(), child(), child()]);
    const folder = join(home, "hub/models--bert-base-cased/snapshots", LocalHub.commit);
    expect(found.map(({ stdout }) => stdout)).toEqual([folder, folder, folder]);
    expect(sent(/GET .*file=model.safetensors/)).toHaveLength(1);
    expect(readFileSync(join(folder, "model.safetensors"))).toEqual(weights);
  });

  it("gives the part of a dataset that is asked for, and says what parts there are", async () => {
    const findPart = (part: string) =>
      findData("glue", part, { folder: home, environment: environment(), firstDelayMs: 1 });
    const folder = await findPart("mrpc");
    expect(readdirSync(folder).toSorted()).toEqual(["train.jsonl", "validation.jsonl"]);
    expect(sent(/cola/)).toEqual([]);
    await expect(findPart("sst2")).rejects.toThrow("got none of that part (its parts: mrpc, cola)");
    expect(readdirSync(await findPart("cola"))).toEqual(["train.jsonl"]);
    const options = { folder: home, environment: environment(), firstDelayMs: 1 };
    const shards = await findData("acme/pictures", "", options);
    expect(readdirSync(shards).toSorted()).toEqual(["train-000000.tar", "train-000001.tar"]);
  });

  it.each(["main", LocalHub.commit])(
    "an interrupted download of a dataset's part at %s is not taken for complete, and a later one fetches the rest",
    async (revision) => {
      const options = { folder: home, environment: environment(), firstDelayMs: 1 };
      const findPart = (part: string) => findData(`glue@${revision}`, part, options);
      await findPart("cola");
      // The first of its two files arrives, the second never.
      hub.cuts.push(1 << 20, ...Array.from({ length: 12 }, () => 0));
      await expect(findPart("mrpc")).rejects.toThrow("mrpc/validation.jsonl");
      hub.cuts.length = 0;
      const folder = await findPart("mrpc");
      expect(readdirSync(folder).toSorted()).toEqual(["train.jsonl", "validation.jsonl"]);
      const { length } = hub.requests;
      expect(await findPart("mrpc")).toBe(folder);
      expect(hub.requests).toHaveLength(length);
      // A file that was lost since is fetched again, but not by an offline run.
      rmSync(join(folder, "train.jsonl"));
      const offline = { ...options, environment: environment({ HF_HUB_OFFLINE: "1" }) };
      expect(readdirSync(await findData(`glue@${revision}`, "mrpc", offline))).toEqual(["validation.jsonl"]);
      expect(readdirSync(await findPart("mrpc"))).toHaveLength(2);
    },
  );

  // Python's own library, where it is at hand: TROUPE_PYTHON names an interpreter that has it.
  const python = process.env.TROUPE_PYTHON;
  it.skipIf(python === undefined)(
    "shares its cache with Python's huggingface_hub, both ways, and waits for its locks",
    async () => {
      const ask = async (text: string, more: Readonly<Record<string, string>> = {}) => {
        const env = { ...process.env, ...environment(more), HF_HUB_DISABLE_XET: "1" };
        return (await run(python as string, ["-c", text], { env })).stdout.trim();
      };
      const folder = await find("bert-base-cased");
      const offline = { HF_HUB_OFFLINE: "1" };
      const asked =
        "from huggingface_hub import hf_hub_download as f; print(f('bert-base-cased', 'model.safetensors'))";
      expect(await ask(asked, offline)).toBe(join(folder, "model.safetensors"));
      const snapshot = "from huggingface_hub import snapshot_download as f; print(f('bert-base-cased'))";
      expect(await ask(snapshot, offline)).toBe(folder);
      // Online it compares the hub's ETag with ours, and downloads nothing.
      hub.requests.length = 0;
      expect(await ask(asked)).toBe(join(folder, "model.safetensors"));
      expect(sent(/^GET .*(resolve|file=)/)).toEqual([]);
      // What Python wrote is read by us without a word to the hub.
      rmSync(join(home, "hub"), { recursive: true });
      await ask(
        "from huggingface_hub import hf_hub_download as f; f('bert-base-cased', 'config.json'); f('bert-base-cased', 'model.safetensors')",
      );
      const { connections } = hub;
      expect(await find("bert-base-cased")).toBe(folder);
      expect(hub.connections).toBe(connections);
      // A lock that Python holds.
      rmSync(join(home, "hub"), { recursive: true });
      const large =
        "import os,hashlib; from huggingface_hub.utils import WeakFileLock; import sys; p=sys.argv[1]; os.makedirs(os.path.dirname(p), exist_ok=True)";
      const hash = readFileSync(join(await find("bert-base-cased"), "../../refs/main"), "utf8");
      expect(hash).toBe(LocalHub.commit);
      const etag = readdirSync(blobs()).find((name) => name.length === 64) as string;
      const lock = join(home, "hub/.locks/models--bert-base-cased", `${etag}.lock`);
      rmSync(blobs(), { recursive: true });
      rmSync(folder, { recursive: true });
      mkdirSync(blobs());
      const holder = execFile(python as string, [
        "-c",
        `${large}\nwith WeakFileLock(p):\n print("held", flush=True)\n input()`,
        lock,
      ]);
      await new Promise((resolve) => holder.stdout?.once("data", resolve));
      const said: string[] = [];
      let isDone = false;
      const waiting = find("bert-base-cased", {}, (line) => {
        said.push(line);
        if (line.startsWith("waiting for model.safetensors")) {
          expect(isDone).toBe(false);
          holder.stdin?.end("\n");
        }
      }).then((found) => {
        isDone = true;
        return found;
      });
      expect(readFileSync(join(await waiting, "model.safetensors"))).toEqual(weights);
      expect(said.some((line) => line.startsWith("waiting for"))).toBe(true);
    },
  );

  it("only the missing files of a snapshot are requested", async () => {
    const folder = await find("bert-base-cased");
    rmSync(join(folder, "model.safetensors"));
    hub.requests.length = 0;
    expect(await find("bert-base-cased")).toBe(folder);
    expect(existsSync(join(folder, "model.safetensors"))).toBe(true);
    // Its content is still in the cache: only its name was lost.
    expect(sent(/file=model/)).toEqual([]);
    truncateSync(join(home, "hub/models--bert-base-cased/refs/main"));
    expect(await find("bert-base-cased")).toBe(folder);
  });
});
