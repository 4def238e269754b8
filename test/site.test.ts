import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, launchChromium } from "../scripts/chromium.ts";
import { patience } from "./fixtures/patience.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const site = join(root, "build", "site");

const chromium = findChromium();
if (chromium === undefined) {
  console.warn("test/site.test.ts: skipped, no Chromium (apt-get install chromium, or CHROMIUM_PATH)");
}

function build(what: "pages" | "api") {
  const script = join(root, "scripts", "docs.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--only", what], {
    encoding: "utf8",
  });
  // esbuild does not know the target of this repository's tsconfig.json, which it comes by and does not use.
  const lines = `${stdout}${stderr}`.split("\n").filter((line) => !line.includes("[tsconfig.json]"));
  return { status, wrong: lines.filter((line) => /warning|error/i.test(line)) };
}

const types: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

function serve(): Server {
  return createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
    try {
      const body = readFileSync(join(site, decodeURIComponent(path)));
      response
        .writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" })
        .end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
}

/** A question of a newcomer, the links to click from the first page on, and the sentence that answers it. */
const questions: readonly (readonly [question: string, clicks: readonly string[], answer: RegExp])[] = [
  [
    "how do I resume on other hardware?",
    ["Save and resume", "Resume on other hardware"],
    /resumes on any number of ranks and hosts, on CPUs or GPUs/,
  ],
  ["which families?", ["Families of models"], /llama.*mistral.*qwen2/],
  ["what does exit code 75 mean?", ["exit codes"], /75\s*a signal ended the run, and its state is saved/],
  ["how do I write a sink?", ["A sink"], /runtime\.addSink\(/],
  [
    "what is promised when a rank dies?",
    ["promises under failures"],
    /A rank that dies in any phase of a step changes no loss/,
  ],
];

describe.skipIf(chromium === undefined)("the site of the pages, in Chromium", () => {
  const server = serve();
  let browser: Browser;
  let page: Page;
  let address = "";

  beforeAll(async () => {
    expect(build("pages")).toEqual({ status: 0, wrong: [] });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    browser = await launchChromium(chromium as string);
    page = await browser.newPage();
    page.setDefaultTimeout(patience.timeout);
  });
  afterAll(async () => {
    await browser?.close();
    server.close();
  });

  it.each(questions)("answers within three clicks from its first page: %s", async (_, clicks, answer) => {
    expect(clicks.length).toBeLessThanOrEqual(3);
    await page.goto(address);
    for (const name of clicks) {
      await page.locator("main, .VPDocAside").getByRole("link", { name, exact: true }).first().click();
    }
    await page.locator("main").filter({ hasText: answer }).waitFor();
  });

  it("follows a link from a page to one in another folder", async () => {
    await page.goto(`${address}guide/save-and-resume.html`);
    await page.locator("main").getByRole("link", { name: "The format", exact: true }).click();
    await page.waitForURL(/reference\/checkpoint-format/);
  });

  it("finds a page by its words", async () => {
    await page.goto(address);
    await page.locator("#local-search button").click();
    await page.locator("#localsearch-input").fill("exit code 75");
    await page.locator("#localsearch-list a").first().click();
    await page.waitForURL(/exit-codes/);
  });
});

describe("the API's pages", () => {
  it("have each export of each entry by its doc comment, whose links and parameters exist", () => {
    expect(build("api")).toEqual({ status: 0, wrong: [] });
    const classes = readdirSync(join(site, "api", "classes"));
    expect(classes.filter((file) => /(^|\.)Runtime\.html$/.test(file))).toHaveLength(1);
  });
});
