// Tasks: add, wait, bulk, lists, typed answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, type BulkTask, Client, Conflict, InvalidRequest, NotFound, TaskFailed, Unauthenticated, WaitTimeout } from 'dalsegno-client';
import { service } from './service.js';

const { url, key, campaign } = service();
const client = new Client({ url, apiKey: key });

const nowhere = '019aa2f1-0000-7000-8000-000000000000';
const later = { agent: 'copywriter', instance: 'later', prompt: 'Later.', run_at: '2999-01-01T00:00:00Z' };

function numbered(n: number): BulkTask[] {
  return Array.from({ length: n }, (_, number) => ({ agent: 'copywriter', instance: `part_${number}`, prompt: `[[sim: say Part ${number}.]]` }));
}

async function emptyCampaign(): Promise<string> {
  return (await client.createCampaign({ name: 'Another series' })).id;
}

test('run returns the result', async () => {
  const task = await client.run({ campaign, agent: 'copywriter', prompt: '[[sim: say The harbour wakes.]]', tags: ['urgent'] });
  assert.deepEqual([task.state, task.result, task.tags], ['done', 'The harbour wakes.', ['urgent']]);
  assert.equal(task.turns[0]?.state, 'done');
});

test('an output file is bytes', async () => {
  const prompt = '[[sim: file report.txt Die Möwe.]]';
  const task = await client.run({ campaign, agent: 'copywriter', instance: 'files', prompt });
  const content = await client.downloadTaskFile(task.id, 'report.txt');
  assert.deepEqual(content, new TextEncoder().encode('Die Möwe.'));
});

test('a failed task throws with the task', async () => {
  await assert.rejects(client.run({ campaign, agent: 'reviewer', instance: 'failing', prompt: '[[sim: error 400]]' }), (error) => {
    assert(error instanceof TaskFailed);
    assert.deepEqual([error.name, error.task.state], ['TaskFailed', 'failed']);
    return Boolean(error.task.error);
  });
});

test('a wait ends and the task can be cancelled', async () => {
  const added = await client.addTask(campaign, later);
  await assert.rejects(client.wait(added, { timeoutMs: 200 }), WaitTimeout);
  await client.cancelTask(added.id, { reason: 'not needed' });
  const cancelled = await client.wait(added.id);
  assert.deepEqual([cancelled.state, cancelled.cancelled_because], ['cancelled', 'not needed']);
});

test('a wait can be aborted', async () => {
  const added = await client.addTask(campaign, later);
  const abort = new AbortController();
  const reason = new Error('enough');
  const waiting = new Client({ url, apiKey: key, retry: { maxRetries: 0 } }).wait(added, { signal: abort.signal });
  abort.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
  await client.cancelTask(added.id);
});

test('the same key returns the same task', async () => {
  const options = { idempotencyKey: 'order-17' };
  const first = await client.addTask(campaign, { agent: 'copywriter', prompt: 'Once.' }, options);
  const again = await client.addTask(campaign, { agent: 'copywriter', prompt: 'Once.' }, options);
  assert.deepEqual([first.created, again.created, again.id], [true, false, first.id]);
  await assert.rejects(client.addTask(campaign, { agent: 'copywriter', prompt: 'Another.' }, options), (error) => {
    assert(error instanceof Conflict);
    return error.code === 'idempotency_conflict' && !error.retryable;
  });
});

test('errors are typed', async () => {
  await assert.rejects(client.showTask(nowhere), (error) => error instanceof NotFound && error.code === 'unknown_task' && Boolean(error.requestId));
  const session = 'later' as 'fresh';
  await assert.rejects(client.addTask(campaign, { agent: 'copywriter', prompt: 'Write.', session }), (error) => {
    assert(error instanceof InvalidRequest && error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.errors.map(({ pointer }) => pointer)], [422, 'bad_field', ['/session']]);
    return true;
  });
  await assert.rejects(new Client({ url: url, apiKey: 'dals_wrong' }).listTasks(), Unauthenticated);
});

test('bulk splits and can be repeated', async () => {
  const tasks: BulkTask[] = [...numbered(3), { agent: 'planner', instance: 'bulk', prompt: 'Join.', depends_on: [{ item: 0 }, { item: 2 }] }];
  const options = { idempotencyKey: 'import-1', batchSize: 2 };
  const first = await client.addTasks(campaign, tasks, options);
  const again = await client.addTasks(campaign, tasks, options);
  assert.deepEqual([first.created, again.created], [4, 0]);
  assert.deepEqual(first.items.map(({ id }) => id), again.items.map(({ id }) => id));
  const joined = await client.wait(first.items[3]!);
  assert.deepEqual(joined.waiting?.depends_on.map(({ task_id }) => task_id), [first.items[0]?.id, first.items[2]?.id]);
  await assert.rejects(client.addTasks(campaign, [{ agent: 'planner', prompt: 'Join.', depends_on: [{ item: 1 }] }]), /does not come before it/);
});

test('every reads all pages', async () => {
  const campaign_id = await emptyCampaign();
  const added = await client.addTasks(campaign_id, numbered(5));
  const listed: string[] = [];
  for await (const task of client.every((cursor) => client.listTasks({ campaign_id, limit: 2, cursor }))) listed.push(task.id);
  assert.deepEqual(listed, added.items.map(({ id }) => id).reverse());
});

test('null and absent differ', async () => {
  const id = await emptyCampaign();
  await client.changeBudget(id, { micros: 5_000_000, tokens: 9_000 });
  const changed = await client.changeBudget(id, { micros: null });
  assert.deepEqual([changed.limit.micros, changed.limit.tokens], [null, 9_000]);
});
