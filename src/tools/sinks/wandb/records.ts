import { createHash } from "node:crypto";
import { type Bytes, bytesField, message, varintField } from "../../../library/protobuf.ts";

// Messages of wandb_internal.proto, with the fields that `wandb sync` reads. A field number names the kind of a record.

/** Values by name, as Weights & Biases has them: JSON. */
export type Items = Readonly<Record<string, unknown>>;

/** A run, as its first record describes it. */
export interface WandbRun {
  readonly id: string;
  readonly project: string;
  readonly entity: string;
  readonly name: string;
  readonly group: string;
  readonly config: Items;
  readonly startMs: number;
  /** Updates made before, if the run is resumed. */
  readonly resumedAt?: number | undefined;
}

/** Says which program wrote the file. */
export const headerRecord: Bytes = bytesField(
  21,
  bytesField(1, message(bytesField(1, "0.30.0"), bytesField(2, "0.12.0"))),
);

export function runRecord(run: WandbRun): Bytes {
  const resumed =
    run.resumedAt === undefined
      ? []
      : [varintField(14, run.resumedAt), varintField(18, 1), varintField(24, 1)];
  return bytesField(
    17,
    message(
      bytesField(1, run.id),
      ...(run.entity === "" ? [] : [bytesField(2, run.entity)]),
      bytesField(3, run.project),
      bytesField(4, updates(run.config)),
      ...(run.group === "" ? [] : [bytesField(6, run.group)]),
      bytesField(8, run.name),
      bytesField(17, timestamp(run.startMs)),
      ...resumed,
    ),
  );
}

/** The figures of a step. */
export function historyRecord(items: Items, step: number): Bytes {
  return bytesField(2, message(...itemsOf(items), bytesField(2, varintField(1, step))));
}

/** The latest figures. */
export function summaryRecord(items: Items): Bytes {
  return bytesField(3, updates(items));
}

/** Figures of the machine. */
export function statsRecord(items: Items, timeMs: number): Bytes {
  const fields = Object.entries(items).map(([key, value]) => item(3, key, value));
  return bytesField(7, message(varintField(1, 0), bytesField(2, timestamp(timeMs)), ...fields));
}

/** A checkpoint, as an artifact that refers to its files. */
export function checkpointRecord(
  { id, project, entity }: WandbRun,
  alias: string,
  files: readonly { readonly path: string; readonly url: string; readonly sizeBytes: number }[],
): Bytes {
  const entries = files.map(({ path, url, sizeBytes }) =>
    bytesField(
      4,
      message(bytesField(1, path), bytesField(2, url), bytesField(3, url), varintField(4, sizeBytes)),
    ),
  );
  const digest = createHash("md5").update("wandb-artifact-manifest-v1\n");
  for (const { path, url } of files.toSorted((a, b) => (a.path < b.path ? -1 : 1)))
    digest.update(`${path}:${url}\n`);
  const name = `checkpoint-${id}`;
  const idOf = (text: string) => createHash("sha512").update(text).digest("hex");
  return bytesField(
    8,
    message(
      ...[bytesField(1, id), bytesField(2, project), bytesField(3, entity), bytesField(4, "model")],
      ...[bytesField(5, name), bytesField(6, digest.digest("hex")), varintField(9, 1)],
      ...["latest", alias].map((each) => bytesField(11, each)),
      bytesField(12, message(varintField(1, 1), bytesField(2, "wandb-storage-policy-v1"), ...entries)),
      ...[varintField(14, 1), bytesField(15, idOf(`${name} ${alias}`)), bytesField(16, idOf(name))],
    ),
  );
}

/** The end of a run. @param code - 0 if it is complete */
export function exitRecord(code: number, runtimeMs: number): Bytes {
  return bytesField(18, message(varintField(1, code), varintField(2, Math.round(runtimeMs / 1000))));
}

function updates(items: Items): Bytes {
  return message(...itemsOf(items));
}

function itemsOf(items: Items): Bytes[] {
  return Object.entries(items).map(([key, value]) => item(1, key, value));
}

function item(field: number, key: string, value: unknown): Bytes {
  const written = typeof value === "number" && !Number.isFinite(value) ? `${value}` : value;
  return bytesField(field, message(bytesField(1, key), bytesField(16, JSON.stringify(written))));
}

function timestamp(timeMs: number): Bytes {
  const seconds = Math.floor(timeMs / 1000);
  return message(varintField(1, seconds), varintField(2, Math.round((timeMs - 1000 * seconds) * 1e6)));
}
