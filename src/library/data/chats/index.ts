/** Chats: reading published formats, and writing them as tokens by a template. */

export { type Chat, type ChatMessage, chatIn } from "./chat.ts";
export { ChatTemplate, type ChatTokens } from "./template.ts";
