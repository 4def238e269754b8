import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fetchPinned } from "../../scripts/setup/fetch-pinned.mjs";

const MIB = 2 ** 20;
const content = randomBytes(3 * MIB);
const sha256 = createHash("sha256").update(content).digest("hex");

describe("a file of known content", () => {
  let folder: string;
  let server: Server;
  /** The ranges that the server was asked for. */
  let ranges: (string | undefined)[];
  let url: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-fetch-"));
    ranges = [];
  });
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
    rmSync(folder, { recursive: true });
  });

  async function serve(listener: RequestListener): Promise<void> {
    server = createServer((request, response) => {
      ranges.push(request.headers.range);
      listener(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/wheel`;
  }

  /** Sends what is asked for, or only its first bytes before it cuts the connection. */
  const send =
    (maxBytes = Number.POSITIVE_INFINITY): RequestListener =>
    (request, response) => {
      const begin = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
      const rest = content.subarray(begin);
      const range = { "content-range": `bytes ${begin}-${content.length - 1}/${content.length}` };
      response.writeHead(begin === 0 ? 200 : 206, {
        "content-length": rest.length,
        ...(begin === 0 ? {} : range),
      });
      if (rest.length <= maxBytes) response.end(rest);
      else response.write(rest.subarray(0, maxBytes), () => response.destroy());
    };

  const part = () => join(folder, "part");
  const get = (changes: Partial<Parameters<typeof fetchPinned>[0]> = {}) =>
    fetchPinned({
      places: [url],
      sha256,
      sizeBytes: content.length,
      part: part(),
      pauseMs: 1,
      stallMs: 5_000,
      ...changes,
    });

  it("goes on where the server has cut the connection, as often as it does", async () => {
    await serve(send(MIB + 1));
    expect(readFileSync(await get()).equals(content)).toBe(true);
    const begins = ranges.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? "bytes=0-")?.[1]));
    expect(begins.length).toBeGreaterThanOrEqual(3);
    expect(begins).toEqual([...new Set(begins)].toSorted((one, other) => one - other));
  });

  it("goes on where an earlier process has stopped", async () => {
    await serve(send());
    writeFileSync(part(), content.subarray(0, 1_000));
    expect(readFileSync(await get({ sizeBytes: undefined })).equals(content)).toBe(true);
    expect(ranges).toEqual(["bytes=1000-"]);
  });

  it("begins again where the server sends no ranges", async () => {
    await serve((_, response) => response.end(content));
    writeFileSync(part(), content.subarray(0, 1_000));
    expect(readFileSync(await get()).equals(content)).toBe(true);
  });

  it("begins again, once, where what an earlier process left is wrong", async () => {
    await serve(send());
    writeFileSync(part(), randomBytes(1_000));
    expect(readFileSync(await get()).equals(content)).toBe(true);
    expect(ranges).toEqual(["bytes=1000-", undefined]);
  });

  it("refuses another content and leaves nothing of it", async () => {
    await serve((_, response) => response.end(randomBytes(content.length)));
    await expect(get()).rejects.toThrow(
      new RegExp(`expected a file with SHA-256 ${sha256}, got [0-9a-f]{64}$`),
    );
    expect(existsSync(part())).toBe(false);
    expect(ranges).toHaveLength(1);
  });

  it("stops reading where a server sends more than the file", async () => {
    let sent = 0;
    await serve((_, response) => {
      const more = () => {
        sent += MIB;
        if (!response.destroyed) response.write(content.subarray(0, MIB), more);
      };
      more();
    });
    await expect(get()).rejects.toThrow(`expected ${content.length} bytes, got more`);
    expect(sent).toBeLessThan(100 * MIB);
    expect(existsSync(part())).toBe(false);
  });

  it("ends a connection that stalls, and goes on with another", async () => {
    await serve((request, response) => {
      if (ranges.length > 1) return send()(request, response);
      response.writeHead(200, { "content-length": content.length });
      response.write(content.subarray(0, 2 * MIB));
    });
    expect(readFileSync(await get({ stallMs: 300 })).equals(content)).toBe(true);
    expect(ranges).toHaveLength(2);
    expect(ranges[1]).toMatch(/^bytes=\d+-$/);
  });

  it("gives up a server that only stalls, and says so", async () => {
    await serve(() => {});
    await expect(get({ stallMs: 50 })).rejects.toThrow("no byte for 0.05 s, 5 times in a row");
  });

  it("follows redirects, but not in circles", async () => {
    await serve((request, response) => {
      if (request.url === "/there") return send()(request, response);
      response.writeHead(302, { location: request.url === "/circle" ? "/circle" : "/there" });
      response.end();
    });
    expect(readFileSync(await get()).equals(content)).toBe(true);
    rmSync(part());
    await expect(get({ places: [new URL("/circle", url).href] })).rejects.toThrow("redirect count exceeded");
  });

  it("takes a folder's file where it is, goes from place to place, and names what was wrong with each", async () => {
    await serve((_, response) => response.writeHead(404).end());
    const right = join(folder, "right");
    const wrong = join(folder, "wrong");
    writeFileSync(right, content);
    writeFileSync(wrong, "other");
    const nowhere = join(folder, "nowhere");
    expect(await get({ places: [nowhere, wrong, url, right] })).toBe(right);
    await expect(get({ places: [nowhere, wrong, url] })).rejects.toThrow(
      new RegExp(`nowhere: no such file\\n.*wrong: expected .*\\n  ${url}: HTTP status 404$`),
    );
  });

  it.skipIf(process.getuid?.() !== 0)("says that the disk is full, where it becomes so", async () => {
    await serve(send());
    const small = join(folder, "small");
    mkdirSync(small);
    expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "troupe-test", small]).status).toBe(0);
    try {
      await expect(get({ part: join(small, "part") })).rejects.toMatchObject({ code: "ENOSPC" });
    } finally {
      spawnSync("umount", [small]);
    }
  });
});
