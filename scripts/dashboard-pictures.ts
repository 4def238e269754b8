// npm run picture:dashboard [-- STEPS FOLDER]: trains the example with a dashboard and takes its picture on the way: light, dark, and as
// a telephone shows it. 2,000 steps and docs/pictures unless given.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ofKind } from "../src/entries/events.ts";
import { Runtime } from "../src/entries/index.ts";
import { readArguments, refuse } from "./arguments.mjs";
import { findChromium, launchChromium } from "./chromium.ts";

const usage = `
usage: npm run picture:dashboard [-- STEPS FOLDER]

Trains the example for STEPS (2000) and writes pictures of its dashboard into FOLDER (docs/pictures)`;
const { positionals } = readArguments(usage, {}, 2);
const [askedSteps = "2000", folder = "docs/pictures"] = positionals;
const steps = Number(askedSteps);
if (!(Number.isInteger(steps) && steps >= 10)) refuse(usage, "STEPS to be at least 10", askedSteps);
/** Far enough for much to be seen, with something still to come. */
const pictureAtStep = Math.ceil(0.85 * steps);
const everySteps = Math.ceil(steps / 8);

const views = [
  { name: "dashboard-light", colorScheme: "light", width: 1440 },
  { name: "dashboard-dark", colorScheme: "dark", width: 1440 },
  { name: "dashboard-narrow", colorScheme: "light", width: 400 },
] as const;

const executable = findChromium();
if (executable === undefined)
  throw new Error(
    "[pictures] expected a Chromium, got none (apt-get install chromium, or set CHROMIUM_PATH)",
  );
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "troupe-pictures-"));

const browser = await launchChromium(executable);
const runtime = await Runtime.spawn({
  ranks: 2,
  steps,
  dashboard: { port: 0 },
  traceEvery: 50,
  checkpoint: { dir: join(scratch, "run"), everySteps, keepLast: 3 },
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, deviceScaleFactor: 2 });
await page.goto(runtime.dashboardUrl as string);

let taken = Promise.resolve();
runtime.events$.subscribe((event) => {
  if (ofKind("step.finished")(event) && event.step === pictureAtStep) taken = takePictures(page);
});
try {
  await runtime.run(new URL("../examples/gpt/job.ts", import.meta.url), { steps, evaluateEvery: everySteps });
  await taken;
} finally {
  await runtime.stop();
  await browser.close();
  rmSync(scratch, { recursive: true });
}

/** One page for all, since lanes are drawn of what a page has seen. */
async function takePictures(page: Page): Promise<void> {
  for (const { name, colorScheme, width } of views) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  }
}
