import { createHmac } from "node:crypto";
import { TroupeError } from "../../../errors/index.ts";
import { sameToken } from "../../access/index.ts";
import { type Frame, frameFlag, frameHeader } from "../frame.ts";

/** The most bytes of a greeting, and of a refusal. */
export const greetingBytes = 1_024;

/** The first frame of a call: which process calls, and where it is called back. */
export interface Greeting {
  readonly index: number;
  /** The address of the caller's door. */
  readonly address: string;
}

/** Why a call is not taken. */
export type Refusal =
  /** The caller's token is another. */
  | { readonly reason: "token" }
  /** The caller's certificate is not trusted: `got` says why. */
  | { readonly reason: "certificate"; readonly got: string };

/**
 * The bytes of a greeting. They hold no token, only a proof of it for this one call: no hub accepts an index twice, so a proof that
 * is read on the way is of no use.
 * @param to - the address that is called
 */
export function packGreeting({ index, address }: Greeting, to: string, token: string): Uint8Array {
  const proof = proofOf({ index, address }, to, token);
  return new TextEncoder().encode(JSON.stringify([index, proof, address]));
}

/**
 * @param to - the address of this process's door
 * @returns the greeting, and whether the caller has the token
 * @throws {TroupeError} `FRAME_INVALID` for anything else
 */
export function unpackGreeting(
  { bytes }: Frame,
  to: string,
  token: string,
): { readonly greeting: Greeting; readonly isProven: boolean } {
  const said: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const [index, proof, address] = Array.isArray(said) ? (said as unknown[]) : [];
  if (typeof index !== "number" || typeof address !== "string") throw unauthenticated();
  const greeting = { index, address };
  return { greeting, isProven: sameToken(String(proof), proofOf(greeting, to, token)) };
}

/** The bytes that tell a caller on its own call why it is not taken. */
export function refusalFrame(refusal: Refusal): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(refusal));
  return Buffer.concat([frameHeader(text.length, 0, frameFlag.refused, 0), text]);
}

/** @returns the error that a refusal stands for; undefined for a frame that is none */
export function refusalIn({ flags, bytes }: Frame): TroupeError | undefined {
  if ((flags & frameFlag.refused) === 0) return undefined;
  const said = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Record<string, unknown>> | null;
  if (said?.reason !== "certificate") return otherToken();
  // Its text is printed, and the other end is not known.
  return untrusted(String(said.got).replace(/[^ -~]/g, "?"));
}

/** Two ends of a network do not trust each other's certificates. @param got - why not */
export function untrusted(got: string, cause?: Error): TroupeError {
  return new TroupeError(
    "PEER_UNTRUSTED",
    {
      where: "network",
      expected: "certificates of both ends that the CA of the other has signed",
      got,
      hint: "see --tls-cert and --tls-ca of both",
    },
    { cause },
  );
}

/** The first frame of a call is no greeting of a process that may call here. */
export function unauthenticated(): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "hub",
    expected: "a process of this system",
    got: "an unauthenticated peer",
    hint: "nothing is to be done",
  });
}

function otherToken(): TroupeError {
  return new TroupeError("HOST_REFUSED", {
    where: "network",
    expected: "the token of the host that is called",
    got: "another one",
    hint: "give every host the same contents of --host-token-file",
  });
}

function proofOf({ index, address }: Greeting, to: string, token: string): string {
  return createHmac("sha256", token)
    .update(JSON.stringify([index, address, to]))
    .digest("hex");
}
