import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { toJson } from "../../src/job/events/index.ts";
import { openStorage, putOwner } from "../../src/library/checkpoint/index.ts";
import { PageReader } from "../dashboard/page-reader.ts";
import { begun, stepped } from "../dashboard/stepped.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const troupe = fileURLToPath(new URL("../../bin/troupe.mjs", import.meta.url));
const tiny = fileURLToPath(new URL("../fixtures/jobs/tiny.ts", import.meta.url));

/** The command in a process of its own, and the address that it tells, with the token out of the file that it names. */
function start(args: readonly string[], cwd: string) {
  const child = spawn(process.execPath, [troupe, ...args], { cwd, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const address = new Promise<string>((tell, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [, page, tokenFile = ""] =
        /^dashboard: http:\S+ needs a token; for its address with the token: echo "(http:\S+#token=)\$\(cat '(\S+)'\)"\n/m.exec(
          said,
        ) ?? [];
      if (page !== undefined) tell(page + readFileSync(resolve(cwd, tokenFile), "utf8").trim());
    });
    child.on("exit", () => reject(new Error(said)));
  });
  // Only a caller that waits for the address fails if there is none.
  address.catch(() => {});
  const exit = new Promise<{ readonly code: number | null; readonly said: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, said }));
  });
  return { child, address, exit };
}

describe("troupe dashboard", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  it("shows the events of a run's folder, and ends when it is interrupted", async () => {
    writeFileSync(workspace.path("events.jsonl"), `${toJson(begun())}\n${toJson(stepped(1))}\n`);
    const { child, address, exit } = start(["dashboard", workspace.folder, "--port", "0"], workspace.folder);
    using reader = await PageReader.open(await address);
    const run = await reader.until(({ frames }) => frames.find((frame) => frame.run?.step === 1)?.run);
    expect(run).toMatchObject({ state: "running", lossNats: 4 });
    child.kill("SIGINT");
    expect((await exit).code).toBe(0);
  });

  it("shows a run that ended without a word as such, at the time of its last event", async () => {
    const dead = workspace.path("dead");
    mkdirSync(dead);
    const last = stepped(1);
    writeFileSync(join(dead, "events.jsonl"), `${toJson(begun())}\n${toJson(last)}\n`);
    const run = { id: "1", job: "job.ts", startedAt: "2026-11-22T10:00:00.000Z" };
    await putOwner(await openStorage(dead), run);
    const { child, address, exit } = start(["dashboard", dead, "--port", "0"], workspace.folder);
    using reader = await PageReader.open(await address);
    const shown = await reader.until(({ frames }) => frames.find((frame) => frame.run?.state === "silent"));
    expect(shown.run).toMatchObject({ step: 1, endedAtMs: last.timeMs });
    child.kill("SIGINT");
    await exit;
  });

  it("refuses what holds no events, with exit code 2", async () => {
    const { code, said } = await start(["dashboard", "/nowhere"], workspace.folder).exit;
    expect(said).toMatch(/expected a file of events or the folder of a run at \/nowhere, got no such file/);
    expect(code).toBe(2);
  });
});

describe("troupe run --dashboard", () => {
  const workspace = new Workspace();
  const data = ["--set", `data=${workspace.text}`, "--set", `cache=${workspace.path("cache")}`];
  afterAll(() => workspace[Symbol.dispose]());

  it("tells the address first but not the token, shows the run to its end, and ends with it, page or not", async () => {
    const args = ["run", tiny, "--steps", "3", ...data, "--dashboard", "0"];
    const { address, exit } = start(args, workspace.folder);
    using reader = await PageReader.open(await address);
    const run = await reader.until(
      ({ frames }) => frames.find((frame) => frame.run?.state === "finished")?.run,
    );
    expect(run).toMatchObject({ step: 3, facts: { steps: 3 } });
    const { code, said } = await exit;
    expect(code).toBe(0);
    // Output to no terminal is a log, which others read: the token is in a file that they cannot read.
    expect(said).not.toMatch(/[0-9a-f]{64}/);
    expect(statSync(workspace.path("runs/tiny/dashboard.token")).mode & 0o777).toBe(0o600);

    // And by what it wrote into its folder.
    const record = start(["dashboard", "runs/tiny", "--port", "0"], workspace.folder);
    using later = await PageReader.open(await record.address);
    const shown = await later.until(({ frames }) => frames.find((frame) => frame.run?.state === "finished"));
    expect(shown.run).toMatchObject({ step: 3, lossNats: run.lossNats });
    record.child.kill();
    expect((await record.exit).code).toBe(0);
  });

  it.each([
    ["a port that is none", ["--dashboard", "70000"], /dashboard\.port to be a whole number from 0 to 65535/],
    ["a host without a dashboard", ["--dashboard-host", "0.0.0.0"], /--dashboard-host with --dashboard/],
  ])("refuses %s, with exit code 2", async (_what, flags, message) => {
    const { code, said } = await start(["run", tiny, ...data, ...flags], workspace.folder).exit;
    expect(said).toMatch(message);
    expect(code).toBe(2);
  });
});
