// The promises of docs/internals/delivery.md: files that import this set before where actors are placed (start-system.ts).
import "./delivery.test.ts";
import "./lanes.test.ts";
import "./ask.test.ts";
import "./watch.test.ts";
import "./find.test.ts";
import "./pool.test.ts";
import "./stream.test.ts";
import "./timers.test.ts";
import "./blocking.test.ts";
import "./dead-letters.test.ts";
import "./inspect.test.ts";
import "./tracing.test.ts";
import "./start.test.ts";
import "./stop.test.ts";
import "./ownership.test.ts";
import "./failure.test.ts";
