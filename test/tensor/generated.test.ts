import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generateFiles } from "../../scripts/operators/emit-files.ts";
import { parseSchema } from "../../scripts/operators/schema.ts";
import { nativeInfo } from "../../src/compute/tensor/index.ts";
import { native } from "../../src/compute/tensor/native.ts";

describe("the generated operators", () => {
  it("are what the generator writes today", (context) => {
    const { torch } = nativeInfo();
    const read = (name: string) =>
      readFileSync(new URL(`../../src/compute/tensor/${name}`, import.meta.url), "utf8");
    if (!read("schemas.generated.ts").includes(`libtorch ${torch}.`))
      context.skip(`not generated from libtorch ${torch}`);
    const { texts } = generateFiles([...native().schemas("aten"), ...native().schemas("troupe")], torch);
    for (const [name, text] of texts) expect(read(name)).toBe(text);
  });
});

describe("a schema", () => {
  it("is read with its lists, optional arguments and defaults", () => {
    const schema = parseSchema(
      "aten::f.x(Tensor(a!) self, Tensor?[] parts, int[2]? size=None, *, float eps=1e-05) -> Tensor(a!)",
    );
    expect(schema).toMatchObject({ operator: "aten::f", overload: "x", result: "self" });
    expect(schema.arguments).toMatchObject([
      { name: "self", type: "Tensor", list: false, optional: false },
      { name: "parts", type: "Tensor", list: true, optionalElements: true, optional: false },
      { name: "size", type: "int", list: true, fixedLength: true, optional: true, fallback: "None" },
      { name: "eps", type: "float", keywordOnly: true, fallback: "1e-05" },
    ]);
  });

  it("loses the arguments that Troupe leaves at their defaults, and SymInt", () => {
    const { text } = parseSchema(
      "aten::g(SymInt[] size, *, Device? device=None, bool? pin_memory=None) -> Tensor",
    );
    expect(text).toBe("aten::g(int[] size) -> Tensor");
  });

  it("is refused when the argument frame cannot carry it", () => {
    expect(() => parseSchema("aten::h(Stream s) -> Tensor")).toThrow("cannot carry: Stream s");
    expect(() => parseSchema("nonsense")).toThrow("not a schema");
  });
});
