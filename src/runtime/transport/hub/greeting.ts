import { createHmac } from "node:crypto";
import { TroupeError } from "../../../errors/index.ts";
import { sameToken } from "../../access/index.ts";
import { type Frame, frameFlag, frameHeader } from "../frame.ts";

/** Size limit of a greeting and of a refusal, in bytes. */
export const greetingBytes = 1_024;

/** The first frame of a call: the process that calls, and where to call it back. */
export interface Greeting {
  readonly index: number;
  /** The address of the caller's door. */
  readonly address: string;
}

/** The reason why a call is refused. */
export type Refusal =
  /** The caller has another token. */
  | { readonly reason: "token" }
  /** The caller's certificate is not trusted: `got` says why. */
  | { readonly reason: "certificate"; readonly got: string };

/**
 * Encodes a greeting. It holds no token, only a proof of it for this call: no hub accepts an index twice, so that an
 * intercepted proof is useless.
 * @param to - the address being called
 */
export function packGreeting({ index, address }: Greeting, to: string, token: string): Uint8Array {
  const proof = proofOf({ index, address }, to, token);
  return new TextEncoder().encode(JSON.stringify([index, proof, address]));
}

/**
 * Decodes and checks a greeting.
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

/** Encodes a refusal as a frame, which is sent back on the caller's own call. */
export function refusalFrame(refusal: Refusal): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(refusal));
  return Buffer.concat([frameHeader(text.length, 0, frameFlag.refused, 0), text]);
}

/** Turns a refusal into an error; undefined if the frame is not a refusal. */
export function refusalIn({ flags, bytes }: Frame): TroupeError | undefined {
  if ((flags & frameFlag.refused) === 0) return undefined;
  const said = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Record<string, unknown>> | null;
  if (said?.reason !== "certificate") return otherToken();
  // The text will be printed, and the sender is not authenticated.
  return untrusted(String(said.got).replace(/[^ -~]/g, "?"));
}

/** Makes `PEER_UNTRUSTED`: one end does not trust the certificate of the other. @param got - the reason */
export function untrusted(got: string, cause?: Error): TroupeError {
  return new TroupeError("PEER_UNTRUSTED", {
    where: "network",
    expected: "certificates that the other end's CA has signed",
    got,
    hint: "see --tls-cert and --tls-ca of both",
    cause,
  });
}

/** Makes the error of a call whose first frame is not a greeting of a process that may call here. */
export function unauthenticated(): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "hub",
    expected: "a process of this system",
    got: "an unauthenticated peer",
    hint: "nothing needs to be done",
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
