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

it("a call that is made ahead has its batch at the feeder before a rank asks for it: the model may be paused for long", async () => {
  const put: number[] = [];
  const putBefore: number[][] = [];
  const feeder = {
    tell: (kind: string, { call }: { readonly call: number }) => kind === "put" && put.push(call),
  };
  const calls = new CallLog(0);
  const orders = {
    calls,
    group: { feeder, ranks: [] },
    plan: { generation: 0, layout: { mesh: { dp: 1 } }, training: { accumulation: 1 } },
    pipeline: { add: (work: Promise<unknown>) => void work.catch(() => {}) },
    all: {
      ask: (_to: string, _kind: string, { ahead }: { readonly ahead: readonly object[] }) => {
        putBefore.push([...put]);
        expect(ahead).toHaveLength(putBefore.length === 1 ? 1 : 0);
        return new Promise(() => {});
      },
    },
    step: 0,
    orderOf: () => ({ requests: [], message: {} }),
  } as unknown as CallOrders;
  const reader = calls.read(0);
  const batch = { range: { split: "train", position: 0, numSamples: 2 } };
  const order = { program: "loss", args: undefined, batch, numSamples: 2 };
  for (let call = 0; call < 2; call++) void calls.add("accumulate", order as never);
  const scripted = new ScriptedCalls(orders, reader);
  for (let call = reader.take(); call !== undefined; call = reader.take()) await scripted.make(call);
  expect(putBefore).toEqual([put, put]);
  expect(new Set(put).size).toBe(2);
});
