import { afterEach, expect, it, vi } from "vitest";
import offload from "../../src/actors/offload.ts";
import type { OffloadPlan, OffloadProtocol } from "../../src/actors/protocols/index.ts";
import { fromValues } from "../../src/compute/nn/index.ts";
import { SGD } from "../../src/compute/optim/index.ts";
import { layoutBlock, replicas } from "../../src/compute/parallel/index.ts";
import {
  full,
  hold,
  moveRef,
  onDevice,
  requireDevice,
  scope,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { native } from "../../src/compute/tensor/native.ts";
import type { ActorContext } from "../../src/runtime/index.ts";
import { pretend } from "../fixtures/devices/pretend.ts";

requireDevice("sim:0");
afterEach(() => {
  vi.restoreAllMocks();
  pretend().simSeed(1);
});

const numel = 8;
const weight = {
  name: "weight",
  shape: [numel],
  dtype: "float32",
  init: fromValues(Array(numel).fill(5)),
} as const;
const layout = layoutBlock(0, "block", 3, [weight], replicas(1));
const context = { board: { set() {} } } as unknown as ActorContext<OffloadProtocol>;

/** @param owned - passes */
const planOf = (owned: OffloadPlan["owned"]) =>
  ({
    run: "run",
    rank: 0,
    layouts: [layout],
    owned,
    optimizers: [new SGD([["weight", weight]], { lr: 1 })],
    initial: { kind: "seed", step: 0, seed: 1 },
    home: { kind: "host" },
    numThreads: 1,
    paged: [],
    deadlineMs: 1_000,
    delayMs: 0,
    trace: false,
  }) as Partial<OffloadPlan> as OffloadPlan;

it("device work behind an update waits for the copy of its parameters, though the host does not", async () => {
  // In most of these schedules a copy is made only when a reader waits for it.
  for (let seed = 1; seed <= 12; seed++) {
    pretend().simSeed(seed);
    using parameters = hold(() => onDevice("sim:0", () => zeros([layout.numel])));
    const owned = moveRef(hold(() => parameters.narrow(0, 0, layout.numel)));
    const { handlers, stop } = await offload.start(context, undefined);
    await handlers.prepare(planOf([owned]));
    // The update itself waits for the copy of the first parameters.
    const arrives = vi.spyOn(native(), "copyArrived").mockReturnValue(new Promise(() => {}));
    const step = { step: 0, block: 0, inspect: [], updateIndex: 1, learningRates: [1], gradientScale: 1 };
    await handlers.update({ update: step, gradient: moveRef(hold(() => full([layout.numel], 1))) });
    expect([seed, scope(() => parameters.select(0, 0).item())]).toEqual([seed, 4]);
    arrives.mockRestore();
    await stop?.(undefined as never);
  }
});
