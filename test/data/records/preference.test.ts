import { describe, expect, it } from "vitest";
import { preferenceOf } from "../../../src/library/data/index.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

describe("preferenceOf", () => {
  const plain = { prompt: [user("2 + 2?")], chosen: "4", rejected: "5" };

  it.each([
    ["texts", { prompt: "2 + 2?", chosen: "4", rejected: "5" }],
    ["a question", { question: "2 + 2?", chosen: "4", rejected: "5", system: "" }],
    [
      "chats with their prompt",
      { chosen: [user("2 + 2?"), assistant("4")], rejected: [user("2 + 2?"), assistant("5")] },
    ],
    [
      "a prompt and chats that repeat it",
      {
        prompt: "2 + 2?",
        chosen: [user("2 + 2?"), assistant("4")],
        rejected: [user("2 + 2?"), assistant("5")],
      },
    ],
    [
      "a prompt of messages, and answers",
      { prompt: [user("2 + 2?")], chosen: [assistant("4")], rejected: [assistant("5")] },
    ],
    [
      "dialogues",
      { chosen: "\n\nHuman: 2 + 2?\n\nAssistant: 4", rejected: "\n\nHuman: 2 + 2?\n\nAssistant: 5" },
    ],
  ])("reads %s", (_kind, record) => {
    expect(preferenceOf(record, "a.jsonl, record 1")).toEqual(plain);
  });

  it("keeps turns and the system's text before the answers", () => {
    const begin = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: Assistant: what?";
    expect(
      preferenceOf(
        { chosen: `${begin}\n\nAssistant: A`, rejected: `${begin}\n\nAssistant: B`, system: "Be kind." },
        "",
      ),
    ).toEqual({
      prompt: [
        { role: "system", content: "Be kind." },
        user("Hi"),
        assistant("Hello"),
        user("Assistant: what?"),
      ],
      chosen: "A",
      rejected: "B",
    });
  });

  it.each([
    [{ prompt: "a", chosen: "b" }, "expected chosen and rejected answers at x, got prompt, chosen"],
    [{ chosen: "a", rejected: "b" }, "expected a prompt at x, got none"],
    [
      { chosen: [user("a"), assistant("b")], rejected: [user("c"), assistant("d")] },
      "differ in the last answer alone at x",
    ],
    [
      { prompt: "a", chosen: [user("b")], rejected: "c" },
      "chosen to end with the assistant's answer at x, got user",
    ],
    [
      { prompt: 3, chosen: "b", rejected: "c" },
      "expected a text or messages with role and content at x, got 3",
    ],
  ])("refuses %j", (record, sentence) => {
    expect(() => preferenceOf(record, "x")).toThrow(sentence);
  });
});
