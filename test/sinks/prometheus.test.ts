import { request } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { type PrometheusSink, prometheusSink } from "../../src/tools/sinks/index.ts";
import { stamped } from "../events/samples.ts";

async function openSink(): Promise<PrometheusSink> {
  const sink = await prometheusSink({ port: 0 });
  onTestFinished(() => sink.close());
  return sink;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

function ask(url: string, method = "GET", headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", text }),
      );
    });
    asking.on("error", reject);
    asking.end();
  });
}

describe("the Prometheus sink", () => {
  test("serves the latest figures in text format 0.0.4", async () => {
    const sink = await openSink();
    sink.write(stamped("run.started", { job: 'a "job"\\' }));
    sink.write(stamped("step.finished", { step: 1 }));
    sink.write(
      stamped("step.finished", { step: 2, lossNats: 1.25, gradientNorm: Number.NaN, numTokens: 100 }),
    );
    const metrics = { right: 0.25 };
    sink.write(stamped("step.finished", { step: 3, lossNats: 1.25, numTokens: undefined, metrics }));
    sink.write(stamped("evaluation.finished"));
    sink.write(stamped("memory.measured"));
    sink.write(stamped("checkpoint.failed"));
    sink.write(stamped("message.undelivered"));
    const { status, type, text } = await ask(sink.url);
    expect([status, type]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    const lines = text.split("\n");
    expect(lines.pop()).toBe("");
    expect(lines).toContain("# TYPE troupe_loss_nats gauge");
    expect(lines).toContain("troupe_loss_nats 1.25");
    expect(lines).toContain("troupe_samples_total 36");
    expect(lines).toContain('troupe_evaluation_loss_nats{split="validation"} 1.9051');
    expect(lines).toContain('troupe_named_loss_nats{split="validation",name="auxiliary"} 0.0051');
    expect(lines).toContain('troupe_metric{split="train",name="right"} 0.25');
    expect(lines).toContain('troupe_metric{split="validation",name="accuracy"} 0.5');
    expect(lines).toContain("troupe_tokens_total 868");
    expect(lines).toContain('troupe_memory_peak_bytes{rank="1",kind="activations"} 191000000');
    expect(lines).toContain('troupe_checkpoints_total{outcome="failed"} 1');
    expect(lines).toContain('troupe_messages_undelivered_total{reason="Stopped"} 2');
    expect(text).toContain('job="a \\"job\\"\\\\"');
    const grammar =
      /^(# HELP [a-z_]+ .+|# TYPE [a-z_]+ (gauge|counter)|[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="([^"\\]|\\.)*")*\})? (NaN|[+-]Inf|-?[\d.]+(e[+-]?\d+)?))$/;
    expect(lines.filter((line) => !grammar.test(line))).toEqual([]);
    // A count is named _total, and nothing else is.
    const types = lines.filter((line) => line.startsWith("# TYPE"));
    expect(types.filter((line) => line.endsWith("counter") !== line.includes("_total "))).toEqual([]);
  });

  test("answers HEAD without a body, and no other method, name or path", async () => {
    const sink = await openSink();
    sink.write(stamped("step.finished"));
    expect(await ask(sink.url, "HEAD")).toMatchObject({ status: 200, text: "" });
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
      expect((await ask(sink.url, method)).status).toBe(405);
    for (const host of ["evil.example", "127.0.0.1.evil.example:80", "[::2]"])
      expect((await ask(sink.url, "GET", { host })).status).toBe(403);
    expect((await ask(sink.url, "GET", { origin: "http://evil.example" })).status).toBe(403);
    expect((await ask(sink.url.replace("/metrics", "/../etc/passwd"))).status).toBe(404);
    expect((await ask(sink.url, "GET", { host: "localhost:1" })).status).toBe(200);
  });

  test("listens on loopback, and says so when the port is taken", async () => {
    const { url } = await openSink();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    const { port } = new URL(url);
    await expect(prometheusSink({ port: Number(port) })).rejects.toMatchObject({
      code: "SINK",
      message: expect.stringMatching(/EADDRINUSE \(choose another/),
    });
  });
});
