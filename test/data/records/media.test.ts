import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import {
  decodePicture,
  decodeSound,
  type JsonRecord,
  mixRecords,
  openRecords,
  type RecordOptions,
} from "../../../src/library/data/index.ts";
import { flacOf } from "../../fixtures/records/flac-of.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-media-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const reported: string[] = [];
const how = <T>(options: RecordOptions<T> = {}): RecordOptions<T> => ({
  cacheDir: join(folder, "cache"),
  tell: (line) => void reported.push(line),
  ...options,
});

/** A picture of 6 by 4 pixels with a red left half and a blue right one. */
const pixels = Buffer.from(
  Array.from({ length: 24 }, (_, pixel) => (pixel % 6 < 3 ? [250, 5, 5] : [5, 5, 250])).flat(),
);
const picture = () => sharp(pixels, { raw: { width: 6, height: 4, channels: 3 } });

describe("pictures", () => {
  it.each(["png", "jpeg", "webp"] as const)("of %s are red, green and blue, row by row", async (format) => {
    const options = format === "webp" ? { lossless: true } : { quality: 100, chromaSubsampling: "4:4:4" };
    const bytes = await picture().toFormat(format, options).toBuffer();
    const { width, height, colours } = await decodePicture(bytes, "a picture");
    expect([width, height, colours.length]).toEqual([6, 4, 72]);
    for (const [at, value] of pixels.entries()) expect(Math.abs((colours[at] ?? 0) - value)).toBeLessThan(12);
  });

  it("that are grey have three equal colours, transparent ones are drawn on white, and damaged ones are refused", async () => {
    const grey = await picture().greyscale().png().toBuffer();
    const { colours } = await decodePicture(grey, "grey");
    expect(colours[0]).toBe(colours[1]);
    expect(colours.length).toBe(72);
    const clear = await sharp({ create: { width: 2, height: 1, channels: 4, background: "#00000000" } })
      .png()
      .toBuffer();
    expect([...(await decodePicture(clear, "clear")).colours]).toEqual(Array(6).fill(255));
    await expect(decodePicture(grey.subarray(0, 60), "cut.png")).rejects.toThrow(
      "[data] expected a picture at cut.png, got ",
    );
    await expect(decodePicture("text", "text.png")).rejects.toThrow(
      "expected the bytes of a picture at text.png, got string",
    );
  });
});

describe("a folder of loose files", () => {
  it("has a sample for each name, with the folder below as its class; a damaged one is left out", async () => {
    for (const name of ["dog", "cat"]) mkdirSync(join(folder, "animals", name), { recursive: true });
    for (const number of [1, 2, 3]) {
      const bytes = await picture().png().toBuffer();
      writeFileSync(
        join(folder, "animals/cat", `${number}.png`),
        number === 2 ? bytes.subarray(0, 40) : bytes,
      );
      writeFileSync(join(folder, "animals/dog", `${number}.jpg`), await picture().jpeg().toBuffer());
      writeFileSync(join(folder, "animals/dog", `${number}.txt`), `dog ${number}`);
    }
    const records = await openRecords(join(folder, "animals"), how());
    expect(records.length).toBe(6);
    expect(await records.at(4)).toMatchObject({ __key__: "dog/2", txt: "dog 2", cls: 1, folder: "dog" });
    const decoded = await openRecords(
      join(folder, "animals"),
      how({
        bad: "leave-out",
        columns: "image=png;jpg,label=cls,key=__key__",
        map: async ({ image, label, key }, place) => ({ ...(await decodePicture(image, place)), label, key }),
      }),
    );
    const keys = await Promise.all([0, 1, 2, 3, 4].map(async (index) => (await decoded.at(index)).key));
    expect(keys).toEqual(["cat/1", "cat/3", "dog/1", "dog/2", "dog/3"]);
    expect([decoded.length, decoded.numBad]).toEqual([5, 1]);
    expect(reported.at(-1)).toContain("[data] left out: [data] expected a picture at ");
  });
});

describe("recordings", () => {
  const wave = Int16Array.from({ length: 3_000 }, (_, at) => Math.round(12_000 * Math.sin(at / 20)));

  it("of FLAC are decoded sample by sample", async () => {
    const { samples, samplesPerSecond } = await decodeSound(flacOf(wave), "a.flac");
    expect(samplesPerSecond).toBe(16_000);
    expect(samples.length).toBe(3_000);
    for (const [at, value] of wave.entries()) expect(samples[at]).toBeCloseTo(value / 2 ** 15, 4);
  });

  it("of MP3 are decoded, silence too", async () => {
    // A frame of 128 kbit/s, 44.1 kHz and two channels, without a sound in it.
    const frame = Buffer.alloc(417);
    frame.set([0xff, 0xfb, 0x90, 0x00]);
    const { samples, samplesPerSecond } = await decodeSound(Buffer.concat(Array(20).fill(frame)), "a.mp3");
    expect(samplesPerSecond).toBe(44_100);
    expect(samples.length).toBeGreaterThan(15 * 1_152);
    expect(samples.every((value) => value === 0)).toBe(true);
  });

  it("of other kinds, or damaged, are refused by name", async () => {
    const damaged = flacOf(wave).subarray(0, 50);
    await expect(decodeSound(damaged, "cut.flac")).rejects.toThrow(
      "[data] expected flac that can be decoded at cut.flac, got ",
    );
    await expect(decodeSound(Buffer.from("OggS nothing"), "a.ogg")).rejects.toThrow(
      "ogg that can be decoded at a.ogg",
    );
    await expect(decodeSound(Buffer.from("FORM"), "a.aiff")).rejects.toThrow(
      "expected WAV, FLAC, Ogg Vorbis or MP3 at a.aiff",
    );
  });
});

describe("mixRecords", () => {
  it("takes each thousand samples by weights, and each source's records once in each of its epochs", async () => {
    const write = (name: string, count: number) => {
      const path = join(folder, name);
      writeFileSync(
        path,
        Array.from({ length: count }, (_, number) => `{"of":"${name}","number":${number}}\n`).join(""),
      );
      return path;
    };
    const small = await openRecords(write("small.jsonl", 300), how<JsonRecord>());
    const large = await openRecords(write("large.jsonl", 5_000), how<JsonRecord>());
    const mixed = mixRecords([
      { records: small, weight: 1 },
      { records: large, weight: 3 },
    ]);
    expect(mixed.length).toBe(5_300);
    const order = { seed: 4, isShuffled: true };
    const all = await Promise.all(
      Array.from({ length: 4_000 }, async (_, position) => mixed.at(mixed.indexAt(position, order))),
    );
    const ofSmall = all.flatMap(({ of, number }) => (of === "small.jsonl" ? [number as number] : []));
    expect(all.slice(0, 1_000).filter(({ of }) => of === "small.jsonl")).toHaveLength(250);
    expect(ofSmall).toHaveLength(1_000);
    // Cycles of 250 and epochs of 300: each of three epochs is complete, though not in its order at their edges.
    const counts = Array.from(
      { length: 300 },
      (_, number) => ofSmall.filter((each) => each === number).length,
    );
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(3);
    expect(Math.max(...counts)).toBeLessThanOrEqual(4);
    expect(new Set(all.flatMap(({ of, number }) => (of === "large.jsonl" ? [number] : []))).size).toBe(3_000);
    expect(mixed.indexAt(3_333, order)).toBe(mixed.indexAt(3_333, order));
    expect(mixed.fingerprint()).toMatchObject({ "share 0": 250, "share 1": 750 });
    expect(() => mixRecords([{ records: small, weight: 0 }])).toThrow(
      "[mixRecords] expected sources with positive weights",
    );
  });
});
