import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

interface Entry {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const read = (path: string): Readonly<Record<string, Entry>> =>
  JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")).packages;
const packages = read("package-lock.json");

it.each(["package-lock.json", "scripts/site/package-lock.json"])(
  "%s names no registry, so that npm ci works behind every mirror",
  (path) => {
    const packages = read(path);
    expect(Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined)).toEqual([]);
  },
);

it("lists the packages of every platform, without which npm ci refuses it", () => {
  const named = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
  expect(named.filter((name) => packages[`node_modules/${name}`] === undefined)).toEqual([]);
});
