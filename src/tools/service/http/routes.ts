import { numelOf } from "../../../compute/tensor/index.ts";
import { isRecord } from "../../../errors/index.ts";
import { drained, Refused } from "../../../job/http.ts";
import { tensorSizeBytes } from "../../../library/checkpoint/index.ts";
import type { CheckpointService } from "../checkpoint-service.ts";
import { checkSlice, fullBox } from "../slice.ts";
import type { TensorGroup } from "../staged-save.ts";
import type { LocalCall } from "./local-server.ts";
import type { OpenSaves } from "./open-saves.ts";
import { replyJson } from "./reply.ts";
import type { Routes } from "./routing.ts";
import { streamEvents } from "./server-sent-events.ts";
import { partsOf, plainFacts, summaryOf } from "./stored-tensor.ts";
import { factsIn, headersOf, sliceIn } from "./tensor-headers.ts";

/** A request, and the objects that serve it. */
export interface ServiceCall extends LocalCall {
  readonly service: CheckpointService;
  readonly saves: OpenSaves;
}

const readBytes = 8 << 20;

/** The protocol: every path and its methods, as in the table of `docs/guide/serve-checkpoints.md`. */
export const routes: Routes<ServiceCall> = [
  { path: /^\/checkpoints$/, methods: { GET: list } },
  { path: /^\/checkpoints\/(\d{1,15})$/, methods: { GET: describe, DELETE: giveUp } },
  { path: /^\/checkpoints\/(\d{1,15})\/verify$/, methods: { GET: verify } },
  { path: /^\/checkpoints\/(\d{1,15})\/commit$/, methods: { POST: commit } },
  {
    path: /^\/checkpoints\/(\d{1,15})\/(tensors|optimizer)\/([^/]+)$/,
    methods: { PUT: putTensor, GET: getTensor, HEAD: getTensor },
  },
  { path: /^\/events$/, methods: { GET: events } },
];

async function list({ response, service, saves }: ServiceCall): Promise<void> {
  replyJson(response, 200, { checkpoints: (await service.list()).map(plainFacts), open: saves.steps });
}

async function describe({ response, service }: ServiceCall, step: string): Promise<void> {
  await using checkpoint = await service.read(Number(step));
  replyJson(response, 200, summaryOf(checkpoint));
}

async function verify({ response, service }: ServiceCall, step: string): Promise<void> {
  const damages = await service.verify(Number(step));
  replyJson(response, 200, { step: Number(step), whole: damages.length === 0, damages });
}

async function giveUp({ response, saves }: ServiceCall, step: string): Promise<void> {
  saves.giveUp(Number(step));
  replyJson(response, 200, { step: Number(step), open: false });
}

async function putTensor(
  { request, response, content, saves }: ServiceCall,
  ...path: string[]
): Promise<void> {
  const [step, group, name] = named(path);
  const facts = factsIn(request, group, name);
  const slice = sliceIn(request);
  const { lengthBytes } = content;
  await saves.use(step, async (staged) => {
    const coming = staged.receive(facts, lengthBytes, slice);
    try {
      for await (const part of content.parts()) coming.append(part);
      if (coming.missingBytes > 0) throw new Refused(400, "the content ended early");
      coming.end();
    } catch (error) {
      coming.abandon();
      throw error;
    }
  });
  replyJson(response, 201, { step, name });
}

async function commit({ response, content, service, saves }: ServiceCall, step: string): Promise<void> {
  const { metadata = {}, config = {}, ...unknown } = await content.json();
  if (!isRecord(metadata) || !isRecord(config) || Object.keys(unknown).length > 0)
    throw new Refused(400, "expected objects `metadata` and `config`, and nothing else");
  const save = service.commit(saves.take(Number(step)), { metadata, config });
  const saved = await save.durable;
  if (saved === undefined) throw new Refused(503, "another save is being written", { "retry-after": "1" });
  replyJson(response, 200, saved);
}

async function getTensor({ request, response, service }: ServiceCall, ...path: string[]): Promise<void> {
  const [step, , name] = named(path);
  await using checkpoint = await service.read(step);
  const { dtype, shape } = checkpoint.entry(name);
  const slice = sliceIn(request) ?? fullBox(shape);
  checkSlice(name, shape, slice);
  const itemBytes = tensorSizeBytes(dtype, [1]) ?? 0;
  response.writeHead(200, {
    ...headersOf(dtype, shape),
    "content-type": "application/octet-stream",
    "content-length": String(numelOf(slice.shape) * itemBytes),
  });
  if (request.method === "GET") {
    const maxElements = readBytes / Math.max(1, itemBytes);
    for await (const part of partsOf(checkpoint, name, slice, itemBytes, maxElements)) {
      if (response.destroyed) return;
      if (!response.write(part)) await drained(response);
    }
  }
  response.end();
}

async function events({ response, service }: ServiceCall): Promise<void> {
  await streamEvents(response, service.events());
}

function named([step = "", group = "", name = ""]: readonly string[]): [number, TensorGroup, string] {
  return [Number(step), group === "optimizer" ? "optimizer" : "weights", name];
}
