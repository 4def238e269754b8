import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";

/** A proxy on this machine's own address: whichever host is asked for, the answer is one server's. */
export class LocalProxy {
  readonly #server: Server;
  /** The hosts that were asked for. */
  readonly hosts = new Set<string>();

  /** @param port - of the server */
  constructor(port: number) {
    this.#server = createServer((incoming, response) => {
      const { host, pathname } = new URL(incoming.url ?? "");
      this.hosts.add(host);
      const options = { host: "127.0.0.1", port, path: pathname, headers: { ...incoming.headers, host } };
      request(options, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      }).end();
    });
    this.#server.on("connect", ({ url = "" }, client) => {
      this.hosts.add(url.replace(/:80$/, ""));
      const upstream = connect(port, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
        upstream.pipe(client).pipe(upstream);
      });
      for (const socket of [client, upstream]) socket.on("error", () => upstream.destroy());
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
