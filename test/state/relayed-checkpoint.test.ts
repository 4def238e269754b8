import { expect, it } from "vitest";
import type { InitialStateOf } from "../../src/actors/protocols/index.ts";
import { StoredValues } from "../../src/actors/state/initial/stored-values.ts";
import { ActorDown, AskTimeout, StopRequested } from "../../src/runtime/index.ts";

const address = { system: "", uid: 1, name: "checkpointer", incarnation: 1, lanes: {} };

it.each([
  new ActorDown("ask", { actor: "checkpointer", incarnation: 1, reason: "failed" }),
  new AskTimeout(address, "readStored", 1000),
  new StopRequested("restart"),
])(
  "a checkpoint is not damaged where the actor that reads it for another host cannot be reached: $code",
  async (error) => {
    const readers = [{ ask: () => Promise.reject(error) }];
    const initial = {
      kind: "checkpoint",
      path: "/elsewhere/step-000004",
      step: 4,
      reader: { readers, deadlineMs: 1000 },
    };
    await expect(StoredValues.open(initial as unknown as InitialStateOf<"checkpoint">)).rejects.toBe(error);
  },
);
