// Draws a stretch of a trace written by `troupe run --trace-file`, as a picture for the documentation:
// node scripts/trace-picture.ts TRACE.json PICTURE.png [--step N] [--title TEXT] [--dark]
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { findChromium, launchChromium } from "./chromium.ts";
import { type Drawing, drawingOf } from "./trace-picture/drawing.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    step: { type: "string", default: "3" },
    title: { type: "string" },
    dark: { type: "boolean", default: false },
  },
});
const [tracePath, picturePath] = positionals;
if (tracePath === undefined || picturePath === undefined) {
  console.error("node scripts/trace-picture.ts TRACE.json PICTURE.png [--step N] [--title TEXT] [--dark]");
  process.exit(2);
}
const drawing: Drawing = drawingOf(readFileSync(tracePath, "utf8"), Number(flags.step), flags.title);
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
