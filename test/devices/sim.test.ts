import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import {
  deviceCount,
  empty,
  full,
  hold,
  liveHandle,
  liveTensors,
  memory,
  native,
  onDevice,
  ops,
  scope,
  type Tensor,
  tagMemory,
  tensor,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { grad } from "../../src/entries/tensor.ts";
import { pretend } from "../fixtures/devices/pretend.ts";
import { refusal } from "../tensor/numbers.ts";

const SIM = "sim:0";
const seeds = [1, 2, 3, 4, 5];

function mappings(): string {
  return readFileSync("/proc/self/maps", "utf8");
}
const before = {
  threads: readdirSync("/proc/self/task").length,
  maps: mappings(),
  loaded: native().liveTensors(),
};

const late = {
  stream: (number: number) => pretend().simStream(number),
  record: () => pretend().simRecord(),
  block: (event: number) => pretend().simBlock(event),
  use: (tensor: Tensor) => pretend().simUse(liveHandle(tensor, "use")),
  synchronize: () => pretend().simSynchronize(),
  copy: (to: Tensor, from: Tensor) => pretend().copyLate(liveHandle(to, "copy"), liveHandle(from, "copy")),
};

/** Numbers that no poison is. */
function counted(numel = 4096): Tensor {
  return ops.arange(1, numel + 1, 1, "float32");
}

function numbers(of: Tensor): number[] {
  return [...(of.toTypedArray() as Float32Array)];
}

/** At how many seeds something holds. */
function atSeeds(holds: () => boolean): number {
  return seeds.filter((seed) => {
    pretend().simSeed(seed);
    return holds();
  }).length;
}

afterEach(() => {
  pretend().simStream(0);
  expect(liveTensors()).toBe(0);
});

describe("the pretend device", () => {
  it("costs no thread and no memory before it is used", () => {
    expect(before.maps).not.toContain("troupe-sim");
    native().setNumThreads(1);
    const threads = readdirSync("/proc/self/task").length;
    expect(deviceCount("sim")).toBe(2);
    expect(readdirSync("/proc/self/task").length).toBe(threads);
    expect(mappings()).toContain("troupe-sim");
  });

  it("computes late, to the CPU's bits", () => {
    scope(() => {
      const compute = () => {
        const x = counted(64 * 64)
          .view([64, 64])
          .mul(1e-3);
        const y = x.matmul(x).softmax(-1).add(x.t());
        const [top] = y.topk(3);
        y.narrow(0, 3, 5).mul_(2).add_(1);
        return [
          y,
          top as Tensor,
          y.sum(),
          y.select(1, 4),
          ops.cat([x, y], 1),
          y.to("bfloat16").to("float32"),
        ];
      };
      const expected = compute().map(numbers);
      const count = pretend().simStatistics().lateOperators;
      const results = onDevice(SIM, compute);
      const waited = pretend().simStatistics().readBacks;
      expect(pretend().simStatistics().lateOperators).toBeGreaterThan(count + 10);
      expect(results.map((result) => result.device)).toEqual(results.map(() => SIM));
      expect(results.map(numbers)).toEqual(expected);
      expect(pretend().simStatistics().readBacks).toBe(waited + results.length);
    });
  });

  it("gives Troupe's own operators and their gradients the CPU's bits, and reads nothing back for them", () => {
    scope(() => {
      const run = (device: "cpu" | "sim:0") =>
        onDevice(device, () => {
          const leaf = (shape: number[], scale: number) =>
            counted(shape.reduce((a, b) => a * b, 1))
              .view(shape)
              .mul(scale)
              .sin()
              .requiresGrad_();
          const x = leaf([2, 8, 32], 0.7);
          const weight = leaf([32], 0.3);
          const bias = leaf([32], 0.2);
          const table = leaf([50, 32], 0.11);
          const targets = ops.arange(0, 16, 1, "int64");
          const begun = pretend().simStatistics().readBacks;
          const normed = ops.troupe.layerNorm(x, weight, bias, 1e-5);
          const [sum, second] = ops.troupe.addLayerNorm(normed, x, weight, bias, 1e-5) as [Tensor, Tensor];
          const heads = second.view([2, 8, 4, 8]).transpose(1, 2);
          const attended = ops.troupe
            .attention(heads, heads, heads, true, 0.35)
            .transpose(1, 2)
            .reshape([2, 8, 32]);
          const active = ops.troupe.biasGelu(attended.add(sum), bias);
          const gated = ops.troupe.swiglu(active, ops.troupe.rmsNorm(active, weight, 1e-5));
          const dropped = ops.troupe.dropout(gated, 0.1, 7, 3, 0, 1, 1);
          const loss = ops.troupe.linearCrossEntropy(dropped.view([16, 32]), table, targets, -100);
          const plain = ops.troupe.crossEntropy(dropped.view([16, 32]).matmul(table.t()), targets, -100);
          const gradients = grad([loss.add(plain.mul(0.5))], [x, weight, bias, table]);
          expect(pretend().simStatistics().readBacks).toBe(begun);
          return [loss, plain, ...gradients].map((value) => numbers(value as Tensor));
        });
      expect(run(SIM)).toEqual(run("cpu"));
    });
  });

  it("ends a process whose CPU touches its memory, and says so", () => {
    const program = `
      import { full, liveHandle, native, onDevice } from ${JSON.stringify(new URL("../../src/compute/tensor/index.ts", import.meta.url).pathname)};
      const tensor = onDevice("sim:0", () => full([4], 1));
      native().simSynchronize();
      native().touch(liveHandle(tensor, "touch"));
      console.log("reached");`;
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
    expect(child.signal).toBe("SIGSEGV");
    expect(child.stderr).toContain(
      "[sim] expected the CPU to touch its own memory, got a touch of the device's",
    );
    expect(child.stdout).not.toContain("reached");
  });

  it("keeps a stream that does not wait for another from its values, and shows them to one that does", () => {
    scope(() => {
      const wrong = seeds.filter((seed) => {
        pretend().simSeed(seed);
        const read = (waits: boolean, shift: number) =>
          scope(() => {
            late.stream(1);
            const made = onDevice(SIM, () => counted().add(shift));
            const event = late.record();
            late.stream(2);
            if (waits) late.block(event);
            const result = numbers(made.mul(1));
            late.stream(1);
            late.synchronize();
            return result[4000];
          });
        expect(read(true, seed)).toBe(4001 + seed);
        return read(false, -seed) !== 4001 - seed;
      });
      expect(wrong.length).toBeGreaterThanOrEqual(3);
    });
  });

  it("spoils a late copy whose buffer on the host is used again before it has run, and leaves one that is waited for", () => {
    scope(() => {
      const buffer = counted();
      const expected = numbers(buffer);
      const send = (waits: boolean) =>
        scope(() => {
          const target = onDevice(SIM, () => empty([4096]));
          late.copy(target, buffer);
          if (waits) late.synchronize();
          buffer.fill_(-7);
          const result = numbers(target);
          buffer.copyFrom(Float32Array.from(expected));
          return result;
        });
      pretend().simSeed(1);
      late.stream(3);
      expect(send(true)).toEqual(expected);
      expect(atSeeds(() => send(false)[0] === -7)).toBeGreaterThanOrEqual(3);
    });
  });

  it("shows poison to a host that reads before its late copy has come", () => {
    scope(() => {
      const source = onDevice(SIM, () => counted());
      const target = full([4096], 5);
      pretend().simSeed(1);
      late.stream(0);
      const wrong = seeds.filter((seed) => {
        pretend().simSeed(seed);
        late.copy(target, source.add(0));
        const early = numbers(target)[4000];
        late.synchronize();
        expect(numbers(target)[4000]).toBe(4001);
        return early !== 4001;
      });
      expect(wrong.length).toBeGreaterThanOrEqual(3);
    });
  });

  it("memory freed under another stream is poisoned unless that stream recorded its use", () => {
    scope(() => {
      const read = (records: boolean) => {
        late.stream(4);
        const made = hold(() => onDevice(SIM, () => counted().add(0)));
        const event = late.record();
        late.stream(5);
        late.block(event);
        if (records) late.use(made);
        const result = made.mul(1);
        made.dispose();
        late.stream(4);
        late.synchronize();
        late.stream(5);
        return numbers(result)[4000];
      };
      for (const seed of seeds) {
        pretend().simSeed(seed);
        expect(read(true)).toBe(4001);
      }
      expect(atSeeds(() => Number.isNaN(read(false)))).toBeGreaterThanOrEqual(3);
    });
  });

  it("uses freed memory again at once for the same stream, in order", () => {
    scope(() => {
      late.stream(6);
      const held = memory().peakByTag["sim test"] ?? 0;
      const result = tagMemory("sim test", () =>
        onDevice(SIM, () => {
          let x = hold(() => counted(1 << 16));
          for (let i = 0; i < 200; i++) {
            const next = hold(() => x.add(1));
            x.dispose();
            x = next;
          }
          return x;
        }),
      );
      expect(numbers(result)[9]).toBe(210);
      expect(memory().peakByTag["sim test"] ?? 0).toBeLessThanOrEqual(held + 3 * 4 * (1 << 16));
      result.dispose();
      expect(memory().byTag["sim test"]).toBe(0);
    });
  });

  it("reports an operator that failed late by its name, to every waiter", () => {
    scope(() => {
      const lookup = () => {
        late.stream(7);
        const table = onDevice(SIM, () => zeros([4, 2]));
        const outside = onDevice(SIM, () => tensor(BigInt64Array.from([9n])));
        const rows = ops.embedding(table, outside);
        const event = late.record();
        late.stream(8);
        late.block(event);
        return rows.sum().item();
      };
      const refused = refusal(lookup);
      expect(refused?.code).toBe("TENSOR_OP_FAILED");
      expect(refused?.message).toContain("[index_select]");
      expect(refused?.message).toContain("found late");
      late.stream(7);
      expect(refusal(() => late.synchronize())?.message).toContain("[index_select]");
      late.synchronize();
    });
  });

  it("refuses operands on two devices, and shapes that do not fit, at the call", () => {
    scope(() => {
      const here = onDevice(SIM, () => zeros([3]));
      const there = onDevice("sim:1", () => zeros([3]));
      expect(refusal(() => here.add(there))?.message).toContain("one device");
      expect(refusal(() => here.add(zeros([3])))?.message).toContain("one device");
      expect(refusal(() => here.add(onDevice(SIM, () => zeros([4]))))?.message).toContain(
        "must match the size",
      );
      expect(numbers(here.add(zeros([])))).toEqual([0, 0, 0]);
      expect(numbers(there.add(1).onto(SIM))).toEqual([1, 1, 1]);
    });
  });
});
