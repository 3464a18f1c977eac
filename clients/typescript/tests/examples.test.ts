// The examples, run unchanged against a service.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'dalsegno-client';
import pg from 'pg';
import { service } from './service.js';

const { url, key, adminKey, campaign, postgres } = service();
const examples = join(import.meta.dirname, '../examples');
const nowhere = '019aa2f1-0000-7000-8000-000000000000';
const environment = {
  ...process.env,
  PGHOST: postgres.host,
  PGUSER: postgres.user,
  PGDATABASE: postgres.database,
  PGPASSWORD: postgres.password,
  DALSEGNO_URL: url,
  DALSEGNO_API_KEY: key,
  CAMPAIGN: campaign,
};

async function orders(table: string): Promise<{ task_id: string; what: string }[]> {
  const db = new pg.Client(postgres);
  await db.connect();
  const { rows } = await db.query(`select task_id, what from ${table} order by id`);
  await db.end();
  return rows as { task_id: string; what: string }[];
}

test('node-postgres adds a task with its own row', async () => {
  const prompt = '[[sim: say From node-postgres.]]';
  const run = (env: NodeJS.ProcessEnv) => promisify(execFile)(process.execPath, [join(examples, 'enqueue-pg.mjs'), prompt], { env });
  const { stdout } = await run(environment);
  const before = await orders('orders');
  assert.equal(stdout, `task ${before.at(-1)?.task_id} is done: From node-postgres.\n`);
  await assert.rejects(run({ ...environment, CAMPAIGN: nowhere }), /there is no campaign/);
  assert.deepEqual(await orders('orders'), before);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

test('Express orders, streams and receives', async () => {
  const port = await freePort();
  const shop = `http://127.0.0.1:${port}`;
  const admin = new Client({ url, apiKey: adminKey });
  const webhook = await admin.addWebhook({ url: `${shop}/hooks`, kinds: ['task.done'], campaign_id: campaign });
  const env = { ...environment, PORT: String(port), WEBHOOK_SECRET: webhook.secret };
  const child = spawn(process.execPath, [join(examples, 'express.mjs')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    assert.equal(String(line), 'listening\n');
    const post = (path: string, body: unknown) =>
      fetch(shop + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    const order = (await (await post('/orders', { what: '[[sim: words 200]] Write about the harbour.' })).json()) as { id: string };
    const answer = await (await fetch(`${shop}/orders/${order.id}/answer`)).text();
    assert.match(answer, /About the harbour/);
    let result: string | null = null;
    while (!result) {
      ({ result } = (await (await fetch(`${shop}/orders/${order.id}`)).json()) as { result: string | null });
      if (!result) await sleep(50);
    }
    assert.equal(result, answer);
    assert.equal((await post('/hooks', {})).status, 401);
    assert.equal((await fetch(`${shop}/orders/999999/answer`)).status, 404);
  } finally {
    child.kill();
    await admin.removeWebhook(webhook.id);
  }
});
