import { errorTable } from "../src/errors/index.ts";

/** The text of docs/reference/errors.md: every code of the error table, in its order. */
export function errorsPage(): string {
  const rows = Object.entries(errorTable).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return `# Errors

Every error that Troupe throws on purpose is a \`TroupeError\` with one of these codes in \`code\`, its operands as plain data in
\`fields\`, and its first cause in \`cause\`. The message says where it happened, what was expected, what came and what to do.
Made from \`src/errors/troupe-error.ts\` by \`npm run docs:write\`.

| code | meaning |
| --- | --- |
${rows.join("\n")}
`;
}
