import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A file of the page. */
export interface Asset {
  readonly contentType: string;
  readonly body: Uint8Array;
}

const script = "text/javascript; charset=utf-8";
const style = "text/css; charset=utf-8";

const modules = [
  ...["actors", "app", "chart", "chart-specs", "charts", "colours", "figures", "lanes", "panels", "plot"],
  ...["stream", "tables", "theme"],
];
const styles = ["actors", "charts", "header", "panels", "style"];

/** Every path that is served, and its file: a path of a request never becomes a path of a file. */
const files: Readonly<Record<string, readonly [contentType: string, url: string]>> = {
  "/": ["text/html; charset=utf-8", local("index.html")],
  "/icon.svg": ["image/svg+xml", local("icon.svg")],
  ...Object.fromEntries(modules.map((name) => [`/${name}.js`, [script, local(`${name}.js`)]])),
  ...Object.fromEntries(styles.map((name) => [`/${name}.css`, [style, local(`${name}.css`)]])),
  "/uplot.js": [script, ofPlot("uPlot.esm.js")],
  "/uplot.css": [style, ofPlot("uPlot.min.css")],
};

/** @returns the page's file at a path of a request; undefined if there is none */
export function assetAt(path: string): Asset | undefined {
  const [contentType, url] = Object.hasOwn(files, path) ? (files[path] ?? []) : [];
  if (contentType === undefined || url === undefined) return undefined;
  return { contentType, body: readFileSync(fileURLToPath(url)) };
}

function ofPlot(name: string): string {
  return new URL(name, import.meta.resolve("uplot")).href;
}

function local(name: string): string {
  return new URL(`./page/${name}`, import.meta.url).href;
}
