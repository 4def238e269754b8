import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorsPage } from "../scripts/errors-page.ts";
import { errorTable, framesOf, TroupeError } from "../src/errors/index.ts";

it("lists every error code in docs/reference/errors.md (npm run docs:write writes it)", () => {
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

it("relays complete sentences only from native code, another thread or a save", () => {
  const source = new URL("../src/", import.meta.url);
  const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const relaying = files.filter((file) => /\{\s*relayed: /.test(readFileSync(new URL(file, source), "utf8")));
  expect(relaying.toSorted()).toEqual([
    "compute/tensor/native.ts",
    "library/data/records/beside.ts",
    "runtime/protocol/failure.ts",
    "tools/cli/run.ts",
  ]);
});

it("reads the file of a frame whose folders have parentheses, and the place of no eval", () => {
  const at = (place: string) =>
    framesOf(`Error: no\n    at ${place}`).map((frame) => Object.values(frame).join(" "));
  expect(at("Object.loss (file:///home/me/job%20(1)/job.ts:3:5)")).toEqual([
    "/home/me/job (1)/job.ts 3 5 loss",
  ]);
  expect(at("async Net.forward (/home/me/job (1)/job.ts:3:5)")).toEqual([
    "/home/me/job (1)/job.ts 3 5 Net.forward",
  ]);
  expect(at("async file:///home/me/(a)/job.ts:3:5")).toEqual(["/home/me/(a)/job.ts 3 5"]);
  expect(at("/home/me/job (1)/job.ts:3:5")).toEqual(["/home/me/job (1)/job.ts 3 5"]);
  expect(at("new Net (file:///job.ts:3:5)")).toEqual(["/job.ts 3 5 new Net"]);
  expect(at("eval (eval at loss (file:///job.ts:3:5), <anonymous>:1:1)")).toEqual([]);
  expect(at("async Promise.all (index 0)")).toEqual([]);
});

it("keeps code, operands and first cause reachable", () => {
  const cause = new Error("disk");
  const error = new TroupeError("USAGE", {
    where: "run",
    expected: "a number",
    got: "x",
    fields: { given: "x" },
    cause,
  });
  expect(error.message).toBe("[run] expected a number, got x");
  expect(error).toMatchObject({ name: "TroupeError", code: "USAGE", fields: { given: "x" }, cause });
});
