import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { placeLibtorch } from "../fixtures/readable-libtorch.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const troupe = join(root, "bin", "troupe.mjs");
// User ids are enough: neither user needs an account.
const VICTIM = 64_011;
const ATTACKER = 64_012;

/** Why this machine cannot run the test; undefined if it can. */
function whyNot(): string | undefined {
  if (process.geteuid?.() !== 0) return "only root can start programs of two other users";
  const { status } = spawnSync(process.execPath, ["--check", troupe], { uid: VICTIM, gid: VICTIM, env: {} });
  return status === 0 ? undefined : `other users cannot read ${root}`;
}
const reason = whyNot();
if (reason !== undefined) process.stderr.write(`test/access/hostile-user.test.ts is skipped: ${reason}\n`);

describe.skipIf(reason !== undefined)("beside a user who makes every name first", () => {
  // Stands for /tmp: every user may make files there, and none can touch another's.
  const shared = reason === undefined ? mkdtempSync("/tmp/troupe-hostile-") : "";
  const home = join(shared, "home");
  const precious = join(home, "precious");
  const ran = join(shared, "ran");
  const libtorch = join(shared, "libtorch");
  const planted: string[] = [];
  afterAll(() => {
    for (const path of [shared, ...planted]) rmSync(path, { recursive: true, force: true });
  });

  /** Runs the command line as the victim. */
  function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    return spawnSync(process.execPath, [troupe, ...args], {
      cwd: root,
      uid: VICTIM,
      gid: VICTIM,
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        HOME: home,
        TMPDIR: shared,
        OMP_WAIT_POLICY: "passive",
        LD_LIBRARY_PATH: libtorch,
        ...env,
      },
    });
  }

  function train(name: string, env: NodeJS.ProcessEnv = {}) {
    const job = ["run", "examples/hello/job.ts", "--set", "steps=2", "--ranks", "2", "--json"];
    const folder = join(shared, name);
    const where = ["--placement", "process", "--checkpoint", folder, "--dashboard", "0"];
    const { status, stdout, stderr } = run([...job, ...where], env);
    const losses = [...stdout.matchAll(/"kind":"step.finished".*?"lossNats":([\d.]+)/g)].map(
      ([, loss]) => loss,
    );
    return { status, stderr, losses, folder };
  }

  /** Node's own form of a kept module: five numbers, the last two the size and the CRC-32 of what follows. */
  function plantLine(entry: string, line: string): boolean {
    const bytes = readFileSync(entry);
    const kept = bytes.subarray(20);
    // Bytecode begins with V8's own number; a module that was TypeScript is kept as text.
    if (kept.readUInt32LE(0) === 0xc0de0689 || !/^[\s\x20-\x7e]{20}/.test(kept.toString("latin1")))
      return false;
    const text = Buffer.concat([Buffer.from(line), kept]);
    const header = Buffer.from(bytes.subarray(0, 20));
    header.writeUInt32LE(text.length, 8);
    header.writeUInt32LE(crc32(text), 16);
    writeFileSync(entry, Buffer.concat([header, text]));
    return true;
  }

  function give(path: string, owner: number): void {
    for (const name of ["", ...readdirSync(path, { recursive: true, encoding: "utf8" })])
      lchownSync(join(path, name), owner, owner);
  }

  it("the complete program runs and follows no file of theirs, and completes its run", async () => {
    chmodSync(shared, 0o1777);
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(precious, "precious", { mode: 0o600 });
    give(home, VICTIM);
    placeLibtorch(libtorch);

    // The attacker has the same Node and the same program, and so knows what Node would keep for the victim.
    const model = join(shared, "model");
    mkdirSync(model);
    chownSync(model, VICTIM, VICTIM);
    const alone = train("alone", { NODE_COMPILE_CACHE: model });
    expect(alone.stderr).toContain("dashboard: ");
    expect(alone.losses).toHaveLength(2);
    const cache = join(shared, "node-compile-cache");
    cpSync(model, cache, { recursive: true });
    const line = `process.getBuiltinModule("node:fs").appendFileSync(${JSON.stringify(ran)}, "x");`;
    const entries = readdirSync(cache, { recursive: true, encoding: "utf8" })
      .map((name) => join(cache, name))
      .filter((path) => statSync(path).isFile());
    expect(entries.filter((entry) => plantLine(entry, line)).length).toBeGreaterThan(100);
    for (const path of [cache, ...readdirSync(cache).map((name) => join(cache, name))])
      chmodSync(path, 0o755);
    for (const entry of entries) chmodSync(entry, 0o644);
    give(cache, ATTACKER);
    // The planted file works: Node runs it when its cache folder is the attacker's.
    run(["--version"], { NODE_COMPILE_CACHE: cache });
    expect(readFileSync(ran, "utf8").length).toBeGreaterThan(10);
    rmSync(ran);

    // Names that lead to the victim's file: of folders that ended runs would have left, and of a token.
    const namespace = readlinkSync("/proc/self/ns/pid").replace(/\D/g, "");
    for (const [place, kind] of [
      [shared, "troupe-groups"],
      ["/dev/shm", "troupe-host"],
    ] as const) {
      const link = join(place, `${kind}-${namespace}-4194304-1-left`);
      symlinkSync(home, link);
      lchownSync(link, ATTACKER, ATTACKER);
      if (place !== shared) planted.push(link);
    }
    const token = join(shared, `troupe-dashboard-${VICTIM}.token`);
    symlinkSync(precious, token);
    lchownSync(token, ATTACKER, ATTACKER);

    const beside = train("beside");
    expect(beside).toMatchObject({ status: 0, losses: alone.losses });
    expect(existsSync(ran)).toBe(false);
    expect(readFileSync(precious, "utf8")).toBe("precious");
    const own = statSync(join(home, ".cache", "troupe", "node-compile-cache"));
    expect([own.uid, own.mode & 0o777]).toEqual([VICTIM, 0o700]);

    // Without a home there is no cache, and no other variable's folder is used instead.
    const homeless = train("homeless", { HOME: "/nonexistent", TROUPE_CACHE: join(home, "tokens") });
    expect(homeless).toMatchObject({ status: 0, losses: alone.losses });
    expect(existsSync(ran)).toBe(false);

    // The service refuses a socket path at which another user listens.
    const socket = join(shared, "serve.sock");
    const listen = `require("net").createServer().listen(${JSON.stringify(socket)}, () => console.log("listens"))`;
    const attacker = spawn(process.execPath, ["-e", listen], {
      uid: ATTACKER,
      gid: ATTACKER,
      env: {},
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(attacker.stdout, "data");
    const serve = ["checkpoint", "serve", "--dir", beside.folder, "--socket", socket];
    // The victim cannot even connect there. The name is taken by a listener in one case, and by a file left behind in the other.
    chmodSync(socket, 0o777);
    const answered = run(serve);
    expect(answered.status).not.toBe(0);
    expect(answered.stderr).toContain(
      `a free place for a socket at ${socket}, got the socket of a running server`,
    );
    attacker.kill("SIGKILL");
    await once(attacker, "exit");
    const left = run(serve);
    expect(left.status).not.toBe(0);
    expect(left.stderr).toMatch(/a free place for a socket at .*, got (EPERM|EACCES)/);
    expect(statSync(socket).uid).toBe(ATTACKER);
  });
});
