import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { keep, liveTensors, ops, scope, type Tensor, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { numbers, refusal } from "./numbers.ts";

/** How many more tensors are alive after `body` than before. */
function left(body: () => void): number {
  const before = liveTensors();
  body();
  return liveTensors() - before;
}

describe("scope", () => {
  it("releases what was made inside and keeps what it returns", () => {
    let inner: Tensor | undefined;
    const result = scope(() => {
      inner = zeros([2]);
      return inner.add(1);
    });
    expect(numbers(result)).toEqual([1, 1]);
    expect(inner?.disposed).toBe(true);
    expect(refusal(() => inner?.add(1))).toMatchObject({ code: "TENSOR_DISPOSED" });
    result.dispose();
  });

  it("finds returned tensors in arrays and plain objects at any depth", () => {
    const before = liveTensors();
    const result = scope(() => {
      zeros([1]);
      return { loss: zeros([1]), parts: [{ a: zeros([1]) }, zeros([1])], step: 3, none: null };
    });
    expect(liveTensors() - before).toBe(3);
    expect(result.parts).toHaveLength(2);
    for (const t of [result.loss, (result.parts[0] as { a: Tensor }).a, result.parts[1] as Tensor])
      t.dispose();
    expect(liveTensors() - before).toBe(0);
  });

  it("does not run for ever on a value that contains itself", () => {
    const round: { self?: unknown; t?: Tensor } = {};
    scope(() => {
      round.self = round;
      round.t = zeros([1]);
      return round;
    });
    expect(round.t?.disposed).toBe(false);
    round.t?.dispose();
  });

  it("passes what it returns to the enclosing scope", () => {
    const count = left(() => {
      scope(() => {
        const inner = scope(() => zeros([1]));
        expect(inner.disposed).toBe(false);
      });
    });
    expect(count).toBe(0);
  });

  it("leaves tensors of the enclosing scope alone, returned or not", () => {
    scope(() => {
      const outer = zeros([1]);
      expect(scope(() => outer)).toBe(outer);
      scope(() => outer.add(1));
      expect(outer.disposed).toBe(false);
    });
  });

  it("releases everything when the body throws, and rethrows", () => {
    const count = left(() => {
      expect(() =>
        scope(() => {
          zeros([1]).add(1);
          throw new Error("body");
        }),
      ).toThrow("body");
    });
    expect(count).toBe(0);
  });

  it("refuses a body that returns a promise, and releases what it made", () => {
    const count = left(() => {
      expect(refusal(() => scope(async () => zeros([1])))).toMatchObject({ code: "TENSOR_SCOPE_ASYNC" });
    });
    expect(count).toBe(0);
  });

  it("releases lists of results and views too", () => {
    const count = left(() => {
      scope(() => ops.split(zeros([6]), 2).map((part) => part.view([2, 1]).t()).length);
    });
    expect(count).toBe(0);
  });

  it("releases more tensors than the argument frame has room for", () => {
    const count = left(() => scope(() => void Array.from({ length: 40_000 }, () => zeros([0]))));
    expect(count).toBe(0);
  });

  it("does not grow while its body disposes what it makes", () => {
    scope(() => {
      const before = liveTensors();
      for (let i = 0; i < 50_000; ++i) zeros([0]).dispose();
      expect(liveTensors()).toBe(before);
    });
  });
});

describe("disposal", () => {
  it("happens at the end of a `using` block", () => {
    const count = left(() => {
      using t = zeros([2]);
      expect(t.disposed).toBe(false);
    });
    expect(count).toBe(0);
  });

  it("may be asked for twice", () => {
    const t = zeros([2]);
    t.dispose();
    t.dispose();
    expect(t.disposed).toBe(true);
    expect(String(t)).toBe("Tensor (disposed)");
  });

  it("does not take the memory from a view", () => {
    const t = tensor([1, 2]);
    const view = t.view([2, 1]);
    t.dispose();
    expect(numbers(view)).toEqual([1, 2]);
    view.dispose();
  });

  it("is not undone by another tensor taking the slot", () => {
    const stale = zeros([1]);
    const { handle } = stale;
    stale.dispose();
    const next = zeros([1]);
    expect(next.handle).not.toBe(handle);
    next.dispose();
  });
});

describe("keep", () => {
  it("takes a tensor out of every scope", () => {
    const holder: { kept?: Tensor } = {};
    scope(() => {
      const t = zeros([1]);
      scope(() => void keep(t));
      holder.kept = t;
    });
    expect(holder.kept?.disposed).toBe(false);
    holder.kept?.dispose();
  });

  it("a kept tensor is released by dispose", () => {
    const count = left(() => {
      let kept: Tensor | undefined;
      scope(() => {
        kept = keep(zeros([1]));
      });
      expect(kept?.disposed).toBe(false);
      kept?.dispose();
    });
    expect(count).toBe(0);
  });
});

describe("the net under tensors outside every scope", () => {
  it("releases them once nothing refers to them", async () => {
    const before = liveTensors();
    (() => {
      for (let i = 0; i < 100; ++i) zeros([10]);
    })();
    for (let i = 0; i < 20 && liveTensors() > before; ++i) {
      globalThis.gc?.();
      await setImmediate();
    }
    expect(liveTensors()).toBeLessThanOrEqual(before);
  });

  it("tells V8 of their memory, so that a loop that yields does not pile up gigabytes", async () => {
    const sizeBytes = 4 * 2 ** 20;
    let most = 0;
    for (let i = 0; i < 400; ++i) {
      zeros([sizeBytes], { dtype: "uint8" });
      most = Math.max(most, liveTensors());
      await setImmediate();
    }
    expect(most * sizeBytes).toBeLessThan(400 * sizeBytes * 0.5);
  });
});
