import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mapFile, scope } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "./numbers.ts";

let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-map-"));
  path = join(folder, "numbers.bin");
  writeFileSync(path, new Uint8Array(new Int16Array([10, 20, 30, 40, 50]).buffer));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe("mapFile", () => {
  it("gives the file's elements as a tensor", () => {
    const t = mapFile(path, "int16", 5);
    expect([t.dtype, t.shape]).toEqual(["int16", [5]]);
    expect(numbers(t.narrow(0, 1, 2))).toEqual([20, 30]);
    expect(numbers(t.add(1))).toEqual([11, 21, 31, 41, 51]);
  });

  it("starts at an offset", () => {
    expect(numbers(mapFile(path, "int16", 2, { offsetBytes: 6 }))).toEqual([40, 50]);
    expect(numbers(mapFile(path, "int16", 0, { offsetBytes: 10 }))).toEqual([]);
  });

  it("keeps the mapping while a view lives", () => {
    const view = scope(() => mapFile(path, "int16", 5).narrow(0, 4, 1));
    expect(numbers(view)).toEqual([50]);
  });

  it("cannot be written, nor can its views; a clone can", () => {
    const t = mapFile(path, "int16", 5);
    expect(refusal(() => t.add_(1))).toMatchObject({ code: "TENSOR_READ_ONLY" });
    expect(refusal(() => t.view([5, 1]).select(0, 0).zero_())).toMatchObject({ code: "TENSOR_READ_ONLY" });
    expect(refusal(() => t.typeAs(t).add_(1))).toMatchObject({ code: "TENSOR_READ_ONLY" });
    expect(refusal(() => t.copyFrom(new Int16Array(5)))).toMatchObject({ code: "TENSOR_READ_ONLY" });
    expect(numbers(t.clone().zero_())).toEqual([0, 0, 0, 0, 0]);
  });

  it("says which file is missing", () => {
    const error = refusal(() => mapFile(join(folder, "none"), "int16", 1));
    expect(error?.code).toBe("FILE_UNREADABLE");
    expect(error?.message).toContain(join(folder, "none"));
    expect(error?.message).toContain("No such file");
  });

  it("says how long a file is that is too short", () => {
    const error = refusal(() => mapFile(path, "int64", 2));
    expect(error?.code).toBe("FILE_TOO_SHORT");
    expect(error?.message).toContain("got a file of 10 bytes");
    expect(refusal(() => mapFile(path, "int16", 1, { offsetBytes: 11 }))).toMatchObject({
      code: "FILE_TOO_SHORT",
    });
    expect(refusal(() => mapFile(path, "int16", 1, { offsetBytes: -2 }))).toMatchObject({
      code: "FILE_TOO_SHORT",
    });
  });

  it("refuses a fraction of an element", () => {
    expect(refusal(() => mapFile(path, "int16", 1.5))).toMatchObject({ code: "TENSOR_ARGUMENT" });
  });
});
