// npm run docs:events: writes docs/reference/events.md from the declarations in src/events/kinds/.
import { writeFileSync } from "node:fs";
import { eventsPage } from "./events-page.ts";

writeFileSync(new URL("../docs/reference/events.md", import.meta.url), eventsPage());
