import { chmodSync, writeFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { readTrust } from "../../src/actors/launch/index.ts";
import { makeCertificate } from "../fixtures/certificates.ts";
import { Workspace } from "../fixtures/run-tiny.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());
const ours = makeCertificate(workspace.path("ours"));
const theirs = makeCertificate(workspace.path("theirs"));

it("keys that go together are read; what cannot be read, is no PEM or does not go together is named, before anybody is called", () => {
  expect(readTrust({ tls: ours, tokenFile: undefined }).keys?.cert).toContain("BEGIN CERTIFICATE");
  for (const [tls, message] of [
    [
      { ...ours, key: theirs.key },
      /theirs\/key\.pem to be the key of .*ours\/cert\.pem, got that of another/,
    ],
    [{ ...ours, cert: ours.key }, /ours\/key\.pem to be a certificate in PEM/],
    [{ ...ours, key: ours.cert }, /ours\/cert\.pem to be a private key in PEM/],
    [{ ...ours, ca: workspace.path("none") }, /none to be a file that can be read, got no such file/],
  ] as const)
    expect(() => readTrust({ tls, tokenFile: undefined })).toThrow(
      expect.objectContaining({ code: "TLS_KEYS", message: expect.stringMatching(message) }),
    );
});

it("a token that others can read, or one that could be guessed, is refused", () => {
  const tokenFile = workspace.path("token");
  const files = { tls: undefined, tokenFile };
  writeFileSync(tokenFile, "0123456789abcdef\n", { mode: 0o600 });
  expect(readTrust(files).token).toBe("0123456789abcdef");
  chmodSync(tokenFile, 0o644);
  expect(() => readTrust(files)).toThrow(/to be readable by its owner only, got mode 644/);
  chmodSync(tokenFile, 0o600);
  writeFileSync(tokenFile, "short");
  expect(() => readTrust(files)).toThrow(/at least 16 characters, got 5/);
});
