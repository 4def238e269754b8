import type { LiveModel, ReadModel } from "../../../actors/trainer/index.ts";
import { OpenScope, scope } from "../../../compute/tensor/index.ts";
import type { EventStream } from "../../../job/events/index.ts";
import { Refused } from "../../../job/http.ts";
import type { Job } from "../../../job/index.ts";
import type { Rows } from "../../../library/data/index.ts";
import type { GenerateOptions } from "../../../library/models/index.ts";
import type { FrozenCopies } from "./frozen-copies.ts";
import { batchOf, rowsAsJson } from "./json-tensors.ts";
import type { LocalCall } from "./local-server.ts";
import { replyJson } from "./reply.ts";
import type { Routes } from "./routing.ts";
import { streamEvents } from "./server-sent-events.ts";

/** The events of the runtime that a served model is open on: a `Runtime`. */
export interface EventSource {
  events(): EventStream;
}

/** A request, and the objects that serve it. */
interface ModelCall extends LocalCall {
  readonly model: LiveModel;
  readonly runtime: EventSource;
  readonly copies: FrozenCopies;
}

/** Longest content: a batch of some millions of tokens. */
const maxBytes = 64 << 20;

const generateFields = Object.keys({
  prompts: true,
  samples: true,
  slots: true,
  maxNewTokens: true,
  temperature: true,
  topK: true,
  topP: true,
  repetitionPenalty: true,
  seed: true,
  numBeams: true,
  lengthPenalty: true,
  earlyStopping: true,
  stopTokens: true,
  stopTexts: true,
  padToken: true,
  forcedFirstToken: true,
  forcedLastToken: true,
} satisfies Record<keyof Parameters<LiveModel["generate"]>[1] | "prompts", true>);

/** The protocol: every path and its method, as in the table of `docs/guide/serve-a-model.md`. */
export const modelRoutes: Routes<ModelCall> = [
  { path: /^\/accumulate\/([^/]+)$/, methods: { POST: accumulate } },
  { path: /^((?:\/frozen\/\d+)?)\/call\/([^/]+)$/, methods: { POST: callProgram } },
  { path: /^\/step$/, methods: { POST: step } },
  { path: /^((?:\/frozen\/\d+)?)\/generate$/, methods: { POST: generate } },
  { path: /^((?:\/frozen\/\d+)?)\/evaluate$/, methods: { POST: evaluate } },
  { path: /^\/save$/, methods: { POST: save } },
  { path: /^\/load$/, methods: { POST: load } },
  { path: /^\/frozen$/, methods: { POST: freeze } },
  { path: /^(\/frozen\/\d+)$/, methods: { DELETE: closeCopy } },
  { path: /^\/events$/, methods: { GET: events } },
];

async function accumulate(call: ModelCall, program: string): Promise<void> {
  const { batch, args } = await fieldsOf(call, ["batch", "args"]);
  const make = (given: never) => call.model.accumulate(program as never, given, args as never);
  replyJson(call.response, 200, await withBatch(batch, make));
}

async function callProgram(call: ModelCall, of: string, program: string): Promise<void> {
  const { batch, args } = await fieldsOf(call, ["batch", "args"]);
  const model = modelAt(call, of);
  const make = (given: never) => model.call(program as never, given, args as never);
  const { rows } = await withBatch(batch, make);
  try {
    replyJson(call.response, 200, { rows: scope(() => rowsAsJson(rows as Rows)) });
  } finally {
    for (const row of Object.values(rows as Rows)) row.dispose();
  }
}

async function step(call: ModelCall): Promise<void> {
  const { lr } = await fieldsOf(call, ["lr"]);
  replyJson(call.response, 200, await call.model.step(lr === undefined ? {} : { lr: lr as number }));
}

async function generate(call: ModelCall, of: string): Promise<void> {
  const { prompts, ...options } = await fieldsOf(call, generateFields);
  const isList = (value: unknown) => Array.isArray(value) && value.every(Number.isSafeInteger);
  if (!Array.isArray(prompts) || !prompts.every(isList))
    throw new Refused(400, 'expected "prompts": [[TOKEN, …], …]');
  const model = modelAt(call, of);
  const texts = await model.generate(prompts as number[][], options as unknown as GenerateOptions);
  replyJson(call.response, 200, { texts });
}

async function evaluate(call: ModelCall, of: string): Promise<void> {
  await fieldsOf(call, []);
  replyJson(call.response, 200, await modelAt(call, of).evaluate());
}

async function save(call: ModelCall): Promise<void> {
  const { as, metric } = await fieldsOf(call, ["as", "metric"]);
  const named = as === undefined ? undefined : { as: as as string, metric: metric as number | undefined };
  replyJson(call.response, 200, await call.model.save(named));
}

async function load(call: ModelCall): Promise<void> {
  const { folder } = await fieldsOf(call, ["folder"]);
  replyJson(call.response, 200, await call.model.load(folder as string));
}

async function freeze(call: ModelCall): Promise<void> {
  await fieldsOf(call, []);
  replyJson(call.response, 200, { path: await call.copies.add(call.model) });
}

async function closeCopy({ copies, response }: ModelCall, path: string): Promise<void> {
  await copies.close(path);
  replyJson(response, 200, {});
}

/** The model, or the frozen copy at this path. @throws {Refused} 404 */
function modelAt({ model, copies }: ModelCall, path: string): ReadModel<Job> {
  return path === "" ? model : copies.at(path);
}

async function events({ response, runtime }: ModelCall): Promise<void> {
  await streamEvents(response, runtime.events());
}

/** Makes a call with the tensors of a batch, which the model copies before this returns. */
function withBatch<T>(given: unknown, make: (batch: never) => Promise<T>): Promise<T> {
  using _ = new OpenScope();
  return make(batchOf(given) as never);
}

/** Reads a call's fields. @throws {Refused} 400 for a field that it does not have */
async function fieldsOf({ content }: ModelCall, names: readonly string[]) {
  const fields: Readonly<Record<string, unknown>> = await content.json(maxBytes);
  const unknown = Object.keys(fields).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Refused(400, `expected ${names.join(", ")}, got ${JSON.stringify(unknown.slice(0, 64))}`);
  return fields;
}
