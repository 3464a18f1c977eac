// pg-boss. Arguments: setup | enqueue N KEYS MS | pace LOG FIRST N GAP_MS | work LOG SLOTS VARIANT. The database is in DATABASE_URL.

import { PgBoss } from "pg-boss";
import { JobLog, enqueue, pace } from "./job_log.mjs";

const [mode, ...rest] = process.argv.slice(2);
const isWorker = mode === "work";
const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, useListenNotify: isWorker && rest[2] !== "default" });
boss.on("error", console.error);
await boss.start();

const spec = ({ key, ...data }) => ({ data, ...(key ? { singletonKey: key } : {}) });

if (mode === "setup") {
  await boss.createQueue("jobs", { notify: true });
  await boss.createQueue("keys", { notify: true, policy: "key_strict_fifo" });
} else if (mode === "enqueue") {
  const [n, keys, ms] = rest.map(Number);
  // Jobs of one insert have the same time of creation, by which those of a key are ordered: so each insert has one job of each key.
  await enqueue((jobs) => boss.insert(keys > 0 ? "keys" : "jobs", jobs.map(spec)), n, keys, ms, keys || 500);
} else if (mode === "pace") {
  const [path, ...numbers] = rest;
  await pace((job) => boss.send("jobs", job), new JobLog(path), ...numbers.map(Number));
} else {
  const [path, slots, variant] = rest;
  const log = new JobLog(path);
  const tuned = variant === "default" ? {} : { batchSize: 10, burstWhenBatchFull: true };
  const options = { localConcurrency: Number(slots), ...tuned };
  const handler = async (jobs) => {
    for (const job of jobs) await log.run(job.data);
  };
  await boss.work("jobs", options, handler);
  await boss.work("keys", options, handler);
}
if (isWorker) process.on("SIGTERM", () => boss.stop({ graceful: false }).then(() => process.exit()));
else await boss.stop({ graceful: false });
