import type { Chance } from "../chance.ts";

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const latin = (text: string): Buffer => Buffer.from(text, "latin1");
const text = (value: string): Buffer =>
  Buffer.concat([latin("X"), u32(Buffer.byteLength(value)), Buffer.from(value)]);

/** A tensor of two numbers as torch.save describes it. */
function tensor(key: string): Buffer {
  return Buffer.concat([
    latin("ctorch._utils\n_rebuild_tensor_v2\n(("),
    text("storage"),
    latin("ctorch\nFloatStorage\n"),
    text(key),
    text("cpu"),
    latin("K\x02tQK\x00K\x02\x85K\x01\x85\x89}tR"),
  ]);
}

const names = [
  "torch\nFloatStorage",
  "torch._utils\n_rebuild_parameter",
  "os\nsystem",
  "builtins\neval",
  "collections\nOrderedDict",
  "torch\nconstructor",
  "\n__proto__",
];

/** A pickle of protocol 2: a model's, or one that holds itself, grows, takes what is not there, or names what must not be run. */
export function hostilePickle(chance: Chance): Buffer {
  const makers: readonly (() => Buffer)[] = [
    () => Buffer.concat([latin("}("), text("a.weight"), tensor("0"), text("b"), tensor("0"), latin("u")]),
    () => selfParameter(),
    () => nestedParameters(chance.pick([2, 1_000, 200_000])),
    () => sharedDictionaries(chance.pick([3, 8, 14]), chance.pick([2, 10, 40])),
    () => latin("]".repeat(chance.pick([10, 100_000, 900_000]))),
    () => latin("(".repeat(chance.pick([10, 100_000, 900_000]))),
    () => latin("}q\x00".repeat(chance.pick([10, 100_000]))),
    () => Buffer.concat([latin("X"), u32(chance.pick([5, 0x7fffffff, 0xffffffff])), latin("abc")]),
    () => latin(`\x8a\xff${"\xff".repeat(255)}`),
    () => randomOpcodes(chance),
  ];
  return Buffer.concat([latin("\x80\x02"), chance.pick(makers)(), latin(".")]);
}

/** `_rebuild_parameter` of a list that holds what it makes. */
function selfParameter(): Buffer {
  // list, kept as 0; the call of it, kept as 1; the call put into the list; a dictionary of it.
  return Buffer.concat([
    latin("ctorch._utils\n_rebuild_parameter\n]q\x00Rq\x01"),
    latin("h\x00h\x01ab}("),
    text("a"),
    latin("h\x01u"),
  ]);
}

function nestedParameters(count: number): Buffer {
  const begin = latin("ctorch._utils\n_rebuild_parameter\n".repeat(count));
  return Buffer.concat([
    latin("}("),
    text("a"),
    begin,
    tensor("0"),
    latin("\x85R".repeat(count)),
    latin("u"),
  ]);
}

/** Dictionaries of which each stands in the next under many names. */
function sharedDictionaries(depth: number, width: number): Buffer {
  let made = Buffer.concat([latin("}("), text("w"), tensor("0"), latin("uq\x00")]);
  for (let level = 1; level < depth; level++) {
    const items = Array.from({ length: width }, (_, key) =>
      Buffer.concat([text(`k${key}`), latin(`h${String.fromCharCode(level - 1)}`)]),
    );
    made = Buffer.concat([made, latin("}("), ...items, latin(`uq${String.fromCharCode(level)}`)]);
  }
  return made;
}

function randomOpcodes(chance: Chance): Buffer {
  const opcodes: readonly (() => Buffer)[] = [
    ...[
      "N",
      "\x88",
      "\x89",
      "}",
      "]",
      ")",
      "(",
      "t",
      "\x85",
      "\x86",
      "\x87",
      "a",
      "e",
      "s",
      "u",
      "R",
      "\x81",
      "b",
      "Q",
    ].map((opcode) => () => latin(opcode)),
    () => latin(`K${String.fromCharCode(chance.below(256))}`),
    () => latin(`q${String.fromCharCode(chance.below(4))}`),
    () => latin(`h${String.fromCharCode(chance.below(4))}`),
    () => latin(`c${chance.pick(names)}\n`),
    () => text(chance.pick(["a", "storage", "constructor"])),
    () => tensor("0"),
  ];
  return Buffer.concat(Array.from({ length: 5 + chance.below(60) }, () => chance.pick(opcodes)()));
}

/** An archive as torch.save writes it, its files not compressed. */
export function archiveOf(files: Readonly<Record<string, Buffer>>): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let at = 0;
  for (const [name, content] of Object.entries(files)) {
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(0x02014b50, 0);
    central.writeUInt32LE(content.length, 20);
    central.writeUInt32LE(content.length, 24);
    central.writeUInt16LE(name.length, 28);
    central.writeUInt32LE(at, 42);
    locals.push(local, latin(name), content);
    centrals.push(central, latin(name));
    at += local.length + name.length + content.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(centrals.length / 2, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, directory, end]);
}
