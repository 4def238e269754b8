import { Packr } from "msgpackr/pack";
import { isRecord, TroupeError } from "../../errors/index.ts";

/** A message of one process to another's hub, not yet checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Checks of messages, by kind. */
export type Checks<T extends { readonly kind: string }> = Readonly<
  Record<T["kind"], (said: Fields) => boolean>
>;

const packer = (): Packr => new Packr({ moreTypes: true } as never);

/** Packs a message into bytes for a hub. */
export function packControl<T extends { readonly kind: string }>(said: T): Uint8Array {
  return new Uint8Array(packer().pack(said));
}

/** Unpacks a message of {@link packControl}. @throws {TroupeError} `FRAME_INVALID`: the hub then disconnects the sender */
export function unpackControl<T extends { readonly kind: string }>(bytes: Uint8Array, checks: Checks<T>): T {
  let said: unknown;
  try {
    said = packer().unpack(bytes);
  } catch (cause) {
    throw garbled("packed data", (cause as Error).message);
  }
  const kind = isRecord(said) ? String(said.kind) : typeof said;
  const check = Object.hasOwn(checks, kind) ? checks[kind as T["kind"]] : undefined;
  if (isRecord(said) && check?.(said)) return said as unknown as T;
  throw garbled("a known kind with its fields", kind);
}

/** Whether a value is an integer from 0. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function garbled(expected: string, got: string): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "process",
    expected,
    got,
    hint: "the other end is not a process of this system, or has another version",
  });
}
