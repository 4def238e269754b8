import { lstat, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CheckpointServer, CheckpointService } from "../../src/tools/service/index.ts";
import { refusal } from "../checkpoint/refusal.ts";
import { served } from "./served.ts";
import { temporaryFolder } from "./temporary-folder.ts";

describe("access to a checkpoint server", () => {
  test("the port admits only callers with the token, by a name of this machine, from no other page, with a served method", async () => {
    const { ask, token, server } = await served("port");
    const { port } = new URL(server.address);
    const good = {
      authorization: `Bearer ${token}`,
      host: `127.0.0.1:${port}`,
      origin: `http://127.0.0.1:${port}`,
    };
    const wrong = {
      authorization: ["", "Bearer", `Bearer ${token.slice(1)}0`, `Basic ${token}`],
      host: ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example"],
      origin: ["http://evil.example", "null", `http://evil.example:${port}`],
    };
    const paths = [
      "/checkpoints",
      "/events",
      "/checkpoints/1/tensors/a",
      "/checkpoints/1/commit",
      "/nothing",
    ];
    let numRefused = 0;
    for (const path of paths) {
      for (const method of [
        "GET",
        "HEAD",
        "PUT",
        "POST",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "PROPFIND",
      ]) {
        for (const [header, values] of Object.entries(wrong)) {
          for (const value of values) {
            const { status } = await ask(path, { method, headers: { ...good, [header]: value } });
            expect([header, value, method, path, status >= 400 && status < 500]).toEqual([
              header,
              value,
              method,
              path,
              true,
            ]);
            numRefused += 1;
          }
        }
      }
    }
    expect(numRefused).toBe(5 * 9 * 10);
    for (const method of ["PATCH", "OPTIONS", "TRACE"])
      expect((await ask("/checkpoints", { method })).status).toBe(405);
    expect((await ask("/checkpoints", { method: "DELETE" })).headers.allow).toBe("GET");
    const fine = await ask("/checkpoints", { headers: good });
    expect([
      fine.status,
      fine.headers["x-content-type-options"],
      fine.headers["access-control-allow-origin"],
    ]).toEqual([200, "nosniff", undefined]);
  });

  test("the socket admits only the user whose process serves it", async () => {
    const { ask, socket } = await served("socket");
    expect((await stat(socket)).mode & 0o777).toBe(0o600);
    expect((await ask("/checkpoints", { headers: { origin: "http://evil.example" } })).status).toBe(403);
    expect((await ask("/checkpoints", { method: "OPTIONS" })).status).toBe(405);
  });

  test("the token is in a file that only its owner reads, and no other file is taken for it", async () => {
    const folder = await temporaryFolder();
    await using service = await CheckpointService.open({ dir: join(folder, "run") });
    const tokenFile = join(folder, "token");
    await using server = await CheckpointServer.listen(service, { port: 0, tokenFile });
    expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await stat(tokenFile)).mode & 0o777).toBe(0o600);
    const open = join(folder, "open");
    await writeFile(open, `${"0".repeat(64)}\n`, { mode: 0o644 });
    expect((await refusal(() => CheckpointServer.listen(service, { port: 0, tokenFile: open }))).code).toBe(
      "ACCESS_TOKEN",
    );
  });

  test.each([-1, 1.5, 65_536])(
    "a number that is no port, %d, is refused as one that is taken",
    async (port) => {
      const folder = await temporaryFolder();
      await using service = await CheckpointService.open({ dir: join(folder, "run") });
      const tokenFile = join(folder, "token");
      const error = await refusal(() => CheckpointServer.listen(service, { port, tokenFile }));
      expect(error).toMatchObject({ code: "CHECKPOINT_SERVE" });
      expect(error.message).toContain(`expected to listen on port ${port}, got "options.port should be`);
    },
  );

  test("a socket that a killed server left is taken over; one that answers, and any other file, is not", async () => {
    const { service, socket, server } = await served("socket");
    expect((await refusal(() => CheckpointServer.listen(service, { socket }))).code).toBe("CHECKPOINT_SERVE");
    const file = `${socket}.txt`;
    await writeFile(file, "mine");
    expect((await refusal(() => CheckpointServer.listen(service, { socket: file }))).message).toContain(
      "not a socket",
    );
    await server.close();
    expect(await lstat(socket).catch(() => undefined)).toBeUndefined();
    expect((await refusal(() => CheckpointServer.listen(service, {}))).code).toBe("USAGE");
    expect((await refusal(() => CheckpointServer.listen(service, { port: 0 }))).code).toBe("USAGE");
    await (await CheckpointServer.listen(service, { socket })).close();
  });
});
