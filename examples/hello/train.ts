// The script: spreads the job over two ranks, and prints the loss of each step.
import { Runtime } from "troupe";

await using runtime = await Runtime.spawn({ ranks: 2, zero: 3 });
runtime.events$.subscribe((event) => {
  if (event.kind === "step.finished") console.log(`step ${event.step}: loss ${event.lossNats.toFixed(3)}`);
});
await runtime.run(new URL("./job.ts", import.meta.url), { layers: 3 });
