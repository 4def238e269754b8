import { describe, expect, it } from "vitest";
import { chatIn } from "../../src/library/data/index.ts";

describe("a record of a chat", () => {
  const messages = [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
  ];

  it("is its messages where a prompt without completion repeats their beginning, as in UltraChat and No Robots", () => {
    for (const record of [{ messages }, { conversations: messages }])
      expect(chatIn({ prompt: "a", prompt_id: "1", ...record }, "here")).toEqual({
        messages,
        learned: [true],
      });
    const [, answer] = chatIn({ prompt: "a", completion: "c", messages }, "here").messages;
    expect(answer).toEqual({ role: "assistant", content: "c" });
    expect(() => chatIn({ prompt: "a" }, "here")).toThrow("completion of here");
  });
});
