import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { Dashboard } from "../../src/job/dashboard/index.ts";
import { samples } from "../events/samples.ts";
import { ask, bearer, PageReader } from "./page-reader.ts";
import { begun, stamped, stepped } from "./stepped.ts";

const open = (options = {}, sources = {}) => Dashboard.open({ port: 0, ...options }, sources);
const pagePaths = [
  "/",
  "/style.css",
  "/actors.css",
  "/app.js",
  "/charts.js",
  "/theme.js",
  "/icon.svg",
  "/uplot.js",
  "/uplot.css",
];

describe("Dashboard", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  describe("to unauthenticated clients", () => {
    it("listens on this machine only, and its address holds the token where browsers keep it to themselves", async () => {
      await using dashboard = await open();
      expect(dashboard.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[0-9a-f]{64}$/);
    });

    it("serves every file of the page with a policy that lets nothing in from elsewhere", async () => {
      await using dashboard = await open();
      for (const path of pagePaths) {
        const response = await ask(dashboard.url, path);
        response.resume();
        expect([path, response.statusCode]).toEqual([path, 200]);
        expect(response.headers).toMatchObject({
          "content-security-policy": expect.stringMatching(/^default-src 'self'; .*frame-ancestors 'none'/),
          "x-frame-options": "DENY",
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
          "cache-control": "no-store",
        });
        expect(response.headers).not.toHaveProperty("access-control-allow-origin");
      }
    });

    const paths = [...pagePaths, "/stream", "/nowhere", "/../package.json", "/%2e%2e/frame.ts", "/.//stream"];
    const methods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];

    it("refuses a wrong Host, a wrong Origin, and every method but GET and HEAD on every path, token or not", async () => {
      await using dashboard = await open();
      const served: string[] = [];
      for (const path of paths) {
        for (const token of [{}, bearer(dashboard.url)]) {
          const wrong = [
            { headers: { ...token, host: "evil.example" } },
            { headers: { ...token, origin: "http://evil.example" } },
            { headers: { ...token, origin: "null" } },
            ...methods.map((method) => ({ method, headers: token })),
          ];
          for (const options of wrong) {
            const response = await ask(dashboard.url, path, options);
            response.resume();
            if (![403, 405].includes(response.statusCode ?? 0))
              served.push(`${path} ${JSON.stringify(options)}`);
          }
        }
      }
      expect(served).toEqual([]);
    });

    it("the dashboard shows nothing of a run without the token, and has nothing at other paths", async () => {
      await using dashboard = await open();
      dashboard.write(begun());
      const wrong = { authorization: `Bearer ${"0".repeat(64)}` };
      for (const headers of [{}, wrong, { cookie: bearer(dashboard.url).authorization as string }]) {
        expect((await ask(dashboard.url, "/stream", { headers })).statusCode).toBe(401);
      }
      const query = `/stream?token=${/#token=(.*)/.exec(dashboard.url)?.[1]}`;
      expect((await ask(dashboard.url, query)).statusCode).toBe(401);
      for (const path of ["/nowhere", "/%2e%2e/frame.ts", "/page/app.js", "/__proto__", "/constructor"]) {
        const response = await ask(dashboard.url, path, { headers: bearer(dashboard.url) });
        expect([path, response.statusCode]).toEqual([path, 404]);
      }
    });

    it.each([
      "GET /stream HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
      "CONNECT evil.example:80 HTTP/1.1\r\n",
    ])("refuses a socket that wants to be something else: %j", async (head) => {
      await using dashboard = await open();
      const { hostname, port } = new URL(dashboard.url);
      const socket = connect(Number(port), hostname);
      let answer = "";
      socket.setEncoding("utf8").on("data", (text) => {
        answer += text;
      });
      socket.write(`${head}Host: localhost\r\nAuthorization: ${bearer(dashboard.url).authorization}\r\n\r\n`);
      await once(socket, "close");
      expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    });
  });

  describe("to a page", () => {
    it("tells all there is, then what changes", async () => {
      await using dashboard = await open();
      dashboard.write(begun());
      dashboard.write(stepped(1));
      using reader = await PageReader.open(dashboard.url);
      const first = await reader.until(({ frames }) => frames[0]);
      expect(first).toMatchObject({
        run: { step: 1, lossNats: 4 },
        steps: { numKept: 0, columns: { lossNats: [4] } },
        incidents: [],
      });
      dashboard.write(stepped(2, { lossNats: Number.NaN }));
      const second = await reader.until(({ frames }) => frames[1]);
      expect(second).toMatchObject({ run: { step: 2, lossNats: "NaN" } });
      expect(second).not.toHaveProperty("incidents");
    });

    it("sends a page that reconnects what it missed, and a page of an earlier server everything", async () => {
      const options = { tokenFile: join(folder, "token") };
      const dashboard = await open(options);
      dashboard.write(begun());
      dashboard.write(stepped(1));
      const reader = await PageReader.open(dashboard.url);
      await reader.until(({ frames }) => frames[0]);
      const { lastId } = reader;
      reader[Symbol.dispose]();
      dashboard.write(stepped(2));
      using back = await PageReader.open(dashboard.url, { "last-event-id": lastId });
      const missed = await back.until(({ frames }) => frames[0]);
      expect(missed).toMatchObject({ steps: { columns: { step: [2] } } });
      expect(missed).not.toHaveProperty("incidents");
      await dashboard.close();

      await using next = await open(options);
      expect(bearer(next.url)).toEqual(bearer(dashboard.url));
      next.write(begun());
      for (const id of [lastId, "nonsense", "00000000-0000-0000-0000-000000000000.999999"]) {
        using other = await PageReader.open(next.url, { "last-event-id": id });
        expect(await other.until(({ frames }) => frames[0])).toMatchObject({
          incidents: [],
          run: { step: 0 },
        });
      }
    });

    it("the dashboard sends little to a page that does not read, and the present state when it reads again", async () => {
      await using dashboard = await open();
      dashboard.write(begun());
      using reader = await PageReader.open(dashboard.url);
      await reader.until(({ frames }) => frames[0]);
      reader.response.pause();
      const text = "x".repeat(4 << 20);
      using other = await PageReader.open(dashboard.url);
      for (let step = 1; step <= 12; step++) {
        dashboard.write(stamped({ kind: "text.generated", step, text }));
        // Another page, which reads, says when the frame of this step was sent.
        await other.until(({ frames }) => frames.find(({ sample }) => sample?.step === step));
        other.heard.length = 0;
      }
      reader.response.resume();
      await reader.until(({ frames }) => frames.find(({ sample }) => sample?.step === 12));
      // The frames in the system's buffers, and the last state; not every frame.
      expect(reader.frames.filter(({ sample }) => sample != null).length).toBeLessThanOrEqual(6);
    });

    it("lets a page go that reads nothing for three beats, and says so once", async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      onTestFinished(() => {
        vi.useRealTimers();
      });
      await using dashboard = await open();
      const reported: unknown[] = [];
      dashboard.attach((body) => reported.push(body));
      using silent = await PageReader.open(dashboard.url);
      silent.response.pause();
      using other = await PageReader.open(dashboard.url);
      for (let step = 1; step <= 4; step++) {
        dashboard.write(stamped({ kind: "text.generated", step, text: "x".repeat(4 << 20) }));
        await other.until(({ frames }) => frames.find(({ sample }) => sample?.step === step));
      }
      for (let beat = 1; beat <= 5; beat++) vi.advanceTimersByTime(10_000);
      expect(reported).toMatchObject([{ kind: "output.failed", output: "a page of the dashboard" }]);
      const closed = new Promise((resolve) => silent.response.once("close", resolve));
      silent.response.resume();
      await closed;
    });

    it("inspects actors while a page is open, and never when none is", async () => {
      let numLooks = 0;
      const status = {
        actor: "rank-0",
        incarnation: 1,
        pid: 1,
        state: "handling",
        ageMs: 5,
        handling: "step",
      };
      const inspect = () => {
        numLooks++;
        return [{ ...status, waitingFor: undefined, numQueued: 0, numHandled: numLooks, op: undefined }];
      };
      await using dashboard = await open({}, { inspect });
      using reader = await PageReader.open(dashboard.url);
      const boards = await reader.until(({ heard }) => {
        const found = heard.filter(({ event }) => event === "board");
        return found.length >= 3 ? found : undefined;
      });
      expect(boards[0]?.data.actors).toMatchObject([{ actor: "rank-0", handling: "step" }]);
    });

    it("shows what actors of a traced run reported, on the clock of events, thinned where it is much", async () => {
      await using dashboard = await open();
      using reader = await PageReader.open(dashboard.url);
      dashboard.write(begun({ clockMs: 500 }));
      for (let index = 0; index < 5000; index++) {
        dashboard.write(
          stamped({
            ...samples["message.handled"],
            actor: "shard-0",
            role: "shard",
            beginMs: 600,
            endMs: 610,
          }),
        );
      }
      const spans = await reader.until(
        ({ heard }) =>
          heard.flatMap((one) => (one.event === "board" && one.data.spans?.length ? one.data.spans : []))[0],
      );
      expect(spans).toMatchObject({ actor: "shard-0", role: "shard", beginMs: 1_000_100, endMs: 1_000_110 });
      const numReported = reader.heard.reduce(
        (sum, one) => sum + (one.event === "board" ? (one.data.spans?.length ?? 0) : 0),
        0,
      );
      expect(numReported).toBeLessThanOrEqual(400);
    });
  });

  it("says which address cannot be had, and takes another port only where none was asked for", async () => {
    await using first = await open();
    const port = Number(new URL(first.url).port);
    await expect(open({ port })).rejects.toMatchObject({ code: "DASHBOARD_PORT", message: /EADDRINUSE/ });
    await expect(open({ host: "192.0.2.1" })).rejects.toMatchObject({ code: "DASHBOARD_PORT" });
    await using usual = await Dashboard.open();
    await using besides = await Dashboard.open();
    expect(new URL(besides.url).port).not.toBe(new URL(usual.url).port);
  });

  it("ends the streams of its pages and frees its port when it is closed", async () => {
    const dashboard = await open();
    const port = Number(new URL(dashboard.url).port);
    using reader = await PageReader.open(dashboard.url);
    dashboard.write(stamped(samples["run.finished"]));
    await dashboard.close();
    await reader.until(({ frames }) => frames.find(({ run }) => run?.state === "finished"));
    await using again = await open({ port });
    expect(Number(new URL(again.url).port)).toBe(port);
  });
});
