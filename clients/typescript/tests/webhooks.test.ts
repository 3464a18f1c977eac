// Signatures of messages that the service has sent, and tasks in transactions of node-postgres.
import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Client, verifyWebhook, WebhookError } from 'dalsegno-client';
import { enqueue, EnqueueError } from 'dalsegno-client/sql';
import pg from 'pg';
import { service } from './service.js';

const { url, key, adminKey, campaign, postgres } = service();
const client = new Client({ url, apiKey: key });

const nowhere = '019aa2f1-0000-7000-8000-000000000000';
const otherSecret = `whsec_${Buffer.from('another key of thirty-two bytes.').toString('base64')}`;

interface Message {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

test('a message of the service is genuine', async () => {
  const messages: Message[] = [];
  let arrived: () => void = () => undefined;
  const server = createServer(async (request, response) => {
    const pieces = await request.toArray();
    messages.push({ headers: request.headers, body: Buffer.concat(pieces) });
    response.writeHead(204).end();
    arrived();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const next = async (): Promise<Message> => {
    while (messages.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
    return messages.shift()!;
  };
  try {
    const admin = new Client({ url: url, apiKey: adminKey });
    const hooks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
    const webhook = await admin.addWebhook({ url: hooks, kinds: ['task.done'] });
    const task = await client.run({ campaign, agent: 'copywriter', prompt: '[[sim: say Told.]]' });
    const { headers, body } = await next();
    const event = await verifyWebhook(body, headers, webhook.secret);
    assert(event.type === 'task.done');
    assert.deepEqual([event.data.task_id, event.data.result, event.id], [task.id, 'Told.', headers['webhook-id']]);
    assert.equal((await verifyWebhook(String(body), new Headers(headers as Record<string, string>), webhook.secret)).type, 'task.done');

    await assert.rejects(verifyWebhook(`${body} `, headers, webhook.secret), WebhookError);
    await assert.rejects(verifyWebhook(body, headers, otherSecret), /does not match/);
    await assert.rejects(verifyWebhook(body, headers, webhook.secret, { now: Date.now() + 301_000 }), /300 s off/);
    await assert.rejects(verifyWebhook(body, {}, webhook.secret), /missing/);
    await assert.rejects(verifyWebhook(body, headers, 'secret!'), TypeError);

    // While a secret is rotated, either of both is sufficient.
    const rotated = await admin.rotateWebhook(webhook.id, {});
    await admin.testWebhook(webhook.id);
    const second = await next();
    for (const secret of [webhook.secret, rotated.secret, [otherSecret, rotated.secret]]) {
      assert.equal((await verifyWebhook(second.body, second.headers, secret)).type, 'webhook.test');
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test('a task exists if and only if the transaction commits', async () => {
  const db = new pg.Client(postgres);
  await db.connect();
  try {
    await db.query('begin');
    const added = await enqueue(db, {
      campaign,
      agent: 'copywriter',
      prompt: 'Write part one.',
      instance: 'sql',
      session_mode: 'fresh',
      budget_micros: 5_000_000_000,
      budget_tokens: 100_000,
      idempotency_key: 'order-17',
      priority: 7,
      run_at: new Date('2999-01-01T00:00:00Z'),
      tags: ['urgent'],
      metadata: { order: '17' },
      flow_templates: [],
      result_schema: { type: 'object' },
    });
    const dependent = await enqueue(db, { campaign, agent: 'planner', prompt: 'Join.', depends_on: [added.taskId] });
    await db.query('commit');
      const task = await client.showTask(added.taskId);
    assert.deepEqual([task.instance, task.session_mode, task.priority, task.tags], ['sql', 'fresh', 7, ['urgent']]);
    assert.deepEqual([task.metadata, task.result_schema, task.budget_micros], [{ order: '17' }, { type: 'object' }, 5_000_000_000]);
    assert.deepEqual((await client.showTask(dependent.taskId)).waiting?.depends_on.map(({ task_id }) => task_id), [added.taskId]);

    await db.query('begin');
    const undone = await enqueue(db, { campaign, agent: 'copywriter', prompt: 'Never.' });
    await db.query('rollback');
    assert.equal((await db.query('select from dalsegno.tasks where id = $1', [undone.taskId])).rowCount, 0);

    await assert.rejects(enqueue(db, { campaign: nowhere, agent: 'copywriter', prompt: 'Write.' }), (error) => {
      assert(error instanceof EnqueueError);
      return error.code === 'DS404' && error.hint.includes('campaign ls');
    });
    await assert.rejects(enqueue(db, { campaign: 'no id', agent: 'copywriter', prompt: 'Write.' }), (error) => (error as { code: string }).code === '22P02');
  } finally {
    await db.end();
  }
});
