import { execFile } from "node:child_process";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { scope, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { type SafetensorsDType, TorchFile, tensorSizeBytes } from "../../src/library/checkpoint/index.ts";
import { temporaryFolder } from "../service/temporary-folder.ts";
import { refusal } from "./refusal.ts";

// Files of test/fixtures/torch/make.py.
const fixtures = fileURLToPath(new URL("../fixtures/torch/", import.meta.url));

interface Expected {
  readonly tensors: Readonly<
    Record<string, { readonly shape: readonly number[]; readonly values: readonly number[] }>
  >;
}

const expectedIn = async (folder: string) =>
  JSON.parse(await readFile(join(folder, "expected.json"), "utf8")) as Expected;

/** A tensor's bytes as numbers. */
function numbersOf(bytes: Uint8Array, spelled: SafetensorsDType): number[] {
  const arrays: Readonly<
    Partial<Record<SafetensorsDType, (buffer: ArrayBuffer) => Iterable<number | bigint>>>
  > = {
    F32: (buffer) => new Float32Array(buffer),
    F64: (buffer) => new Float64Array(buffer),
    I64: (buffer) => new BigInt64Array(buffer),
    I32: (buffer) => new Int32Array(buffer),
    I16: (buffer) => new Int16Array(buffer),
    I8: (buffer) => new Int8Array(buffer),
  };
  const { buffer } = bytes.slice();
  const array = arrays[spelled];
  if (array !== undefined) return [...array(buffer)].map(Number);
  if (spelled === "U8" || spelled === "BOOL") return [...bytes];
  const dtype = spelled === "BF16" ? "bfloat16" : "float16";
  return scope(() => [
    ...(tensor(new Uint16Array(buffer), { dtype }).to("float64").toTypedArray() as Float64Array),
  ]);
}

async function checkFile(path: string, prefix: string, { tensors }: Expected): Promise<void> {
  await using file = await TorchFile.open(path);
  const own = [...file.tensors.keys()].filter((name) => name.startsWith(prefix));
  expect(own.map((name) => name.slice(prefix.length)).toSorted()).toEqual(Object.keys(tensors).toSorted());
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const entry = file.entry(prefix + name);
    expect(entry.shape, name).toEqual(shape);
    const bytes = await file.read(prefix + name);
    expect(numbersOf(bytes, entry.dtype), name).toEqual(values);
    // A part in the middle, of bytes.
    const size = tensorSizeBytes(entry.dtype, shape) as number;
    const part = new Uint8Array(Math.max(0, size - 2));
    if (size > 2)
      expect(await file.readRange(prefix + name, 1, part), name).toEqual(bytes.subarray(1, size - 1));
  }
}

/** A pickle of protocol 2 with these opcodes, in an archive of one file. */
async function archive(pickle: Uint8Array, method = 0): Promise<string> {
  const path = join(await temporaryFolder(), "made.pt");
  const name = Buffer.from("made/data.pkl");
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(name.length, 26);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(0x02014b50, 0);
  central.writeUInt16LE(method, 10);
  central.writeUInt32LE(pickle.length, 24);
  central.writeUInt16LE(name.length, 28);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length + name.length, 12);
  end.writeUInt32LE(local.length + name.length + pickle.length, 16);
  await writeFile(path, Buffer.concat([local, name, pickle, central, name, end]));
  return path;
}

const opcodes = (text: string) => Buffer.from(text, "latin1");
const opened = async (path: string) => refusal(async () => (await TorchFile.open(path)).close());

describe("a file of torch.save", () => {
  test.each([
    ["of a model alone", "state.pt", ""],
    ["of a training program, beside its settings", "program.pt", "model."],
    ["as written before PyTorch 1.6", "legacy.pt", "model."],
  ])("%s gives every tensor, whatever its dtype and strides, to the bit", async (_, name, prefix) => {
    await checkFile(join(fixtures, name), prefix, await expectedIn(fixtures));
  });

  test("lists the numbers and strings beside a model, and the names of its other parts", async () => {
    for (const name of ["program.pt", "legacy.pt"]) {
      await using file = await TorchFile.open(join(fixtures, name));
      expect(Object.fromEntries(file.values)).toEqual({ checkpoint_version: 3, iteration: 12 });
      expect(file.parts).toEqual(new Set(["model", "last_optimizer_state", "extra_state"]));
      expect(file.entry("last_optimizer_state.state.0.exp_avg").shape).toEqual([2]);
    }
  });

  test("is read right into tensors, parts of one that is turned too", async () => {
    await using file = await TorchFile.open(join(fixtures, "state.pt"));
    const { tensors } = await expectedIn(fixtures);
    const into = zeros([6, 4]);
    await file.readStretches("turned", Float64Array.of(16, 32, 16, 0, 0, 16), into);
    const rows = tensors.turned?.values ?? [];
    expect([...into.toTypedArray()].map(Number)).toEqual([
      ...rows.slice(0, 4),
      0,
      0,
      0,
      0,
      ...rows.slice(4, 8),
      ...Array.from({ length: 12 }, () => 0),
    ]);
    into.dispose();
    expect((await refusal(() => file.read("none"))).code).toBe("SAFETENSORS_TENSOR");
    expect((await refusal(() => file.read("scalar", new Uint8Array(3)))).message).toContain(
      "memory for the 4 bytes",
    );
    expect((await refusal(() => file.readRange("scalar", 2, new Uint8Array(4)))).code).toBe(
      "SAFETENSORS_TENSOR",
    );
  });

  test("that asks for anything else to be made is refused by its name, and nothing is run", async () => {
    const whole = await opened(join(fixtures, "module.pt"));
    expect([whole.code, whole.message]).toEqual([
      "TORCH_FILE",
      expect.stringContaining("got torch.nn.modules.linear.Linear"),
    ]);
    for (const name of [
      "os.system",
      "builtins.eval",
      "torch.storage._load_from_bytes",
      "argparse.Namespace.x",
      "numpy.load",
    ]) {
      const at = name.lastIndexOf(".");
      const path = await archive(
        opcodes(`\x80\x02c${name.slice(0, at)}\n${name.slice(at + 1)}\nU\x04true\x85R.`),
      );
      const { code, message } = await opened(path);
      expect([code, message]).toEqual(["TORCH_FILE", expect.stringContaining(`got ${name} (`)]);
    }
  });

  test.each([
    ["an opcode that it does not have", "\x80\x02I1\n.", "an opcode that torch.save writes at byte 2"],
    ["a newer protocol", "\x80\x04N.", "got protocol 4"],
    ["too little on its stack", "\x80\x02R.", "takes more than it has"],
    ["a memory that is empty", "\x80\x02h\x05.", "a reference to 5"],
    ["an end too soon", "\x80\x02X\x09\x00\x00\x00abc", "the file was cut"],
    ["items of what is no dictionary", "\x80\x02NK\x01K\x02s.", "items of another value"],
    ["no mark", "\x80\x02u.", "no mark"],
  ])("with %s is refused", async (_, text, reason) => {
    const { code, message } = await opened(await archive(opcodes(text)));
    expect([code, message]).toEqual(["TORCH_FILE", expect.stringContaining(reason)]);
  });

  test("whose tensor lies beyond its storage, or repeats one without end, is refused", async () => {
    const storage = "((U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQ";
    const made = (rest: string) =>
      archive(opcodes(`\x80\x02}U\x01wctorch._utils\n_rebuild_tensor_v2\n${storage}${rest}\x89}tRs.`));
    for (const rest of [
      "K\x00(K\x05t(K\x01t", // five of four
      "K\x02(K\x03t(K\x01t", // from the third on
      "K\x00(J\xff\xff\xff\x7ft(K\x00t", // the first, again and again
      "J\xff\xff\xff\xff(K\x01t(K\x01t", // before the first
      "K\x00(K\x02K\x02t(K\x01t", // a stride too few
    ]) {
      const { code, message } = await opened(await made(rest));
      expect([code, message]).toEqual(["TORCH_FILE", expect.stringContaining("a tensor w")]);
    }
    // Within its storage, which is not in the archive.
    expect((await opened(await made("K\x00(K\x04t(K\x01t"))).message).toContain("16 bytes in data/0");
  });

  test("whose parameters hold themselves or each other, however many, is refused by one sentence", async () => {
    const parameter = "ctorch._utils\n_rebuild_parameter\n";
    const itself = `${parameter}]q\x00Rq\x01h\x00h\x01ab}(X\x01\x00\x00\x00ah\x01u.`;
    const count = 200_000;
    const each = `}(X\x01\x00\x00\x00a${parameter.repeat(count)}N${"\x85R".repeat(count)}u.`;
    for (const pickle of [itself, each]) {
      const { code, message } = await opened(await archive(opcodes(`\x80\x02${pickle}`)));
      expect([code, message]).toEqual(["TORCH_FILE", expect.stringContaining("one of a parameter")]);
    }
  });

  test("whose dictionaries stand in each other by the thousand is refused", async () => {
    const items = (value: string) =>
      Array.from({ length: 100 }, (_, at) => `K${String.fromCharCode(at)}${value}`).join("");
    const nested = `}(${items("N")}uq\x00${`}(${items("h\x00")}uq\x00`.repeat(6)}`;
    const { code, message } = await opened(await archive(opcodes(`\x80\x02${nested}.`)));
    expect([code, message]).toEqual([
      "TORCH_FILE",
      expect.stringContaining("dictionaries within each other"),
    ]);
  });

  test("that holds itself ends", async () => {
    await using file = await TorchFile.open(await archive(opcodes("\x80\x02}q\x00U\x01ah\x00s.")));
    expect(file.tensors.size).toBe(0);
  });

  test("that is compressed, or cut anywhere, or of another kind, is refused", async () => {
    expect((await opened(await archive(opcodes("\x80\x02N."), 8))).message).toContain(
      "made/data.pkl, compressed",
    );
    const folder = await temporaryFolder();
    for (const name of ["state.pt", "legacy.pt"]) {
      const whole = await readFile(join(fixtures, name));
      for (let length = 0; length < whole.length; length += 97) {
        const path = join(folder, `cut-${length}-${name}`);
        await writeFile(path, whole.subarray(0, length));
        expect((await opened(path)).code, `${name} of ${length} bytes`).toBe("TORCH_FILE");
      }
    }
    await writeFile(join(folder, "text.pt"), "not a checkpoint");
    expect((await opened(join(folder, "text.pt"))).code).toBe("TORCH_FILE");
  });

  // Written now, by the torch that is there.
  const python = process.env.TROUPE_PYTHON;
  test.skipIf(python === undefined)("that this machine's PyTorch writes gives the same", async () => {
    const folder = await temporaryFolder();
    await promisify(execFile)(python as string, [join(fixtures, "make.py"), folder]);
    const expected = await expectedIn(folder);
    await copyFile(join(folder, "state.pt"), join(folder, "pytorch_model.bin"));
    await checkFile(join(folder, "pytorch_model.bin"), "", expected);
    await checkFile(join(folder, "program.pt"), "model.", expected);
    await checkFile(join(folder, "legacy.pt"), "model.", expected);
  });
});
