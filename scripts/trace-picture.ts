// Draws a stretch of a trace written by `troupe run --trace-file`, as a picture for the documentation:
// node scripts/trace-picture.ts TRACE.json PICTURE.png [--step N] [--title TEXT] [--dark]
import { readFileSync } from "node:fs";
import { numberOf, readArguments, refuse } from "./arguments.mjs";
import { findChromium, launchChromium } from "./chromium.ts";
import { type Drawing, drawingOf } from "./trace-picture/drawing.ts";

const usage = `
usage: node scripts/trace-picture.ts TRACE.json PICTURE.png [OPTIONS]

  --step N      of the trace (3)
  --title TEXT  above the picture
  --dark        light on dark`;
const { values: flags, positionals } = readArguments(
  usage,
  {
    step: { type: "string", default: "3" },
    title: { type: "string" },
    dark: { type: "boolean", default: false },
  },
  2,
);
const [tracePath = "", picturePath = ""] = positionals;
if (tracePath === "" || picturePath === "") refuse(usage, "TRACE.json and PICTURE.png", "fewer");
const step = numberOf(usage, "step", flags.step);
const drawing: Drawing = drawingOf(readFileSync(tracePath, "utf8"), step, flags.title);
const page = readFileSync(new URL("./trace-picture/page.html", import.meta.url), "utf8");
const chromium = findChromium();
if (chromium === undefined)
  throw new Error("[trace-picture] expected a Chromium, got none (set CHROMIUM_PATH)");
const browser = await launchChromium(chromium);
try {
  const tab = await browser.newPage({
    viewport: { width: 1400, height: 200 },
    deviceScaleFactor: 2,
    colorScheme: flags.dark ? "dark" : "light",
  });
  tab.on("pageerror", (error) => console.error(error));
  await tab.setContent(page);
  await tab.evaluate(`draw(${JSON.stringify(drawing)})`);
  await tab.locator("#picture").screenshot({ path: picturePath });
} finally {
  await browser.close();
}
