import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { availableParallelism } from "node:os";
import { pipeline } from "node:stream";
import { afterAll, describe, expect, it } from "vitest";
import { keepStore } from "../../src/compute/collectives/index.ts";
import { nativeInfo } from "../../src/entries/tensor.ts";
import {
  listCheckpoints,
  openCheckpoint,
  openStorage,
  verifyCheckpoint,
} from "../../src/library/checkpoint/index.ts";
import { type CertificateFiles, makeCertificate } from "../fixtures/certificates.ts";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { startS3, useS3 } from "../fixtures/s3/s3-server.ts";
import { freePort, LaunchedRun, torchVariables, untilAnswered, untilCalled } from "./launched-hosts.ts";

describe.skipIf(!nativeInfo().gloo)("processes that a launcher starts together", () => {
  const workspace = new Workspace();
  const quick = ["--threads-per-rank", "1", "--no-warm-standby"];
  afterAll(() => workspace[Symbol.dispose]());

  /** A run of two hosts: the head, and host 1. */
  async function startTwo(...args: readonly string[]) {
    const port = await freePort();
    const startWith = (rank: number, ...all: readonly string[]) =>
      new LaunchedRun(workspace, torchVariables(rank, 2, port), [...quick, ...all]);
    const start = (rank: number, ...more: readonly string[]) => startWith(rank, ...args, ...more);
    return { head: start(0), member: start(1), start, startWith };
  }

  it("train as one run, a layer split within each and stages across, to the 17 digits of one host", async () => {
    const { head, member } = await startTwo(
      "--ranks",
      "4",
      "--tp",
      "2",
      "--pp",
      "2",
      "--steps",
      "4",
      "--bind",
      "cores",
    );
    using _ = head;
    using __ = member;
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
    const means = { numCores: availableParallelism(), memoryBytes: expect.any(Number), devices: [] };
    expect(head.events.filter(({ kind }) => kind === "host.joined")).toMatchObject([{ index: 1, ...means }]);
    expect(head.events.find(({ kind }) => kind === "run.started")).toMatchObject({
      hosts: [
        { index: 0, ranks: [0, 1], ...means },
        { index: 1, ranks: [2, 3], ...means },
      ],
    });
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 4, tp: 2, pp: 2, steps: 4 }));
    expect(member.events).toEqual([]);
  });

  it("ranks join groups at stores of their own hosts; only hosts use the launcher's store", async () => {
    using kept = keepStore();
    let said = "";
    const between = createServer((member) => {
      member.on("data", (data) => {
        said += data.toString("latin1");
      });
      pipeline(member, connect(Number(kept.rendezvous.split(":").at(-1)), "127.0.0.1"), member, () => {});
    });
    await once(between.listen(0, "127.0.0.1"), "listening");
    const start = (rank: number) => {
      const variables = torchVariables(rank, 2, (between.address() as AddressInfo).port);
      const options = ["--ranks", "4", "--pp", "2", "--steps", "2"];
      return new LaunchedRun(workspace, { ...variables, TORCHELASTIC_USE_AGENT_STORE: "True" }, [
        ...quick,
        ...options,
      ]);
    };
    using head = start(0);
    using member = start(1);
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
    between.close();
    expect(said).toContain("troupe/");
    // The first key that each member of a group sets (native/comm/rendezvous.cc).
    expect(said).not.toContain("/size");
  });

  it.each([1, 3] as const)(
    "add gradients within each host, then over hosts, to the bits that two devices of one host do so with: ZeRO %s",
    async (zero) => {
      const options = ["--ranks", "4", "--zero", `${zero}`, "--steps", "6", "--reduction", "hierarchical"];
      const { head, member } = await startTwo(...options);
      using _ = head;
      using __ = member;
      expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
      const layout = { ranks: 4, zero, steps: 6 } as const;
      const twoMemories = { ...layout, device: "sim", reduction: "hierarchical" } as const;
      expect(head.losses).toEqual(await lossesOf(workspace, twoMemories));
      // Another order of additions: were the option ignored, these would be equal.
      expect(head.losses).not.toEqual(await lossesOf(workspace, layout));
    },
  );

  it("hosts name the one that dies, start its ranks again on the others, and repeat the losses to the last digit", async () => {
    const options = ["--ranks", "2", "--zero", "3", "--steps", "12", "--checkpoint-in-memory-every", "2"];
    const { head, member } = await startTwo(...options);
    using _ = head;
    using __ = member;
    await head.until((event) => event.kind === "step.finished" && event.step === 5);
    member.child.kill("SIGKILL");
    expect(await head.ended, head.err).toBe(0);
    expect(head.events.filter(({ kind }) => kind === "host.failed")).toMatchObject([
      { index: 1, error: { code: "HOST_LOST" } },
    ]);
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 }));
  });

  it("save and end together where any of them is sent a signal, and go on from that", async () => {
    const folder = workspace.path("signalled");
    const { head, member, start } = await startTwo("--steps", "400", "--checkpoint", folder);
    using _ = head;
    using __ = member;
    await head.until((event) => event.kind === "step.finished" && event.step === 2);
    member.child.kill("SIGTERM");
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([75, 75]);
    const done = head.losses.length;
    const steps = ["--steps", `${done + 2}`, "--resume", folder];
    using again = start(0, ...steps);
    using other = start(1, ...steps);
    expect([await again.ended, await other.ended], again.err + other.err).toEqual([0, 0]);
    const whole = await lossesOf(workspace, { ranks: 2, steps: done + 2 });
    expect([...head.losses, ...again.losses.slice(done)]).toEqual(whole);
  });

  it("all exit with 75 when the head gets a signal, and each says what ended it", async () => {
    const folder = workspace.path("signalled-head");
    const { head, member } = await startTwo(
      "--steps",
      "400",
      "--checkpoint",
      folder,
      "--checkpoint-every",
      "1",
    );
    using _ = head;
    using __ = member;
    // While saves are under way.
    await head.until((event) => event.kind === "checkpoint.saved");
    head.child.kill("SIGINT");
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([75, 75]);
    const done = head.losses.length;
    expect(head.err).toContain(`got SIGINT after step ${done}, whose state is saved in ${folder}`);
    expect(member.err).toContain(
      `got SIGINT after step ${done}, whose state is saved (host 0 tells how to go on)`,
    );
  });

  it("exit with 75 when a signal comes before all have joined, on a host without a head yet and on the head", async () => {
    const port = await freePort();
    const options = [...quick, "--steps", "400", "--checkpoint", workspace.path("early")];
    using member = new LaunchedRun(workspace, torchVariables(1, 2, port), options);
    await untilCalled(port);
    member.child.kill("SIGTERM");
    using head = new LaunchedRun(workspace, torchVariables(0, 2, port), options);
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([75, 75]);
    expect(head.losses.length).toBeLessThan(400);
    using alone = new LaunchedRun(workspace, torchVariables(0, 2, port), quick);
    await untilAnswered(port);
    alone.child.kill("SIGTERM");
    expect(await alone.ended, alone.err).toBe(75);
    expect(alone.err).toContain("got SIGTERM before all hosts had joined (no step was made: start it again)");
  });

  it("tell both ends at once why a host is refused: another token, a certificate of another CA, none; and count it as missing", async () => {
    const [ours, theirs] = [makeCertificate(workspace.path("a")), makeCertificate(workspace.path("b"))];
    const withToken = (name: string) => {
      const file = workspace.path(name);
      writeFileSync(file, `the token of run ${name}`, { mode: 0o600 });
      return ["--host-token-file", file];
    };
    const withKeys = ({ cert, key }: CertificateFiles, { ca }: CertificateFiles) => {
      return ["--tls-cert", cert, "--tls-key", key, "--tls-ca", ca];
    };
    for (const [heads, members, code, message] of [
      [
        withToken("one"),
        withToken("two"),
        "HOST_REFUSED",
        /the token of the host that is called, got another one/,
      ],
      [
        withKeys(ours, ours),
        withKeys(theirs, ours),
        "PEER_UNTRUSTED",
        /got \w+ for the certificate of the host that calls/,
      ],
      [
        withKeys(ours, ours),
        withKeys(ours, theirs),
        "PEER_UNTRUSTED",
        /got \w+ for the certificate of the host that is called/,
      ],
      [
        withKeys(ours, ours),
        [],
        "HOST_REFUSED",
        /expected certificates .*, as host 0 has, got no certificates/,
      ],
    ] as const) {
      const port = await freePort();
      using member = new LaunchedRun(workspace, torchVariables(1, 2, port), [...quick, ...members]);
      await untilCalled(port);
      const args = [...quick, "--host-deadline", "5", ...heads];
      using head = new LaunchedRun(workspace, torchVariables(0, 2, port), args);
      await head.until(({ kind }) => kind === "host.refused");
      expect(head.events.find(({ kind }) => kind === "host.refused")).toMatchObject({
        index: 1,
        error: { code, message: expect.stringMatching(message) },
      });
      expect([await member.ended, await head.ended]).toEqual([1, 1]);
      expect(member.err).toMatch(message);
      expect(head.err).toMatch(/2 hosts within 5 s, got all but host 1; host 1 was refused: /);
      expect(head.err).toMatch(message);
    }
  });

  it.each(["a folder that all see", "a store"])(
    "write each its ranks' share into %s, by one manifest, and any number of hosts goes on from it",
    async (where) => {
      await using store = where === "a store" ? await startS3("hosts") : undefined;
      if (store !== undefined) useS3(store);
      const folder = store === undefined ? workspace.path("seen-by-all") : "s3://hosts/seen-by-all";
      const layout = ["--ranks", "4", "--tp", "2", "--zero", "2"];
      const saving = ["--checkpoint", folder, "--checkpoint-every", "2", "--checkpoint-keep-last", "1"];
      const { head, member, startWith } = await startTwo(...layout, ...saving, "--steps", "4");
      using _ = head;
      using __ = member;
      expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
      const [kept, ...others] = await listCheckpoints(folder);
      expect([kept, others]).toMatchObject([{ step: 4, latest: true }, []]);
      const fourth = `${folder}/step-000004`;
      await using checkpoint = await openCheckpoint(folder);
      expect([...checkpoint.manifest.files.keys()].filter((name) => name.startsWith("model"))).toEqual(
        [0, 1, 2, 3].map((rank) => `model-rank-0000${rank}.safetensors`),
      );
      expect(await verifyCheckpoint(await openStorage(folder), "step-000004")).toEqual([]);
      const going = ["--ranks", "2", "--zero", "3", "--steps", "6", "--resume", fourth];
      using again = startWith(0, ...going);
      using other = startWith(1, ...going);
      expect([await again.ended, await other.ended], again.err + other.err).toEqual([0, 0]);
      const alone = await runTiny(workspace, { ranks: 2, zero: 3, steps: 6, resume: fourth });
      expect(alone.error).toBeUndefined();
      expect(alone.losses.slice(4)).toHaveLength(2);
      expect(again.losses.slice(4)).toEqual(alone.losses.slice(4));
    },
  );

  it("of which several share a host have one start its ranks, know each other by certificates, and train as one host does", async () => {
    const port = await freePort();
    const ours = makeCertificate(workspace.path("ours"));
    const tokenFile = workspace.path("token");
    writeFileSync(tokenFile, "of all hosts of this run", { mode: 0o600 });
    const trustIn = ({ cert, key, ca }: CertificateFiles) => [
      "--tls-cert",
      cert,
      "--tls-key",
      key,
      "--tls-ca",
      ca,
    ];
    const args = [...quick, "--zero", "1", "--steps", "4", "--host-token-file", tokenFile];
    const startAs = (rank: number, files: CertificateFiles) => {
      const local = { LOCAL_RANK: `${rank % 2}`, LOCAL_WORLD_SIZE: "2" };
      return new LaunchedRun(workspace, { ...torchVariables(rank, 4, port), ...local }, [
        ...args,
        ...trustIn(files),
      ]);
    };
    using head = startAs(0, ours);
    using stranger = startAs(3, makeCertificate(workspace.path("theirs")));
    expect(await stranger.ended).toBe(1);
    expect(stranger.err).toMatch(/expected certificates that the other end's CA has signed/);
    using first = startAs(1, ours);
    using second = startAs(2, ours);
    using third = startAs(3, ours);
    const all = [head, first, second, third];
    expect(await Promise.all(all.map(({ ended }) => ended)), all.map(({ err }) => err).join("")).toEqual([
      0, 0, 0, 0,
    ]);
    expect(head.events.filter(({ kind }) => kind === "host.joined")).toMatchObject([{ index: 2 }]);
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 4, zero: 1, steps: 4 }));
    expect(head.err).toContain("tensors go over Gloo unencrypted");
  });

  it("refuse a host that was started with other options, by what both were started with", async () => {
    const port = await freePort();
    const [head, other] = [0, 1].map(
      (rank) => new LaunchedRun(workspace, torchVariables(rank, 2, port), ["--steps", `${2 + rank}`]),
    ) as [LaunchedRun, LaunchedRun];
    using _ = head;
    using __ = other;
    expect(await other.ended).toBe(1);
    expect(other.err).toMatch(/expected host 1 \(.*\) to be started with .*tiny\.ts/);
  });

  it("say which of them did not come within the deadline", async () => {
    const port = await freePort();
    const folder = workspace.path("never");
    const args = ["--host-deadline", "1", "--checkpoint", folder];
    using head = new LaunchedRun(workspace, torchVariables(0, 2, port), args);
    expect(await head.ended).toBe(1);
    expect(head.err).toMatch(/2 hosts within 1 s, got all but host 1/);
    using member = new LaunchedRun(workspace, torchVariables(1, 2, port), args);
    expect(await member.ended).toBe(1);
    expect(member.err).toMatch(/expected host 0 at 127\.0\.0\.1:\d+ within 1 s, got no answer/);
    expect(existsSync(folder)).toBe(false);
  });

  it("hosts learn that their port is taken, and that ranks of several hosts are processes, at least one on each", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { readonly port: number };
    using taken = new LaunchedRun(workspace, torchVariables(0, 2, port), quick);
    expect(await taken.ended).toBe(1);
    expect(taken.err).toMatch(new RegExp(`port ${port} of 127.0.0.1 to be free`));
    other.close();
    for (const [args, message] of [
      [["--placement", "thread"], /expected placement to be process in what torchrun has started on 2 hosts/],
      [["--ranks", "1"], /expected ranks to be at least 2/],
    ] as const) {
      using refused = new LaunchedRun(workspace, torchVariables(0, 2, port), args);
      expect(await refused.ended).toBe(2);
      expect(refused.err).toMatch(message);
    }
  });
});
