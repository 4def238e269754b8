import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRecords, type RecordOptions } from "../../../src/library/data/index.ts";
import { startSigned } from "../../fixtures/records/signed-server.ts";
import { type S3Server, startS3, useS3 } from "../../fixtures/s3/s3-server.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-s3-records-"));
const how = <T>(options: RecordOptions<T> = {}): RecordOptions<T> => ({
  cacheDir: join(folder, "cache"),
  tell: () => {},
  ...options,
});

describe("records in S3", () => {
  let server: S3Server;
  const put = async (key: string, text: string) => {
    const client = new S3Client({ region: "us-east-1", endpoint: server.endpoint, forcePathStyle: true });
    await client.send(new PutObjectCommand({ Bucket: "data", Key: key, Body: text }));
  };
  const lines = (begin: number, end: number) =>
    Array.from({ length: end - begin }, (_, index) => `{"number": ${begin + index}}\n`).join("");

  beforeAll(async () => {
    server = await startS3("data");
    useS3(server);
    for (const file of [0, 1, 2]) await put(`set/part-${file}.jsonl`, lines(100 * file, 100 * file + 100));
    await put("set/README.md", "# A set");
    await put("set/below/part-9.jsonl", lines(900, 901));
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are found by prefix, pattern and braces, and read by ranges", async () => {
    const lengths: number[] = [];
    for (const source of ["s3://data/set/", "s3://data/set/part-*.jsonl", "s3://data/set/part-{1,2}.jsonl"]) {
      const records = await openRecords(source, how({ blockBytes: 200 }));
      lengths.push(records.length);
      expect(await records.at(records.length - 1)).toEqual({ number: 299 });
    }
    expect(lengths).toEqual([301, 300, 200]);
  });

  it("are refused where they are none, or are others by now", async () => {
    await expect(openRecords("s3://data/none.jsonl", how())).rejects.toMatchObject({ code: "DATA_MISSING" });
    await put("other.jsonl", lines(0, 50));
    const records = await openRecords("s3://data/other.jsonl", how());
    await put("other.jsonl", lines(1, 51));
    await expect(records.at(3)).rejects.toMatchObject({ code: "DATA_CHANGED" });
  });

  it("are signed: a store that checks it answers, and refuses another secret", async () => {
    await using signed = await startSigned("/signed/a b.jsonl", lines(0, 40), "a secret");
    await using other = await startSigned("/others/a.jsonl", lines(0, 40), "another secret");
    Object.assign(process.env, { AWS_ENDPOINT_URL_S3: signed.endpoint, AWS_SECRET_ACCESS_KEY: "a secret" });
    const records = await openRecords("s3://signed/a b.jsonl", how({ blockBytes: 100 }));
    expect(await records.at(39)).toEqual({ number: 39 });
    process.env.AWS_ENDPOINT_URL_S3 = other.endpoint;
    await expect(openRecords("s3://others/a.jsonl", how())).rejects.toMatchObject({ code: "S3_FAILED" });
    useS3(server);
  });
});
