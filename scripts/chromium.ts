import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser that CHROMIUM_PATH names, or one where it usually is; undefined where there is none. */
export function findChromium(): string | undefined {
  const { CHROMIUM_PATH } = process.env;
  return (CHROMIUM_PATH ? [CHROMIUM_PATH] : usual).find((path) => existsSync(path));
}

/** Starts it without a window, without a profile, and silent towards the network. */
export async function launchChromium(executablePath: string): Promise<Browser> {
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  return chromium.launch({ executablePath, headless: true, args });
}
