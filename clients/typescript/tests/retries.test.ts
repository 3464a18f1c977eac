// Retries: what is repeated, when, and that the service runs it once. Streams: that they resume without gap or repetition.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, type ClientOptions, type Event, NotFound, RateLimited, ServiceError, TransportError } from 'dalsegno-client';
import { type Fault, faulty, type Proxy } from './faults.js';
import { service } from './service.js';

const { url, key, adminKey, campaign } = service();
const client = new Client({ url, apiKey: key });

const busy = { status: 503, code: 'database_busy', detail: 'the conversation is locked', retryable: true };
const task = { agent: 'copywriter', prompt: 'Write.' };

interface Setting {
  client: Client;
  proxy: Proxy;
  waits: number[];
}

/** Runs a test behind a proxy, with a client that lists its waits instead of waiting. */
async function behind(path: string, faults: Fault[], run: (setting: Setting) => Promise<void>, options: ClientOptions = {}): Promise<void> {
  const proxy = await faulty(url, path, faults);
  const waits: number[] = [];
  const retry = { sleep: async (ms: number) => void waits.push(ms) };
  try {
    await run({ client: new Client({ url: proxy.url, apiKey: key, retry, ...options }), proxy, waits });
  } finally {
    await proxy.close();
  }
}

test('a lost answer is fetched without a second task', async () => {
  await behind('/tasks', [{ losesAnswer: true }, {}], async ({ client, proxy }) => {
    const campaign_id = (await client.createCampaign({ name: 'Another series' })).id;
    const added = await client.addTask(campaign_id, task);
    const keys = new Set(proxy.seen.map(({ headers }) => headers['idempotency-key']));
    assert.deepEqual([proxy.seen.length, keys.size, added.created], [3, 1, false]);
    const listed = await client.listTasks({ campaign_id });
    assert.deepEqual(listed.items.map(({ id }) => id), [added.id]);
  });
});

test('Retry-After is honoured', async () => {
  const faults = [{ status: 503, headers: { 'Retry-After': '7' }, problem: busy }, { status: 503, problem: busy }];
  await behind('/tasks', faults, async ({ client, proxy, waits }) => {
    assert((await client.addTask(campaign, task)).created);
    assert.equal(proxy.seen.length, 3);
    assert(waits[0] === 7000 && waits[1]! >= 500 && waits[1]! <= 1000, String(waits));
  });
});

test('a refusal that is not retryable is thrown at once', async () => {
  const fault = { status: 500, problem: { ...busy, code: 'internal', retryable: false } };
  await behind('/tasks', [fault], async ({ client, proxy, waits }) => {
    await assert.rejects(client.addTask(campaign, task), ServiceError);
    assert.deepEqual([proxy.seen.length, waits], [1, []]);
  });
});

test('retries end', async () => {
  await behind('/tasks', Array.from({ length: 5 }, () => ({ status: 502 })), async ({ client, proxy, waits }) => {
    await assert.rejects(client.addTask(campaign, task), ServiceError);
    assert.deepEqual([proxy.seen.length, waits.length], [5, 4]);
  });
});

test('a long Retry-After is thrown', async () => {
  const fault = { status: 429, headers: { 'Retry-After': '3600' }, problem: { ...busy, status: 429, code: 'rate_limited' } };
  await behind('/tasks', [fault], async ({ client, waits }) => {
    await assert.rejects(client.addTask(campaign, task), (error) => error instanceof RateLimited && error.retryAfterMs === 3_600_000);
    assert.deepEqual(waits, []);
  });
});

test('a request without a key is not repeated after it was sent', async () => {
  await behind(
    '/webhooks',
    [{ losesAnswer: true }],
    async ({ client, proxy, waits }) => {
      await assert.rejects(client.addWebhook({ url: 'http://127.0.0.1:9/hooks' }), (error) => error instanceof TransportError && error.sent);
      assert.deepEqual([proxy.seen.length, waits], [1, []]);
      const [added] = (await client.listWebhooks()).items;
      await client.removeWebhook(added!.id);
    },
    { apiKey: adminKey },
  );
});

test('a request without a key is repeated if it was not sent', async () => {
  const waits: number[] = [];
  const client = new Client({ url: await closedAddress(), retry: { maxRetries: 2, sleep: async (ms) => void waits.push(ms) } });
  await assert.rejects(client.addWebhook({ url: 'http://127.0.0.1:9/hooks' }), (error) => error instanceof TransportError && !error.sent);
  assert.equal(waits.length, 2);
});

/** Returns an address on which nothing listens. */
async function closedAddress(): Promise<string> {
  const proxy = await faulty(url, '/', []);
  await proxy.close();
  return proxy.url;
}

function check(events: Event[]): void {
  assert.equal(events[0]?.kind, 'task.queued');
  assert.deepEqual([events.at(-1)?.kind, events.at(-1)?.task?.state], ['end', 'done']);
  const numbers = events.slice(0, -1).map(({ id }) => Number(id));
  assert.deepEqual(numbers, [...new Set(numbers)].sort((one, other) => one - other));
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test('a stream shows the answer and ends with the task', async () => {
  const prompt = '[[sim: words 400]] Write about the harbour.';
  const events = await all(client.stream({ campaign, agent: 'copywriter', instance: 'streamed', prompt }));
  check(events);
  const written = events.map(({ text }) => text).join('');
  assert.equal(written, events.at(-1)?.task?.result);
});

test('a broken stream resumes', async () => {
  await behind('/events', [{ cutsAfter: 1 }, { cutsAfter: 2 }, { status: 502 }, {}], async ({ client, proxy }) => {
    const added = await client.run({ campaign, agent: 'copywriter', instance: 'broken', prompt: 'Write about the harbour.' });
    check(await all(client.followTask(added.id)));
    const positions = proxy.seen.map(({ headers }) => headers['last-event-id']);
    assert(positions.length === 5 && positions[0] === undefined && positions.slice(1).every(Boolean), String(positions));
  });
});

test('a stream continues after an event', async () => {
  const added = await client.run({ campaign, agent: 'copywriter', prompt: 'Write.' });
  const events = await all(client.followTask(added.id));
  const rest = await all(client.followTask(added.id, { lastEventId: events[1]!.id }));
  assert.deepEqual(rest.map(({ id }) => id), events.slice(2).map(({ id }) => id));
  assert.deepEqual(await all(client.followTask(added.id, { lastEventId: events.at(-1)!.id })), []);
});

test('the feed can be left', async () => {
  const added = await client.run({ campaign, agent: 'copywriter', prompt: 'Write.' });
  for await (const event of client.followFeed({ after: 0, campaign_id: campaign, kinds: 'turn.done' })) {
    if (event.feed?.task_id === added.id) break;
  }
});

test('a refused stream is thrown', async () => {
  await assert.rejects(all(client.followTask('019aa2f1-0000-7000-8000-000000000000')), NotFound);
});
