// Graphile Worker. Arguments: setup | enqueue N KEYS MS | pace LOG FIRST N GAP_MS | work LOG SLOTS VARIANT. The database is in DATABASE_URL.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { JobLog, enqueue, pace } from "./job_log.mjs";

const [mode, ...rest] = process.argv.slice(2);
const connectionString = process.env.DATABASE_URL;
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

async function work(path, slots, variant) {
  const log = new JobLog(path);
  const concurrentJobs = Number(slots);
  // The starting point of the chapter "Batching" in its document on performance.
  const batching = { localQueue: { size: concurrentJobs + 1 }, completeJobBatchDelay: 250, failJobBatchDelay: 250 };
  const worker = { connectionString, concurrentJobs, ...(variant === "batching" ? batching : {}) };
  const runner = await run({ preset: { worker }, logger, taskList: { noop: (job) => log.run(job) } });
  await runner.promise;
}

if (mode === "work") {
  await work(...rest);
} else {
  const utils = await makeWorkerUtils({ connectionString, logger });
  const spec = ({ key, ...payload }) => ({ identifier: "noop", payload, ...(key ? { queueName: key } : {}) });
  if (mode === "setup") {
    await utils.migrate();
  } else if (mode === "enqueue") {
    await enqueue((jobs) => utils.addJobs(jobs.map(spec)), ...rest.map(Number));
  } else {
    const [path, ...numbers] = rest;
    await pace((job) => utils.addJob("noop", job), new JobLog(path), ...numbers.map(Number));
  }
  await utils.release();
}
