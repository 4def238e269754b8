import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type * as z from "zod";
import { optionsPage } from "../../scripts/options-page.ts";
import { optionTypes } from "../../scripts/options-types.ts";
import type { RuntimeOptions } from "../../src/job/options/options.generated.ts";
import type { runtimeSchema } from "../../src/job/options/schema.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

it("has the types of all options as the schema makes them (npm run docs:write writes them)", () => {
  expect(read("src/job/options/options.generated.ts")).toBe(optionTypes());
});

it("has a page of every option as the schema makes it (npm run docs:write writes it)", () => {
  expect(read("docs/reference/options.md")).toBe(optionsPage());
});

it("lets a script write what the schema takes, and the schema take what a script may write", () => {
  type Taken = z.input<typeof runtimeSchema>;
  // These two are wider in a script: any number may be written, and is checked when it is read.
  type Wide = "zero" | "lossScale";
  const taken = (options: Omit<RuntimeOptions, Wide>): Omit<Taken, Wide> => options;
  const written = (options: Taken): Omit<RuntimeOptions, "lossScale"> => options;
  expect([taken({}), written({})]).toEqual([{}, {}]);
});
