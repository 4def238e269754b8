// A live model on several hosts, with a judge on each. Run it by `troupe launch`, as a launcher starts it on every host.
import { Runtime } from "troupe";
import type { Judge } from "./judge.ts";

await using runtime = await Runtime.spawn({ seed: 1 });
await using model = await runtime.open(new URL("../hello/job.ts", import.meta.url));
// The hosts have joined.
const judges = await runtime.actors.pool<Judge>({
  name: "judges",
  module: new URL("./judge.ts", import.meta.url),
  placement: "process",
  size: 2,
  hosts: [0, 1],
});
for (let round = 0; round < 2; round++) {
  const texts = await model.generate(["To be ", "or not "], { maxNewTokens: 8, seed: round });
  const ask = (answer = "") => judges.ask("mark", { answer }, { deadlineMs: 10_000 });
  const marks = await Promise.all(texts.map(({ text }) => ask(text)));
  console.log(`round ${round}: ${marks.length} marks`);
}
const places = runtime.inspect().filter(({ actor }) => /^(rank|judges)-/.test(actor));
console.log(
  places
    .map(({ actor, host }) => `${actor}: host ${host}`)
    .toSorted()
    .join(", "),
);
