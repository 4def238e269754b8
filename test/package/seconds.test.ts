// From an empty folder to a trained job by prebuilt packages, on a machine without compiler, cmake and Python. How many seconds that
// takes is printed by `npm run bench -- first-use`.
import { spawnSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { wheelOfThisMachine } from "../../scripts/setup/wheels.mjs";
import { builtLibtorch } from "../fixtures/readable-libtorch.ts";
import { canMakeDisks } from "../fixtures/small-disk.ts";
import { BareMachine, keptWheel } from "./bare-machine.ts";
import { LocalProxy } from "./proxy.ts";

if (keptWheel === undefined)
  process.stderr.write("test/package/seconds: SKIPPED, nothing was fetched: PIP_FIND_LINKS has no wheel\n");
if (!canMakeDisks)
  process.stderr.write("test/package/seconds: SKIPPED, no disk was full: this user may mount none\n");

const wheel = wheelOfThisMachine()?.file as string;
const MB = 1_000_000;

describe.skipIf(builtLibtorch === undefined)("seconds to the first step", () => {
  const machine = new BareMachine();
  beforeAll(() => machine.prepare());
  afterAll(() => machine.remove());
  beforeEach(() => machine.newUser());
  afterEach(() => machine.removeUser());

  const install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "troupe"];
  const train = ["npx", "troupe", "run", "job.ts", "--ranks", "2", "--set", "steps=3", "--json"];

  async function succeed(command: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const ended = await machine.run(command, env);
    expect(ended, ended.err).toMatchObject({ code: 0 });
    return ended;
  }

  it("need no compiler, cmake or Python where libtorch is at hand", async () => {
    const env = { VIRTUAL_ENV: machine.placePython() };
    await succeed(install);
    const { out, err } = await succeed(train, env);
    expect(lossesIn(out)).toHaveLength(3);
    expect(err).not.toContain("set-up");
    const doctor = await succeed(["npx", "troupe", "doctor"], env);
    expect(doctor.out).toMatch(
      /^ok +addon +of @troupe\/native-\S+ with .*\/venv\/lib\/python3.11\/site-packages\/torch/m,
    );
    expect(doctor.out).toMatch(/^looked +cmake +does not run; nothing is to be compiled$/m);
  });

  it("say what can be done where neither libtorch nor its wheel can be had", async () => {
    await succeed(install);
    const { code, err } = await machine.run(train, { TROUPE_WHEELS: join(machine.home, "nowhere") });
    expect(code).toBe(1);
    expect(err).toMatch(/^troupe set-up: \[libtorch\] expected one here, or its wheel, got neither/m);
    expect(err).toMatch(/nowhere\/torch-.*whl: no such file$/m);
    expect(err).toMatch(/^ {2}export TROUPE_WHEELS=/m);
    const { out } = await machine.run(["npx", "troupe", "doctor"]);
    expect(out).toMatch(/^ok +libtorch +none; the first use fetches its wheel$/m);
    expect(out).toMatch(/^ok +addon +the first use takes @troupe\/native-.* \(no libtorch is here\)$/m);
  });

  describe.skipIf(keptWheel === undefined)("with a wheel that is fetched", () => {
    const content = keptWheel === undefined ? Buffer.alloc(0) : readFileSync(keptWheel);

    it("fetch it once for two processes, through a proxy, and use it again in the next project", async () => {
      machine.registry.file(`/whl/${wheel}`, content);
      const proxy = new LocalProxy(machine.registry.port);
      await proxy.listen();
      try {
        const env = {
          HTTP_PROXY: proxy.url,
          TROUPE_WHEELS: "http://wheels.test/whl",
          npm_config_registry: "http://registry.test",
          NO_PROXY: "",
        };
        await succeed(install, env);
        const both = await Promise.all([machine.run(train, env), machine.run(train, env)]);
        for (const { code, out, err } of both) {
          expect(code, err).toBe(0);
          expect(lossesIn(out)).toHaveLength(3);
        }
        const reported = both.map(({ err }) => err.split("\n").filter((line) => line.includes("set-up")));
        expect(reported.toSorted()).toEqual([
          [expect.stringMatching(/another process is setting up/)],
          [expect.stringMatching(/^troupe set-up: libtorch .* \.\.\. [\d.]+ s$/)],
        ]);
        expect([...proxy.hosts].toSorted()).toEqual(["registry.test", "wheels.test"]);
        rmSync(join(machine.project, "node_modules"), { recursive: true });
        await succeed(install);
        expect((await succeed(train)).err).not.toContain("set-up");
      } finally {
        proxy.close();
      }
    });

    it("fetch it from a server that redirects, cuts and stalls, in one go", async () => {
      const begins: number[] = [];
      const send: RequestListener = ({ url, headers }, response) => {
        if (url?.startsWith("/whl/") === true) {
          response.writeHead(302, { location: "/there" }).end();
          return;
        }
        const begin = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
        const rest = content.subarray(begin);
        const range = `bytes ${begin}-${content.length - 1}/${content.length}`;
        response.writeHead(begin === 0 ? 200 : 206, {
          "content-length": rest.length,
          ...(begin > 0 && { "content-range": range }),
        });
        begins.push(begin);
        const part = rest.subarray(0, 20 * MB);
        if (begins.length === 1) response.write(part, () => response.destroy());
        else if (begins.length === 2) response.write(part);
        else response.end(rest);
      };
      await using server = await serve(send);
      await succeed(install);
      const { out, err } = await succeed(train, { TROUPE_WHEELS: `${server.url}/whl` });
      expect(lossesIn(out)).toHaveLength(3);
      expect(err.split("\n").filter((line) => line !== "")).toEqual([
        expect.stringMatching(/^troupe set-up: libtorch .* \.\.\. [\d.]+ s$/),
      ]);
      expect(begins).toEqual([0, expect.any(Number), expect.any(Number)]);
      expect(begins).toEqual(begins.toSorted((one, other) => one - other));
    });

    it("refuse another wheel, leave nothing of it, and take the right one afterwards", async () => {
      const lie = Buffer.from(content);
      lie[100 * MB] = (lie[100 * MB] as number) ^ 1;
      let isLying = true;
      await using server = await serve((_, response) => void response.end(isLying ? lie : content));
      await succeed(install);
      const env = { TROUPE_WHEELS: server.url };
      const { code, err } = await machine.run(train, env);
      expect(code).toBe(1);
      expect(err).toMatch(/whl: expected a file with SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}$/m);
      expect(readdirSync(join(machine.home, ".cache", "troupe"))).not.toContainEqual(
        expect.stringMatching(/^libtorch/),
      );
      isLying = false;
      expect(lossesIn((await succeed(train, env)).out)).toHaveLength(3);
    });

    it.skipIf(!canMakeDisks)(
      "say that the disk is full, before the fetch or amid it, and go on once there is room",
      async () => {
        const cache = join(machine.home, "disk");
        mkdirSync(cache);
        const mount = (size: string) =>
          spawnSync("mount", [
            "-t",
            "tmpfs",
            "-o",
            `size=${size},uid=65534,gid=65534,mode=755`,
            "troupe-test",
            cache,
          ]);
        machine.registry.file(`/whl/${wheel}`, content);
        const env = { XDG_CACHE_HOME: cache, TROUPE_WHEELS: `${machine.registry.url}/whl` };
        await succeed(install);
        expect(mount("64m").status).toBe(0);
        try {
          const { code, err } = await machine.run(train, env);
          expect(code).toBe(1);
          expect(err).toMatch(/disk\/troupe has less than 1 GiB of free disk$/m);
          expect(mount("1200m").status).toBe(0);
          const running = machine.run(train, env);
          const part = join(cache, "troupe", "libtorch.part");
          while ((statSync(part, { throwIfNoEntry: false })?.size ?? 0) < MB) await new Promise(setImmediate);
          const filler = join(cache, "filler");
          fill(filler, cache);
          const amid = await running;
          expect(amid.code).toBe(1);
          expect(amid.err).toMatch(/ENOSPC: no space left on device, write: the disk is full$/m);
          expect(readdirSync(join(cache, "troupe")).filter((name) => name.startsWith("libtorch"))).toEqual(
            [],
          );
          rmSync(filler);
          expect(lossesIn((await succeed(train, env)).out)).toHaveLength(3);
        } finally {
          while (spawnSync("umount", ["-l", cache]).status === 0);
        }
      },
    );
  });
});

/** Leaves 64 MB of a disk, less than what libtorch takes. */
function fill(path: string, disk: string): void {
  const { bavail, bsize } = statfsSync(disk);
  const file = openSync(path, "w");
  const chunk = Buffer.alloc(16 * MB);
  for (let left = bavail * bsize - 64 * MB; left > 0; left -= chunk.length)
    writeSync(file, chunk, 0, Math.min(left, chunk.length));
  closeSync(file);
}

/** Serves on this machine's own address. */
async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const lossesIn = (out: string) =>
  [...out.matchAll(/"kind":"step.finished".*"lossNats":([\d.]+)/g)].map(([, loss]) => loss);
