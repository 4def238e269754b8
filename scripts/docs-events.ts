// npm run docs:events: writes docs/reference/events.md from the declarations in src/job/events/kinds/.
import { writeFileSync } from "node:fs";
import { readArguments } from "./arguments.mjs";
import { eventsPage } from "./events-page.ts";

readArguments("usage: npm run docs:events\n\nWrites docs/reference/events.md", {});
writeFileSync(new URL("../docs/reference/events.md", import.meta.url), eventsPage());
