import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { type nativeInfo, ops } from "../../src/compute/tensor/index.ts";
import { refusal } from "../tensor/numbers.ts";
import { normal } from "./inputs.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("./bfloat16-products.ts", import.meta.url));

interface Products {
  readonly products: ReturnType<typeof nativeInfo>["bfloat16Products"];
  readonly distances: Readonly<Record<string, number>>;
}

/** @param isa - the best instruction set that oneDNN may use */
async function multiply(isa: string): Promise<Products> {
  const { stdout } = await run(process.execPath, [script], {
    env: { ...process.env, ONEDNN_MAX_CPU_ISA: isa },
  });
  return JSON.parse(stdout);
}

describe("bfloat16 products", () => {
  it("go through float32 panels where the processor has none, rounded once, as near to float64 as oneDNN's", async () => {
    const [panels, best] = await Promise.all([multiply("AVX2"), multiply("ALL")]);
    expect(panels.products).toBe("float32 panels");
    const greatest = ({ distances }: Products) => Math.max(...Object.values(distances));
    expect(Object.keys(panels.distances)).toHaveLength(33);
    // 1 is what one rounding may cost; a float32 sum of 2,100 products may lose 2^-24 of their magnitudes beside it.
    expect(greatest(panels)).toBeLessThanOrEqual(1.02);
    expect(greatest(panels)).toBeLessThanOrEqual(greatest(best) * 1.02);
  });

  it("refuse operands that do not fit", () => {
    const a = normal([4, 5], 1, { dtype: "bfloat16" });
    expect(refusal(() => a.mm(a))?.message).toMatch(/cannot be multiplied/);
    expect(refusal(() => ops.bmm(a.unsqueeze(0), a.unsqueeze(0)))).toBeDefined();
  });
});
