import { expect, it } from "vitest";
import { openCommunicator } from "../../src/collectives/index.ts";
import { normal } from "../kernels/inputs.ts";
import { numbers } from "../tensor/numbers.ts";
import { back, hasGpu, onGpu } from "./gpu.ts";

it.skipIf(!hasGpu)(
  "a group of one by NCCL gives each collective's own input back, behind what computed it",
  () => {
    using group = openCommunicator({ backend: "nccl", name: "alone", rank: 0, size: 1, deadlineMs: 60_000 });
    const values = normal([1000], 1);
    for (let round = 0; round < 3; round++) {
      const computed = onGpu(values).mul(2).add(round);
      const expected = numbers(values.mul(2).add(round));
      group.allReduce(computed).wait();
      expect(numbers(back(computed))).toEqual(expected);
      const gathered = computed.mul(0);
      group.allGather(gathered, computed).wait();
      expect(numbers(back(gathered))).toEqual(expected);
      const scattered = computed.mul(0);
      group.reduceScatter(scattered, computed).wait();
      expect(numbers(back(scattered))).toEqual(expected);
      group.broadcast(computed, 0).wait();
      group.barrier();
    }
  },
);
