import { createPrivateKey, X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import { fileFailure, TroupeError } from "../../errors/index.ts";
import { maxFileBytes, readBoundedTextSync, whyUnsafe } from "../../errors/untrusted/index.ts";
import type { HostsOptions } from "../../job/options/index.ts";
import type { Keys } from "../../runtime/index.ts";

const FEWEST_CHARACTERS = 16;
const OURS = "a file that no other user could have made or changed";

/** Keys and token by which the hosts of a run know each other. */
export interface Trust {
  readonly keys: Keys | undefined;
  readonly token: string | undefined;
}

/**
 * Reads the files by which the hosts of a run know each other, before any host is called. Of TLS all three are given or none,
 * as a relation of options has seen to.
 * @throws {TroupeError} `TLS_KEYS` naming the file that cannot be read, is no PEM, is over its time or does not go with the
 *   others; `ACCESS_TOKEN` for a token that others can read, or that is short; either for a file that another user could have made
 */
export function readTrust({ tls = {}, tokenFile }: HostsOptions): Trust {
  const { cert, key, ca } = tls;
  const isSealed = cert !== undefined && key !== undefined && ca !== undefined;
  return {
    keys: isSealed ? readKeys({ cert, key, ca }) : undefined,
    token: tokenFile === undefined ? undefined : readSecret(tokenFile),
  };
}

/** @param files - paths of PEM files */
function readKeys(files: Keys): Keys {
  const [cert, key, ca] = [read(files.cert), read(files.key), read(files.ca)];
  const own = parsed(files.cert, "a certificate in PEM", () => new X509Certificate(cert));
  const secret = parsed(files.key, "a private key in PEM, without a passphrase", () => createPrivateKey(key));
  parsed(files.ca, "a certificate in PEM", () => new X509Certificate(ca));
  if (!own.checkPrivateKey(secret)) throw unusable(files.key, `the key of ${files.cert}`, "that of another");
  const valid = "a certificate that is valid today";
  if (Date.parse(own.validTo) < Date.now())
    throw unusable(files.cert, valid, `one that was valid until ${own.validTo}`);
  if (Date.parse(own.validFrom) > Date.now())
    throw unusable(files.cert, valid, `one that is valid from ${own.validFrom} on`);
  return { cert, key, ca };
}

function read(file: string): string {
  let text: string;
  try {
    text = readBoundedTextSync(file, maxFileBytes.settings);
  } catch (error) {
    throw unusable(file, "a file that can be read", fileFailure(error));
  }
  const reason = whyUnsafe(file);
  if (reason !== undefined) throw unusable(file, OURS, reason);
  return text;
}

function parsed<T>(file: string, expected: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw unusable(file, expected, "something else");
  }
}

/** Reads the token; any characters are allowed, since a scheduler mounts secrets as they are. */
function readSecret(file: string): string {
  const refused = (expected: string, got: string) =>
    new TroupeError("ACCESS_TOKEN", {
      where: "launch",
      expected: `${file} to be ${expected}`,
      got,
      hint: "openssl rand -hex 32 > FILE; chmod 600 FILE; the same on every host",
    });
  let mode: number;
  let text: string;
  try {
    mode = statSync(file).mode;
    text = readBoundedTextSync(file, maxFileBytes.word).trim();
  } catch (error) {
    throw refused("a file that can be read", fileFailure(error));
  }
  if ((mode & 0o077) !== 0) throw refused("readable by its owner only", `mode ${(mode & 0o777).toString(8)}`);
  const reason = whyUnsafe(file);
  if (reason !== undefined) throw refused(OURS, reason);
  if (text.length >= FEWEST_CHARACTERS) return text;
  throw refused(`at least ${FEWEST_CHARACTERS} characters`, `${text.length}`);
}

function unusable(file: string, expected: string, got: string): TroupeError {
  const hint = "openssl x509 -text -noout -in FILE shows what a certificate says";
  return new TroupeError("TLS_KEYS", { where: "launch", expected: `${file} to be ${expected}`, got, hint });
}
