import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, launchChromium } from "../../scripts/chromium.ts";
import { Runtime } from "../../src/entries/index.ts";
import { type ActorStatus, Dashboard } from "../../src/job/dashboard/index.ts";
import type { EventOf } from "../../src/job/events/index.ts";
import { samples } from "../events/samples.ts";
import { patience } from "../fixtures/patience.ts";
import { tinyJob, Workspace } from "../fixtures/run-tiny.ts";
import { begun, stamped, stepped } from "./stepped.ts";

const chromium = findChromium();
if (chromium === undefined) {
  console.warn(
    "test/dashboard/page.test.ts: skipped, no Chromium (apt-get install chromium, or CHROMIUM_PATH)",
  );
}

describe.skipIf(chromium === undefined)("the page, in Chromium", () => {
  const workspace = new Workspace();
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  /** Errors in any page: there must be none. */
  const complaints: string[] = [];
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium(chromium as string);
  });
  afterAll(async () => {
    await browser?.close();
    workspace[Symbol.dispose]();
    rmSync(folder, { recursive: true });
    expect(complaints).toEqual([]);
  });

  async function look(url: string | undefined, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(patience.timeout);
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => {
      // That a server is gone for a while is part of what is tested.
      if (message.type() === "error" && !/ERR_CONNECTION|401/.test(message.text()))
        complaints.push(message.text());
    });
    await page.goto(url as string);
    return page;
  }

  const textOf = (page: Page, selector: string) => page.locator(selector).textContent();
  const figureOf = (page: Page, chart: string) => page.locator(`#${chart} data`).getAttribute("value");
  const shows = (page: Page, selector: string, text: string | RegExp) =>
    page.locator(selector).filter({ hasText: text }).first().waitFor(patience);
  const background = (page: Page) =>
    page.evaluate("getComputedStyle(document.documentElement).backgroundColor");

  it("shows a run to its end, with the values that its events have", async () => {
    const runtime = await Runtime.spawn({ ranks: 2, threadsPerRank: 1, steps: 6, dashboard: { port: 0 } });
    const steps: EventOf<"step.finished">[] = [];
    runtime.events$.subscribe((event) => {
      if (event.kind === "step.finished") steps.push(event);
    });
    const page = await look(runtime.dashboardUrl);
    await shows(page, "#facts", "Waiting for a run");
    await runtime.run(tinyJob, { data: workspace.text, cache: workspace.path("cache") });
    await shows(page, "#state", "finished");
    const last = steps.at(-1);
    expect(await textOf(page, ".done")).toBe("6 of 6 steps");
    expect(await textOf(page, "#facts")).toMatch(
      /2 ranks = 2 replicas · ZeRO 3 · fp32 · threads · seed 1337/,
    );
    await page.locator("#loss[data-points='6']").waitFor();
    expect(await figureOf(page, "loss")).toBe(String(last?.lossNats));
    expect(await figureOf(page, "gradient-norm")).toBe(String(last?.gradientNorm));
    expect(await figureOf(page, "learning-rate")).toBe(String(last?.learningRate));
    // Once all have stopped, by the events alone: a feeder, and for each rank its shard and itself.
    await page.locator("#board tr").nth(4).waitFor();
    expect(await page.locator("#board tr").count()).toBe(5);
    await runtime.stop();
    await shows(page, "#link", "not connected");
    await page.context().close();
  });

  it("shows what each actor does while a rank hangs, by the status board", async () => {
    const runtime = await Runtime.spawn({ ranks: 2, threadsPerRank: 1, dashboard: { port: 0 } });
    const page = await look(runtime.dashboardUrl);
    const config = { data: workspace.text, cache: workspace.path("cache"), fault: "hang", faultAt: 2 };
    const ended = runtime.run(tinyJob, config).catch((error: Error) => error);
    const row = (actor: string) => `#board tr[data-actor=${actor}]`;
    // It was at its third loss, and is for seconds: what hangs does not stand beside what merely takes its time.
    await shows(page, `${row("rank-1")}`, /step.*#\d+.*([2-9]|\d\d)\u202fs/);
    await shows(page, `${row("rank-0")}`, /waits for shard-0/);
    await runtime.stop();
    expect(await ended).toBeInstanceOf(Error);
    await page.context().close();
  });

  it("the page says that no step comes, and names each actor's state", async () => {
    const stuck: ActorStatus = {
      actor: "rank-1",
      role: "rank",
      incarnation: 1,
      pid: 1,
      state: "handling",
      ageMs: 60_000,
      handling: "step",
      waitingFor: undefined,
      numQueued: 3,
      numHandled: 7,
      op: { name: "forward", block: "", sequence: 1203, ageMs: 34_000 },
      collective: { name: "allReduce", group: "tp 0-1", sequence: 87, isWaiting: false, ageMs: 33_000 },
    };
    await using dashboard = await Dashboard.open(
      { port: 0 },
      { inspect: () => [stuck], clock: () => 1_500_000 },
    );
    dashboard.write(begun());
    dashboard.write(stepped(1));
    const page = await look(dashboard.url);
    await shows(
      page,
      "#alarm",
      /No step for 8:\d\d\. rank-1 step: forward #1203, after allReduce #87 of tp 0-1/,
    );
    await shows(page, "tr.stuck", /rank-1.*forward #1203, after allReduce #87 of tp 0-1.*1:00.*3/);
    await page.context().close();
  });

  it("shows what a script learns from: rewards, lengths, divergence, staleness, and texts to read", async () => {
    await using dashboard = await Dashboard.open({ port: 0 });
    dashboard.write(begun());
    const page = await look(dashboard.url);
    await shows(page, ".done", "0 of 4,000 steps");
    expect(await page.locator("#reward").isHidden()).toBe(true);
    expect(await page.locator("#judged").isHidden()).toBe(true);
    for (const step of [0, 1, 2]) {
      dashboard.write(stepped(step + 1));
      dashboard.write(stamped({ ...samples["rollouts.judged"], step, round: step, meanReward: step / 4 }));
    }
    await page.locator("#reward[data-points='3']").waitFor();
    const { meanTokens, klNats, staleness } = samples["rollouts.judged"];
    expect(await figureOf(page, "reward")).toBe("0.5");
    expect(await figureOf(page, "length")).toBe(String(meanTokens));
    expect(await figureOf(page, "kl")).toBe(String(klNats));
    expect(await figureOf(page, "staleness")).toBe(String(staleness));
    await shows(page, "#judged-round", "round 2");
    expect(await page.locator("#judged-list li").allTextContents()).toEqual(["1.003 1 21 2 3"]);
    // A run that goes back makes its steps again; the script reports once.
    dashboard.write(stamped({ ...samples["run.restored"], step: 1 }));
    await shows(page, "#state", "restarting");
    await page.locator("#reward[data-points='3']").waitFor();
    await page.context().close();
  });

  it("finds a run again after its server restarted, and goes on with it", async () => {
    const tokenFile = join(folder, "token");
    const first = await Dashboard.open({ port: 0, tokenFile });
    const port = Number(new URL(first.url).port);
    first.write(begun({ job: "a.ts", steps: 9 }));
    first.write(stepped(1));
    const page = await look(first.url);
    await shows(page, ".done", "1 of 9 steps");
    await first.close();
    await shows(page, "#link", "not connected");
    await using second = await Dashboard.open({ port, tokenFile });
    second.write(begun({ job: "a.ts", steps: 9, firstStep: 5 }));
    second.write(stepped(6));
    await shows(page, ".done", "6 of 9 steps");
    expect(await textOf(page, "#link")).toBe("live");
    await page.context().close();
  });

  it("stays smooth over long runs: 10,000 steps are drawn by some 2,000 points, and its cursor goes by keys too", async () => {
    await using dashboard = await Dashboard.open({ port: 0 });
    dashboard.write(begun({ steps: 10_000 }));
    const numSteps = 10_000;
    for (let step = 1; step <= numSteps; step++) {
      dashboard.write(stepped(step, { lossNats: 2, gradientNorm: 1 }));
    }
    const page = await look(dashboard.url);
    await shows(page, ".done", "10,000 of 10,000 steps");
    await page.locator("#loss canvas").waitFor();
    const numPoints = Number(await page.locator("#loss").getAttribute("data-points"));
    expect(numPoints).toBeGreaterThan(1000);
    expect(numPoints).toBeLessThan(2100);
    const plot = page.locator("#loss .plot");
    await plot.focus();
    for (const [key, said] of [
      ["ArrowRight", /Loss: 2\.0000 nats, step 10,000/],
      ["ArrowLeft", /step 9,99\d/],
    ] as const) {
      await plot.press(key);
      expect(await plot.getAttribute("aria-label")).toMatch(said);
    }
    // One cursor for all charts.
    expect(await textOf(page, "#gradient-norm .at")).toMatch(/step 9,99\d/);
    await page.context().close();
  });

  it("is light or dark as the system is, and as the button says from then on", async () => {
    await using dashboard = await Dashboard.open({ port: 0 });
    const light = await look(dashboard.url, { colorScheme: "light" });
    const dark = await look(dashboard.url, { colorScheme: "dark" });
    const [paper, night] = [await background(light), await background(dark)];
    expect(paper).not.toBe(night);
    await dark.locator("#theme").focus();
    await dark.locator("#theme").press("Enter");
    expect(await background(dark)).toBe(paper);
    await dark.reload();
    expect(await background(dark)).toBe(paper);
    await shows(dark, "#link", "live");
    for (const page of [light, dark]) await page.context().close();
  });

  it("the page fits a telephone, and shows a loss of NaN and any run's name as text", async () => {
    await using dashboard = await Dashboard.open({ port: 0 });
    const job = "<img src=x onerror=alert(1)>/a-rather-long-path-without-a-single-space-in-it.ts";
    dashboard.write(begun({ job }));
    for (let step = 1; step <= 30; step++) dashboard.write(stepped(step));
    dashboard.write(stepped(31, { lossNats: Number.NaN }));
    dashboard.write(stamped(samples["checkpoint.saved"]));
    dashboard.write(stamped(samples["actor.failed"]));
    dashboard.write(stamped(samples["actor.started"]));
    const page = await look(dashboard.url, { viewport: { width: 400, height: 800 } });
    await shows(page, "h1", job);
    await page.locator("#loss canvas").waitFor();
    await shows(page, "#loss data", "NaN");
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    expect(await page.locator("h1 img").count()).toBe(0);
    await page.context().close();
  });

  it("asks a visitor without a token for the complete address, and hides the token from the address bar", async () => {
    await using dashboard = await Dashboard.open({ port: 0 });
    dashboard.write(begun({ job: "secret.ts" }));
    const { origin } = new URL(dashboard.url);
    const unauthenticated = await look(origin);
    await unauthenticated.getByRole("dialog", { name: "This page needs its token" }).waitFor();
    expect(await unauthenticated.content()).not.toContain("secret.ts");
    const guest = await look(dashboard.url);
    await shows(guest, "h1", "secret.ts");
    expect(guest.url()).toBe(`${origin}/`);
    await guest.reload();
    await shows(guest, "h1", "secret.ts");
    for (const page of [unauthenticated, guest]) await page.context().close();
  });
});
