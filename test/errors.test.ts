import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorsPage } from "../scripts/errors-page.ts";
import { errorTable, TroupeError } from "../src/errors.ts";

it("lists every error code in docs/reference/errors.md (npm run docs:errors writes it)", () => {
  const page = readFileSync(new URL("../docs/reference/errors.md", import.meta.url), "utf8");
  expect(page).toBe(errorsPage());
});

it("knows every code that native code throws", () => {
  const native = new URL("../native/", import.meta.url);
  const files = readdirSync(native, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(cc|h)$/.test(file),
  );
  const codes = files.flatMap((file) => {
    const text = readFileSync(new URL(file, native), "utf8");
    return [...text.matchAll(/\bCodedError\(\s*"([A-Z_0-9]+)"/g)].map(([, code = ""]) => ({ file, code }));
  });
  expect(codes.length).toBeGreaterThan(0);
  expect(codes.filter(({ code }) => !(code in errorTable))).toEqual([]);
});

it("says what was expected, what came and what to do in one sentence", () => {
  const { message } = new TroupeError("USAGE", {
    where: "run",
    expected: "a number",
    got: '"x"',
    hint: "write digits",
  });
  expect(message).toBe('[run] expected a number, got "x" (write digits)');
});

/** Rooms whose errors are all made of their parts: this list only ever gets longer. */
const composed = ["runtime"];

it.each(composed)("makes every error of src/%s of the parts of its sentence", (room) => {
  const folder = new URL(`../src/${room}/`, import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const byHand = files.filter((file) => {
    const text = readFileSync(new URL(file, folder), "utf8");
    return /(?:new TroupeError|\bsuper)\(\s*"[A-Z_]+",\s*["'`]/.test(text);
  });
  expect(files.length).toBeGreaterThan(0);
  expect(byHand).toEqual([]);
});

it("keeps code, operands and first cause reachable", () => {
  const cause = new Error("disk");
  const error = new TroupeError("USAGE", "[run] expected a number, got x (write digits)", {
    fields: { given: "x" },
    cause,
  });
  expect(error).toMatchObject({ name: "TroupeError", code: "USAGE", fields: { given: "x" }, cause });
});
