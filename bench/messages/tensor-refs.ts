import { liveRefs, liveTensors } from "../../src/compute/tensor/index.ts";
import { ActorSystem } from "../../src/runtime/index.ts";
import { interleave, medianRatio, printLine, spread } from "./rounds.ts";
import type { TensorEchoProtocol } from "./tensor-echo.ts";

const numRounds = 15;
const numWarmUp = 3;
const tripsPerRound = 500;
const module = new URL("./tensor-echo.ts", import.meta.url);

/** A tensor moved to another thread and back: its size must not matter, since its bytes stay where they are. */
export async function measureTensorRefs(): Promise<void> {
  liveTensors(); // the addon is loaded on the main thread first
  await using system = new ActorSystem({ name: "bench" });
  const on = await system.spawn<TensorEchoProtocol>({ name: "echo", module });
  const asker = await system.spawn<TensorEchoProtocol>({ name: "asker", module });
  const trips = (numel: number) => () =>
    asker.ask("trips", { on, numel, count: tripsPerRound, shared: false }, { deadlineMs: 60_000 });
  const [small = [], large = []] = await interleave([trips(1 << 18), trips(1 << 28)], {
    numRounds,
    numWarmUp,
  });
  printLine("tensor moved there and back, 1 MiB, µs", spread(small));
  printLine("tensor moved there and back, 1 GiB, µs", spread(large));
  printLine("  1 GiB / 1 MiB", medianRatio(large, small).toFixed(2));
  if (liveRefs() !== 0) throw new Error(`${liveRefs()} tensor refs were left over`);
}
