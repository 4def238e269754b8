// Four clerks behind one ref, supervised: a client always has the same clerk.
import { ActorSystem } from "troupe/actors";
import type { Clerk } from "./clerk.ts";

await using actors = new ActorSystem({ name: "office" });
// #region pool
const clerks = await actors.pool<Clerk, { ink: string }>({
  name: "clerks",
  module: new URL("./clerk.ts", import.meta.url),
  size: 4,
  route: { key: "client" },
  init: (index) => ({ ink: index % 2 === 0 ? "blue" : "black" }),
  restarts: 3,
  withinMs: 60_000,
  onRestart: ({ child, cause }) => console.log(`${child} starts again: ${cause?.message}`),
  onEscalate: (cause) => console.log(`the office closes: ${cause.message}`),
});
// #endregion
// #region stream
for (const text of ["a will", "a deed"]) clerks.tell("file", { client: "Ada", text });
const reading = clerks.stream("read", { client: "Ada" }, { deadlineMs: 10_000 });
for await (const text of reading) console.log(text);
// #endregion
// #region fail
clerks.tell("fail", { client: "Ada", why: "the ink is spilt" });
const question = { client: "Ada" };
const answer = await clerks.ask("count", question, { deadlineMs: 10_000 }).catch(() => undefined);
const { texts } = answer ?? (await clerks.ask("count", question, { deadlineMs: 10_000 }));
console.log(`${texts} texts after the restart`);
// #endregion
