// A loop of one's own, its state saved by Troupe: `save` copies and returns, a thread of its own writes.
import { CheckpointService } from "troupe";

await using service = await CheckpointService.open({ dir: process.argv[2] ?? "runs/mine", keepLast: 2 });
service.events$.subscribe((event) => {
  if (event.kind === "checkpoint.saved") console.log(`step ${event.step} is durable in ${event.path}`);
});

const weights = new Float32Array(1_000_000);
for (let step = 1; step <= 30; step++) {
  for (let i = 0; i < weights.length; i++) weights[i] = (weights[i] as number) + step;
  if (step % 10 === 0) service.save({ step, tensors: { weights }, metadata: { loss: 1 / step } });
}
await service.idle();

await using checkpoint = await service.read();
const restored = new Float32Array(weights.length);
await checkpoint.read("weights", new Uint8Array(restored.buffer));
console.log(`step ${checkpoint.state.step} read back: ${restored[0]} = ${weights[0]}`);
