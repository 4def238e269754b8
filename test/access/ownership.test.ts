import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lookAt } from "../../scripts/setup/libtorch-find.mjs";
import { readTrust } from "../../src/actors/launch/index.ts";
import { forkSupport } from "../../src/compute/tensor/index.ts";
import { compileCache, makeOwnFolder, whyForeign, whyUnsafe } from "../../src/errors/untrusted/ownership.ts";
import { prepareText } from "../../src/library/data/index.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const isRoot = process.geteuid?.() === 0;
/** The id of another user of the machine; a file can belong to an id without an account. */
const OTHER = 64_007;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-ownership-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, mode: number, owner?: number): string {
  const path = join(folder, name);
  writeFileSync(path, "0123456789abcdef\n");
  chmodSync(path, mode);
  if (owner !== undefined) chownSync(path, owner, owner);
  return path;
}

function folderOf(name: string, mode: number, owner?: number): string {
  const path = join(folder, name);
  mkdirSync(path);
  chmodSync(path, mode);
  if (owner !== undefined) chownSync(path, owner, owner);
  return path;
}

describe("a file or folder is taken for this user's", () => {
  it("where nobody else can write to it, nor to a folder above it", () => {
    expect(whyUnsafe(file("own", 0o644))).toBeUndefined();
    expect(whyUnsafe(file("open", 0o666))).toBe("one that others can write to (mode 666)");
    const open = folderOf("open-folder", 0o777);
    writeFileSync(join(open, "file"), "");
    expect(whyUnsafe(join(open, "file"))).toBe(`${open}, one that others can write to (mode 777)`);
    // In a sticky folder such as /tmp, our files stay ours.
    chmodSync(open, 0o1777);
    expect(whyUnsafe(join(open, "file"))).toBeUndefined();
    expect(whyUnsafe(open)).toBe("one that others can write to (mode 1777)");
    expect(whyUnsafe(join(folder, "missing"))).toMatch(/^ENOENT/);
    expect(whyForeign(statSync(file("read", 0o640)), { secret: true })).toBe(
      "one that others can read (mode 640)",
    );
  });

  it.runIf(isRoot)("where it, the links to it and the folders above it are this user's or root's", () => {
    const foreign = file("foreign", 0o600, OTHER);
    expect(whyUnsafe(foreign)).toBe(`one of another user (uid ${OTHER})`);
    const own = file("own", 0o600);
    const link = join(folder, "link");
    symlinkSync(own, link);
    expect(whyUnsafe(link)).toBeUndefined();
    lchownSync(link, OTHER, OTHER);
    expect(whyUnsafe(link)).toBe(`a link of another user (uid ${OTHER})`);
    const theirs = folderOf("theirs", 0o755, OTHER);
    writeFileSync(join(theirs, "ours"), "");
    expect(whyUnsafe(join(theirs, "ours"))).toBe(`${theirs}, one of another user (uid ${OTHER})`);
    symlinkSync(theirs, join(folder, "way"));
    expect(whyUnsafe(join(folder, "way", "ours"))).toMatch(/theirs, one of another user/);
  });

  it("and a folder is made so that nobody else can enter it, or not at all", () => {
    const deep = join(folder, "a", "b");
    expect(makeOwnFolder(deep)).toBeUndefined();
    expect([deep, join(folder, "a")].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
    const open = folderOf("open", 0o777);
    expect(makeOwnFolder(join(open, "ours"))).toMatch(/that others can write to/);
    expect(existsSync(join(open, "ours"))).toBe(false);
  });
});

describe.runIf(isRoot)("what another user could have made is not used:", () => {
  it("not as Node's compile cache, by whichever name", () => {
    expect(compileCache(folderOf("theirs", 0o755, OTHER))).toBeUndefined();
    expect(compileCache(folderOf("open", 0o1777))).toBeUndefined();
    expect(compileCache(join(folder, "ours"))).toBe(join(folder, "ours"));
  });

  it("not as a cache of encoded text", async () => {
    const cacheDir = folderOf("tokens", 0o755, OTHER);
    const source = file("text.txt", 0o644);
    await expect(prepareText({ source, tokenizer: "byte", cacheDir })).rejects.toThrow(
      `[data] expected a folder for encoded text at ${cacheDir} that no other user could have made or can write to, ` +
        `got one of another user (uid ${OTHER})`,
    );
  });

  it("not as the token of the hosts of a run", () => {
    const tokenFile = file("token", 0o600, OTHER);
    expect(() => readTrust({ tls: undefined, tokenFile })).toThrow(
      `expected ${tokenFile} to be a file that no other user could have made or changed, got one of another user`,
    );
  });

  it("not as libtorch, and not as the addon", () => {
    const torch = join(folder, "torch");
    const config = join(torch, "share", "cmake", "Torch");
    mkdirSync(config, { recursive: true });
    mkdirSync(join(torch, "lib"));
    writeFileSync(join(config, "TorchConfig.cmake"), "");
    writeFileSync(join(config, "TorchConfigVersion.cmake"), 'set(PACKAGE_VERSION "2.13.0")\n');
    writeFileSync(join(torch, "lib", "libtorch.so"), "");
    expect(lookAt("TROUPE_LIBTORCH", torch).refused).toBeUndefined();
    chownSync(join(torch, "lib", "libtorch.so"), OTHER, OTHER);
    expect(lookAt("TROUPE_LIBTORCH", torch).refused).toBe(`one of another user (uid ${OTHER})`);
    const script = "const { loadNative } = await import(process.argv[1]); loadNative();";
    const tensor = join(root, "src", "compute", "tensor", "index.ts");
    const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script, tensor], {
      encoding: "utf8",
      env: { ...process.env, TROUPE_ADDON: file("troupe.node", 0o666) },
    });
    expect(stderr).toContain("an addon that no other user could have made or changed");
  });

  it.skipIf(forkSupport() === undefined)("not as the library that makes Node a server that forks", () => {
    const built = join(root, "build");
    for (const name of ["troupe.node", "fork-server.so"]) cpSync(join(built, name), join(folder, name));
    const script =
      "const { forkSupport } = await import(process.argv[1]); console.log(forkSupport()?.library);";
    const tensor = join(root, "src", "compute", "tensor", "index.ts");
    const forkLibrary = () =>
      spawnSync(process.execPath, ["--input-type=module", "-e", script, tensor], {
        encoding: "utf8",
        env: { ...process.env, TROUPE_ADDON: join(folder, "troupe.node") },
      }).stdout.trim();
    expect(forkLibrary()).toBe(join(folder, "fork-server.so"));
    chmodSync(join(folder, "fork-server.so"), 0o666);
    expect(forkLibrary()).toBe("undefined");
  });
});

it("one file alone decides where temporary files and caches lie", () => {
  const sources = globSync(["src/**/*.ts", "native/**/*.{cc,h,cu}", "scripts/setup/*.mjs", "bin/*.mjs"], {
    cwd: root,
  });
  const ways =
    /\btmpdir\(|["'`]\/dev\/shm|["'`]\/tmp\b|\bshm_open\b|\bmkstemp|enableCompileCache\((?!cache\))/;
  for (const line of ["tmpdir()", '"/dev/shm"', "enableCompileCache()", "shm_open("])
    expect(line).toMatch(ways);
  expect(sources.length).toBeGreaterThan(300);
  expect(sources.filter((path) => ways.test(readFileSync(join(root, path), "utf8"))).toSorted()).toEqual([
    "scripts/setup/diagnose.mjs", // says how large shared memory is
    "scripts/setup/ownership.mjs",
  ]);
});
