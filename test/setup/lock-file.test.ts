import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

interface Entry {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const text = readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8");
const packages: Readonly<Record<string, Entry>> = JSON.parse(text).packages;

it("names no registry, so that npm ci works behind every mirror", () => {
  expect(Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined)).toEqual([]);
});

it("lists the packages of every platform, without which npm ci refuses it", () => {
  const named = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
  expect(named.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([]);
});
