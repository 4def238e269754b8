import { Runtime } from "troupe";
import { expect, onTestFinished, test } from "vitest";
import type { Judge } from "./actors/judge.ts";

const module = new URL("./actors/judge.ts", import.meta.url);
const deadlineMs = 20_000;

/** A runtime that is stopped when the test has finished. */
async function startRuntime(options: Parameters<typeof Runtime.spawn>[0] = {}): Promise<Runtime> {
  const runtime = await Runtime.spawn(options);
  onTestFinished(() => runtime.stop());
  return runtime;
}

test.each(["thread", "process", "main"] as const)(
  "an actor of a user's file answers and notes (%s)",
  async (placement) => {
    const { actors } = await startRuntime();
    const init = { word: "good" };
    const judge = await actors.spawn<Judge, typeof init>({ name: "judge", module, placement, init });
    judge.tell("note", { text: "first" });
    expect(await judge.ask("mark", { text: "good, very good" }, { deadlineMs })).toBe(2);
    expect(await judge.ask("noted", {}, { deadlineMs })).toEqual(["first"]);
    const other = await actors.spawn<Judge, typeof init>({ name: "other", module, init });
    expect(await other.ask("through", { other: judge, text: "good" }, { deadlineMs })).toBe(1);
  },
);
