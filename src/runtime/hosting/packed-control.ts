import { Packr } from "msgpackr/pack";
import { TroupeError } from "../../errors/index.ts";

/** What one process says to another's hub, as it comes: nothing of it can be relied on before it is checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** By kind, whether what belongs to it is there. */
export type Checks<T extends { readonly kind: string }> = Readonly<
  Record<T["kind"], (said: Fields) => boolean>
>;

const packer = (): Packr => new Packr({ moreTypes: true } as never);

/** As bytes, for a hub to carry. */
export function packControl<T extends { readonly kind: string }>(said: T): Uint8Array {
  return new Uint8Array(packer().pack(said));
}

/**
 * The reverse of {@link packControl}.
 * @throws {TroupeError} `FRAME_INVALID` for what is none of these: whoever says it is heard no more
 */
export function unpackControl<T extends { readonly kind: string }>(bytes: Uint8Array, checks: Checks<T>): T {
  let said: unknown;
  try {
    said = packer().unpack(bytes);
  } catch (cause) {
    throw garbled("what was packed", (cause as Error).message);
  }
  const kind = isRecord(said) ? String(said.kind) : typeof said;
  const check = Object.hasOwn(checks, kind) ? checks[kind as T["kind"]] : undefined;
  if (isRecord(said) && check?.(said)) return said as unknown as T;
  throw garbled("a known kind, with what belongs to it", kind);
}

/** Whether it has fields. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether it counts or numbers something. */
export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function garbled(expected: string, got: string): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "process",
    expected,
    got,
    hint: "the other end is no process of this system, or of another version",
  });
}
