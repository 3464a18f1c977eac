import type { BulkTask, TaskLink } from './types.js';

/** The service accepts ten times as many; smaller requests lock fewer conversations at once. */
const batchSize = 1_000;

/**
 * Splits tasks into requests.
 *
 * Each task gets the key that it would get in one large request: the prefix and its number. A dependency on a position is
 * written as one on that key, because the earlier task may be in an earlier request.
 */
export async function* batches(
  tasks: Iterable<BulkTask> | AsyncIterable<BulkTask>,
  prefix: string,
  size = batchSize,
): AsyncGenerator<BulkTask[], void, undefined> {
  let batch: BulkTask[] = [];
  const keys: string[] = [];
  for await (const task of tasks) {
    const key = task.idempotency_key ?? `${prefix}/${keys.length + 1}`;
    const links = task.depends_on && { depends_on: task.depends_on.map((link) => byKey(link, keys)) };
    batch.push({ ...task, idempotency_key: key, ...links });
    keys.push(key);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

function byKey(link: TaskLink, keys: string[]): TaskLink {
  if (typeof link !== 'object' || !('item' in link)) return link;
  const key = keys[link.item];
  if (key === undefined) {
    throw new RangeError(`task ${keys.length} depends on item ${link.item}, which does not come before it: count from 0`);
  }
  return { key };
}
