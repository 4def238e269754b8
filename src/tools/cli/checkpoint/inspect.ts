import {
  Checkpoint,
  type JsonValue,
  openCheckpoint,
  type TrainerState,
  tensorSizeBytes,
} from "../../../library/checkpoint/index.ts";
import { describeBytes, table } from "../../planner/index.ts";
import { print } from "../flags.ts";
import { selectCheckpoints } from "./place.ts";

interface InspectFlags {
  readonly step?: number;
  readonly json: boolean;
}

/** `troupe checkpoint inspect CHECKPOINT` */
export async function inspectCheckpoint(location: string, { step, json }: InspectFlags): Promise<void> {
  await using checkpoint =
    step === undefined ? await openCheckpoint(location) : await openStep(location, step);
  const tensors = checkpoint.names.map((name) => {
    const { dtype, shape, slices } = checkpoint.entry(name);
    const files = [...new Set(slices.map(({ file }) => file))];
    return { name, dtype, shape, sizeBytes: tensorSizeBytes(dtype, shape) ?? 0, files };
  });
  const files = [...checkpoint.manifest.files].map(([name, { sizeBytes, chunkBytes }]) => ({
    name,
    sizeBytes,
    chunkBytes,
  }));
  if (json) {
    const { path, state, config } = checkpoint;
    print(JSON.stringify({ path, state, config, files, tensors }));
    return;
  }
  const state = [
    ...stateRows(checkpoint.state),
    ["model", String(checkpoint.config.model_type ?? "unknown")],
  ];
  const fileRows = files.map(({ name, sizeBytes }) => [name, describeBytes(sizeBytes)]);
  const tensorRows = tensors.map(({ name, dtype, shape, sizeBytes }) => [
    name,
    dtype,
    `[${shape.join(", ")}]`,
    describeBytes(sizeBytes),
  ]);
  print(`${checkpoint.path}\n${table(state)}\n`);
  print(`${table([["file", "size"], ...fileRows], (column) => column === 0)}\n`);
  print(table([["tensor", "dtype", "shape", "size"], ...tensorRows], (column) => column < 3));
}

async function openStep(location: string, step: number): Promise<Checkpoint> {
  const { storage, checkpoints } = await selectCheckpoints(location, step);
  return Checkpoint.open(await storage.open(checkpoints[0]?.name ?? ""));
}

function stateRows(state: TrainerState): string[][] {
  return Object.entries(state)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => [key, abridged(value as JsonValue)]);
}

function abridged(value: JsonValue): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
