// A program of one actor: it is spawned, asked, and ends with its system.
import { ActorSystem } from "troupe/actors";
import type { Judge } from "./judge.ts";

await using actors = new ActorSystem({ name: "judging" });
const module = new URL("./judge.ts", import.meta.url);
const judge = await actors.spawn<Judge>({ name: "judge", module });
console.log(await judge.ask("mark", { answer: "to be or not to be" }, { deadlineMs: 10_000 }));
