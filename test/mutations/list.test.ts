import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { mutations } from "./list.ts";
import { mutate } from "./mutation.ts";

it("every mistake that `npm run mutate` makes still has its place in the product", () => {
  const root = new URL("../../", import.meta.url);
  const lost = mutations.flatMap((mutation) => {
    try {
      mutate(readFileSync(fileURLToPath(new URL(mutation.file, root)), "utf8"), mutation);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  expect(lost).toEqual([]);
});
