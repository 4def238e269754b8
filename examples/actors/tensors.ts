// Tensors in messages: the bytes stay where they are.
import { arange, Runtime } from "troupe";
import { sentTo } from "troupe/actors";
import { attach, moveRef, shareRef } from "troupe/tensor";
import type { Adder } from "./adder.ts";

await using runtime = await Runtime.spawn();
const module = new URL("./adder.ts", import.meta.url);
const adder = await runtime.actors.spawn<Adder>({ name: "adder", module });
// #region send
const numbers = arange(5);
// Lent: this thread may read it meanwhile, and write once the other has disposed of its own.
const lent = { tensor: shareRef(numbers, sentTo(adder)) };
console.log(await adder.ask("sum", lent, { deadlineMs: 10_000 }));
// Given away: `numbers` is disposed of here.
const given = { tensor: moveRef(numbers, sentTo(adder)) };
using doubled = attach((await adder.ask("double", given, { deadlineMs: 10_000 })).tensor);
console.log(doubled.toTypedArray());
// #endregion
