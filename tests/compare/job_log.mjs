// The log of a worker: one line per start and end of a job. Each line is written at once, so it survives a kill -9.

import { openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const now = () => (performance.timeOrigin + performance.now()) / 1000;

export class JobLog {
  constructor(path) {
    this.file = openSync(path, "a");
  }

  write(event, n) {
    writeSync(this.file, `${event} ${n} ${now()}\n`);
  }

  async run({ n, ms }) {
    this.write("start", n);
    if (ms > 0) await setTimeout(ms);
    this.write("end", n);
  }
}

// Adds jobs 0 to n - 1 in batches with `addMany`, and prints the seconds that it took.
export async function enqueue(addMany, n, keys, ms, batch = 500) {
  const began = performance.now();
  for (let first = 0; first < n; first += batch) {
    const numbers = Array.from({ length: Math.min(batch, n - first) }, (_, i) => first + i);
    await addMany(numbers.map((n) => ({ n, ms, key: keys > 0 ? `key-${n % keys}` : undefined })));
  }
  console.log((performance.now() - began) / 1000);
}

// Adds one job at a time with `addOne`, and logs the moment before each.
export async function pace(addOne, log, first, n, gapMs) {
  for (let i = first; i < first + n; i++) {
    await setTimeout(gapMs * (0.5 + Math.random()));
    log.write("add", i);
    await addOne({ n: i, ms: 0 });
  }
}
