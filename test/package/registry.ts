import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

interface Manifest {
  readonly name: string;
  readonly version: string;
}

interface Published {
  readonly manifest: Manifest;
  /** The path of its archive's address. */
  readonly path: string;
  readonly integrity: string;
}

/** A registry of npm packages on this machine's own address, which holds what is published in it and nothing else. */
export class Registry {
  readonly #server: Server;
  /** Packages by name and version, and their archives by the path of their address. */
  readonly #manifests = new Map<string, Map<string, Published>>();
  readonly #archives = new Map<string, Buffer>();
  /** Bytes of all archives and files that were sent. */
  sentBytes = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      const path = decodeURIComponent(request.url ?? "/");
      const archive = this.#archives.get(path);
      if (archive !== undefined) {
        this.sentBytes += archive.length;
        response.end(archive);
        return;
      }
      const versions = this.#manifests.get(path.slice(1));
      if (versions === undefined) {
        response.writeHead(404).end("{}");
        return;
      }
      const latest = [...versions.keys()].at(-1);
      const origin = `http://${request.headers.host}`;
      const all = Object.fromEntries(
        [...versions].map(([version, { manifest, path, integrity }]) => [
          version,
          { ...manifest, dist: { tarball: `${origin}${path}`, integrity } },
        ]),
      );
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ name: path.slice(1), "dist-tags": { latest }, versions: all }));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Serves another file. */
  file(path: string, content: Buffer): void {
    this.#archives.set(path, content);
  }

  /** Publishes the archive of a package. */
  publish(archive: Buffer): void {
    const text = execFileSync("tar", ["xzO", "package/package.json"], { input: archive, encoding: "utf8" });
    this.#add(JSON.parse(text) as Manifest, archive);
  }

  /** Publishes the folder of an installed package. */
  publishFolder(folder: string): void {
    const tar = ["-cz", "--exclude=./node_modules", "--transform=s,^\\.,package,", "-C", folder, "."];
    const archive = execFileSync("tar", tar, { maxBuffer: 2 ** 28 });
    this.#add(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest, archive);
  }

  #add(manifest: Manifest, archive: Buffer): void {
    const { name, version } = manifest;
    const path = `/${name}/-/${version}.tgz`;
    this.#archives.set(path, archive);
    const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
    const versions = this.#manifests.get(name) ?? new Map<string, Published>();
    versions.set(version, { manifest, path, integrity });
    this.#manifests.set(name, versions);
  }
}
