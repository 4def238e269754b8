import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { connectS3 } from "../../src/library/s3-client.ts";

afterEach(() => vi.unstubAllEnvs());

test("a request that the store never answers is made again", async () => {
  let numRequests = 0;
  const server = createServer((_request, response) => {
    numRequests += 1;
    if (numRequests > 1) response.writeHead(200, { etag: '"tag"' }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  vi.stubEnv("AWS_ENDPOINT_URL_S3", `http://127.0.0.1:${port}`);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "id");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  try {
    const { client, sdk } = await connectS3({ bucket: "models", prefix: "" }, 100);
    const { ETag } = await client.send(new sdk.HeadObjectCommand({ Bucket: "models", Key: "latest" }));
    expect([ETag, numRequests]).toEqual(['"tag"', 2]);
    client.destroy();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
