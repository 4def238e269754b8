import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { main } from "../../src/tools/cli/main.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const job = fileURLToPath(new URL("../fixtures/jobs/struck.ts", import.meta.url));
const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());
const given = { data: workspace.text, cache: workspace.path("cache"), strikes: workspace.folder };
const settings = Object.entries(given).flatMap(([name, value]) => ["--set", `${name}=${value}`]);

it("troupe serve goes on when a frozen copy dies, and ends with the error, and exit code 1, when its model does", async () => {
  const tokenFile = workspace.path("token");
  const options = ["--port", "0", "--token-file", tokenFile, "--max-restarts", "0", "--no-warm-standby"];
  const server = spawn(process.execPath, [troupe, "serve", job, ...options, ...settings], {
    cwd: workspace.folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void server.kill("SIGKILL"));
  const ended = once(server, "close");
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    void ended.then(() => reject(new Error(said)));
    server.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
      const found = / at (http:\S+), token in /.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  const headers = {
    authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}`,
    "content-type": "application/json",
  };
  const ask = async (path: string, fields: object = {}) => {
    const response = await fetch(`${address}/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(fields),
    });
    await response.text();
    return response.status;
  };
  const accumulate = () => ask("accumulate/loss", { batch: { split: "train", position: 0, numSamples: 2 } });
  const train = async () => [await accumulate(), await ask("step")];
  expect(await ask("frozen")).toBe(200);
  // The model moves, so that the copy has a rank of its own.
  expect(await train()).toEqual([200, 200]);
  const strike = (rank: string) => writeFileSync(workspace.path(rank), "exit");
  strike("frozen-1-rank-0");
  expect(await ask("frozen/1/evaluate")).toBe(500);
  expect(await train()).toEqual([200, 200]);
  strike("rank-0");
  expect(await accumulate()).toBe(500);
  expect(await ended).toEqual([1, null]);
  expect(said).toMatch(/^troupe: its thread ended with exit code 7$/m);
});

it("troupe serve refuses a port that is taken with exit code 2", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  let said = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said += text;
    return true;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const place = ["--port", String(port), "--token-file", workspace.path("token")];
  expect(await main(["serve", job, ...place, "--checkpoint", "none", "--no-warm-standby", ...settings])).toBe(
    2,
  );
  expect(said).toMatch(
    new RegExp(`^troupe: \\[serve\\] expected to listen on port ${port}, got "listen EADDRINUSE`, "m"),
  );
});
