import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addonIn, forkServerIn, sourceHash, writeBuildInfo } from "../../scripts/setup/build-info.mjs";
import { glooHeadersFound } from "../../scripts/setup/gloo.mjs";
import { copyAddon } from "../../scripts/setup/kept-addon.mjs";
import { isCurrent } from "../../scripts/setup/native.mjs";

describe("a built addon", () => {
  let folder: string;
  let configFolder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-build-"));
    configFolder = join(folder, "torch", "share", "cmake", "Torch");
    mkdirSync(configFolder, { recursive: true });
    placeLibtorch("2.13.0");
    writeFileSync(addonIn(folder), "");
    write({});
    vi.stubEnv("TROUPE_LIBTORCH", "");
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  function placeLibtorch(version: string): void {
    writeFileSync(join(configFolder, "TorchConfigVersion.cmake"), `set(PACKAGE_VERSION "${version}")\n`);
  }

  function write(changes: { sourceHash?: string; glooHeaders?: boolean }): void {
    const torch = { version: "2.13.0", configFolder, source: "python3", cuda: false };
    const info = {
      sourceHash: sourceHash(),
      torch,
      glooHeaders: glooHeadersFound(),
      addon: {},
      compiler: "GNU 12.2.0",
    };
    writeBuildInfo(folder, { ...info, ...changes });
  }

  it("is kept while sources and libtorch are as they were", () => {
    expect(isCurrent(folder)).toBe(true);
  });

  it("is rebuilt when a source changed", () => {
    write({ sourceHash: "of other sources" });
    expect(isCurrent(folder)).toBe(false);
  });

  it("is rebuilt when its libtorch became another version, or went", () => {
    placeLibtorch("2.14.0");
    expect(isCurrent(folder)).toBe(false);
    rmSync(configFolder, { recursive: true });
    expect(isCurrent(folder)).toBe(false);
  });

  it("is rebuilt when TROUPE_LIBTORCH names another libtorch", () => {
    vi.stubEnv("TROUPE_LIBTORCH", tmpdir());
    expect(isCurrent(folder)).toBe(false);
  });

  it.skipIf(!glooHeadersFound())("is rebuilt when Gloo's headers came after it", () => {
    write({ glooHeaders: false });
    expect(isCurrent(folder)).toBe(false);
  });

  it("is kept for other installations, and taken from there as it is", () => {
    const kept = join(folder, "kept");
    writeFileSync(forkServerIn(folder), "");
    copyAddon(folder, kept);
    expect(isCurrent(kept)).toBe(true);
    expect(readdirSync(kept).toSorted()).toEqual(["build-info.json", "fork-server.so", "troupe.node"]);
    placeLibtorch("2.14.0");
    expect(isCurrent(kept)).toBe(false);
  });

  it("the addon is built again when it is missing", () => {
    rmSync(addonIn(folder));
    expect(isCurrent(folder)).toBe(false);
  });
});
