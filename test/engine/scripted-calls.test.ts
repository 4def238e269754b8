import { expect, it } from "vitest";
import { CallLog } from "../../src/actors/engine/conductor/call-log.ts";
import { type CallOrders, ScriptedCalls } from "../../src/actors/engine/conductor/scripted-calls.ts";
import { ActorDown } from "../../src/runtime/index.ts";

const endOf = (actor: string) =>
  new ActorDown(`${actor}#1.kept`, { actor, incarnation: 1, reason: "failed" });

/** Makes a call that reads, where the question for the copy ends with the error. */
function read(error: Error) {
  const calls = new CallLog(0);
  const orders = {
    calls,
    pipeline: { drain: async () => {} },
    checkpointer: { name: "checkpointer", ask: () => Promise.reject(error) },
    step: 0,
  } as unknown as CallOrders;
  const reader = calls.read(0);
  const answer = calls.add("parameters", { pattern: "*" });
  const call = reader.take();
  return { answer, made: call && new ScriptedCalls(orders, reader).make(call) };
}

it("a call that reads fails alone where the checkpointer is lost: no other ranks would ever start", async () => {
  const { answer, made } = read(endOf("checkpointer"));
  await made;
  await expect(answer).rejects.toMatchObject({ code: "ACTOR_DOWN" });
});

it("a call that reads is made again where a rank is lost", async () => {
  const { made } = read(endOf("rank-0"));
  await expect(made).rejects.toMatchObject({ code: "ACTOR_DOWN" });
});
