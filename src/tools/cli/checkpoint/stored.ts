import { join } from "node:path";
import { TroupeError } from "../../../errors/index.ts";
import { formatBytes } from "../../../job/events/index.ts";
import * as stored from "../../../library/checkpoint/index.ts";
import { table } from "../../planner/index.ts";
import { print, usage } from "../flags.ts";

interface StepFlags {
  readonly step?: number;
  readonly json: boolean;
}

/** `troupe checkpoint list RUN` */
export async function listCheckpointsCommand(location: string, { json }: StepFlags): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location);
  const owner = await stored.ownerOf(storage);
  const own = checkpoints.find(({ foreign, damage }) => !foreign && damage === undefined);
  const standing = await stored.standingOf(storage, own?.savedAt);
  if (json) {
    const plain = checkpoints.map(({ damage, ...facts }) => ({
      ...facts,
      ...(damage && { damage: damage.message }),
    }));
    print(JSON.stringify({ location: storage.location, run: owner, standing, checkpoints: plain }));
    return;
  }
  if (owner !== undefined && standing !== undefined)
    print(`run of ${owner.job}, begun ${owner.startedAt}: ${describeStanding(standing)}`);
  const rows = checkpoints.map(({ name, step, sizeBytes, latest, named, run, foreign, damage }) => [
    name,
    String(step),
    damage === undefined ? formatBytes(sizeBytes) : "",
    run === undefined ? "" : `${run.job}, ${run.startedAt}`,
    damage !== undefined
      ? "damaged"
      : foreign
        ? "of another run"
        : [...(latest ? ["latest"] : []), ...named].join(", "),
  ]);
  const isText = (column: number) => column === 0 || column >= 3;
  print(table([["checkpoint", "step", "size", "run", ""], ...rows], isText));
}

function describeStanding(standing: stored.RunStanding): string {
  switch (standing.state) {
    case "running":
      return `under way, in process ${standing.holder.pid} on ${standing.holder.host}`;
    case "ended":
      return `${standing.end.how} at ${standing.end.at}`;
    case "silent":
      return `ended without a record, last heard from at ${standing.heardAt}`;
    default:
      return standing satisfies never;
  }
}

/** `troupe checkpoint inspect CHECKPOINT` */
export async function inspectCheckpoint(location: string, { step, json }: StepFlags): Promise<void> {
  await using checkpoint =
    step === undefined ? await stored.openCheckpoint(location) : await openStep(location, step);
  const tensors = checkpoint.names.map((name) => {
    const { dtype, shape, slices } = checkpoint.entry(name);
    const files = [...new Set(slices.map(({ file }) => file))];
    return { name, dtype, shape, sizeBytes: stored.tensorSizeBytes(dtype, shape) ?? 0, files };
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
  const state = Object.entries(checkpoint.state)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => [key, abridged(value as stored.JsonValue)]);
  state.push(["model", String(checkpoint.config.model_type ?? "unknown")]);
  const fileRows = files.map(({ name, sizeBytes }) => [name, formatBytes(sizeBytes)]);
  const tensorRows = tensors.map(({ name, dtype, shape, sizeBytes }) => [
    name,
    dtype,
    `[${shape.join(", ")}]`,
    formatBytes(sizeBytes),
  ]);
  print(`${checkpoint.path}\n${table(state)}\n`);
  print(`${table([["file", "size"], ...fileRows], (column) => column === 0)}\n`);
  print(table([["tensor", "dtype", "shape", "size"], ...tensorRows], (column) => column < 3));
}

async function openStep(location: string, step: number): Promise<stored.Checkpoint> {
  const { storage, checkpoints } = await selectCheckpoints(location, step);
  return stored.Checkpoint.open(await storage.open(checkpoints[0]?.name ?? ""));
}

function abridged(value: stored.JsonValue): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** `troupe checkpoint verify RUN`. @throws {TroupeError} `CHECKPOINT_DAMAGED` after checking all, if one is damaged */
export async function verifyCheckpoints(location: string, { step, json }: StepFlags): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location, step);
  const results: { name: string; damages: readonly stored.Damage[] }[] = [];
  for (const { name } of checkpoints) {
    const damages = await stored.verifyCheckpoint(storage, name);
    results.push({ name, damages });
    if (json) continue;
    const places = `${damages.length} place${damages.length === 1 ? "" : "s"}`;
    print(damages.length === 0 ? `${name}  intact` : `${name}  damaged in ${places}`);
    for (const damage of damages) print(`  ${described(damage)}`);
  }
  const damaged = results.filter(({ damages }) => damages.length > 0);
  if (json) print(JSON.stringify({ location: storage.location, checkpoints: results }));
  if (damaged.length === 0) return;
  throw new TroupeError("CHECKPOINT_DAMAGED", {
    where: "troupe checkpoint",
    expected: `intact checkpoints in ${storage.location}`,
    got: `${damaged.map(({ name }) => name).join(", ")} damaged`,
    hint: "restore from a copy, or resume: it uses the newest intact one",
    fields: { path: storage.location },
  });
}

function described({ path, tensor, offsetBytes, message }: stored.Damage): string {
  if (offsetBytes === undefined) return message;
  return `${path}, from byte ${offsetBytes}${tensor === undefined ? "" : `: tensor ${tensor}`}`;
}

/**
 * `troupe checkpoint join CHECKPOINT FOLDER...`.
 * @throws {TroupeError} `CHECKPOINT_ELSEWHERE` where none of the folders has a file; `CHECKPOINT_DAMAGED` for other bytes
 */
export async function joinCheckpoint(
  location: string,
  folders: readonly string[],
  { json }: StepFlags,
): Promise<void> {
  const { storage, checkpoints } = await selectCheckpoints(location);
  const name = checkpoints[0]?.name as string;
  const path = join(storage.location, name);
  const brought = await stored.joinFolders(path, folders);
  if (json) print(JSON.stringify({ path, brought }));
  else print(`${path}  ${brought.length === 0 ? "is complete already" : `has ${brought.join(", ")} now`}`);
}

interface PruneFlags extends StepFlags {
  readonly keepLast: number;
  readonly keepEvery?: number;
  readonly dryRun: boolean;
}

/**
 * `troupe checkpoint prune RUN`.
 * @throws {TroupeError} `CHECKPOINT_MISSING` where there is none; `USAGE` for the place of one; `CHECKPOINT_LOCKED` while a run or a
 * service saves there; `CHECKPOINT_DIRECTORY` where some could not be removed
 */
export async function pruneCheckpoints(location: string, flags: PruneFlags): Promise<void> {
  const { storage, name } = await selectCheckpoints(location);
  if (name !== undefined) throw usage("the folder of a run", name, `give ${storage.location}`);
  const rule = { last: flags.keepLast, ...(flags.keepEvery === undefined ? {} : { every: flags.keepEvery }) };
  const { removed, failed } = flags.dryRun
    ? { removed: await stored.plannedPrune(storage, rule), failed: [] }
    : await pruneAlone(storage, rule);
  if (flags.json) print(JSON.stringify({ location: storage.location, dryRun: flags.dryRun, removed }));
  else for (const name of removed) print(`${flags.dryRun ? "would remove" : "removed"} ${name}`);
  const [first] = failed;
  if (first === undefined) return;
  throw new TroupeError("CHECKPOINT_DIRECTORY", {
    where: "troupe checkpoint",
    expected: `to remove ${failed.map(({ name }) => name).join(", ")}`,
    got: `"${(first.cause as Error).message}"`,
    hint: "check the folder's permissions",
    cause: first.cause,
  });
}

async function pruneAlone(storage: stored.CheckpointStorage, rule: stored.KeepRule): Promise<stored.Pruned> {
  await using _lock = await storage.lock("troupe checkpoint prune");
  return await stored.prune(storage, rule);
}

/** Selects a run folder's checkpoints, the newest first, or the one named. @throws {TroupeError} `CHECKPOINT_MISSING` */
async function selectCheckpoints(location: string, step?: number) {
  const { storage, name } = await stored.placeOf(location);
  const all = await stored.listCheckpoints(storage);
  const wanted = step === undefined ? name : stored.stepFolder(step);
  const checkpoints = wanted === undefined ? all : all.filter((facts) => facts.name === wanted);
  if (checkpoints.length > 0) return { storage, name, checkpoints };
  throw stored.noCheckpoint(
    storage.location,
    wanted,
    all.map((facts) => facts.name),
  );
}
