import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  keep,
  liveTensors,
  memory,
  noGrad,
  ops,
  scope,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";

function runLifecycle(...args: string[]) {
  const script = fileURLToPath(new URL("../fixtures/tensor/lifecycle.ts", import.meta.url));
  return spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
}

describe("threads that come and go", () => {
  it("end in every way, 96 of them, without crashing the process or keeping its memory", () => {
    const child = runLifecycle("96", "main");
    expect({ status: child.status, signal: child.signal, stderr: child.stderr }).toEqual({
      status: 0,
      signal: null,
      stderr: "",
    });
    expect(child.stdout).toBe("refs 192 0 bytes 0\ndone\n");
  });

  it("may be the only ones that load the addon", () => {
    const child = runLifecycle("8");
    expect({ status: child.status, signal: child.signal, stderr: child.stderr }).toEqual({
      status: 0,
      signal: null,
      stderr: "",
    });
    expect(child.stdout).toBe("done\n");
  });
});

describe("a training loop of 1,000 steps", () => {
  it("leaves the number of live tensors and the memory as they were", () => {
    const parameters = [
      keep(
        tensor(
          Float32Array.from({ length: 8 * 32 }, (_, i) => Math.sin(i)),
          { shape: [32, 8] },
        ),
      ),
      keep(zeros([32])),
      keep(
        tensor(
          Float32Array.from({ length: 32 }, (_, i) => Math.cos(i)),
          { shape: [1, 32] },
        ),
      ),
    ].map((parameter) => parameter.requiresGrad_());
    const [first, bias, second] = parameters as [
      (typeof parameters)[0],
      (typeof parameters)[0],
      (typeof parameters)[0],
    ];

    const step = (index: number): number =>
      scope(() => {
        const x = tensor(
          Float32Array.from({ length: 16 * 8 }, (_, i) => Math.sin(index + i)),
          { shape: [16, 8] },
        );
        const target = x.sum([1], true).tanh();
        const loss = ops.mseLoss(ops.linear(ops.linear(x, first, bias).gelu(), second), target);
        loss.backward();
        noGrad(() => {
          for (const parameter of parameters) {
            const gradient = parameter.grad;
            if (gradient !== null) parameter.add_(gradient, -0.02);
            parameter.grad = null;
          }
        });
        return loss.item();
      });

    const early = step(0);
    for (let i = 1; i < 300; ++i) step(i);
    globalThis.gc?.();
    const before = {
      tensors: liveTensors(),
      bytes: memory().totalBytes,
      resident: process.memoryUsage.rss(),
    };
    let last = Number.NaN;
    for (let i = 300; i < 1_300; ++i) last = step(i);
    globalThis.gc?.();

    expect(last).toBeLessThan(early / 10);
    expect(liveTensors()).toBe(before.tensors);
    expect(memory().totalBytes).toBe(before.bytes);
    expect(process.memoryUsage.rss() - before.resident).toBeLessThan(16 * 2 ** 20);
  });
});
