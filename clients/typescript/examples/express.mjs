// @ts-check
// A shop with Express: orders with tasks in one transaction, the answer while it is written, and the result by webhook.
//
//   npm install express pg
//   node express.mjs
//
// CAMPAIGN is the id of the campaign; DATABASE_URL or PGHOST ... name the database of the service; DALSEGNO_URL is the address of the
// service, DALSEGNO_API_KEY an API key if it requires one, and WEBHOOK_SECRET the secret of a webhook for /hooks.
import { Client, verifyWebhook, WebhookError } from 'dalsegno-client';
import { enqueue, EnqueueError } from 'dalsegno-client/sql';
import express from 'express';
import pg from 'pg';

const { CAMPAIGN = '', DALSEGNO_URL, DALSEGNO_API_KEY, DATABASE_URL, WEBHOOK_SECRET = '', PORT = '8000' } = process.env;
const dalsegno = new Client({ ...(DALSEGNO_URL && { url: DALSEGNO_URL }), ...(DALSEGNO_API_KEY && { apiKey: DALSEGNO_API_KEY }) });
const pool = new pg.Pool(DATABASE_URL ? { connectionString: DATABASE_URL } : {});
await pool.query(`create table if not exists express_orders
  (id bigint generated always as identity primary key, what text not null, task_id uuid, result text)`);

const app = express();

// Stores the order and its task: both, or neither.
app.post('/orders', express.json(), async (request, response) => {
  const { what } = request.body;
  const db = await pool.connect();
  try {
    await db.query('begin');
    const { rows: [order] } = await db.query('insert into express_orders (what) values ($1) returning id', [what]);
    const task = await enqueue(db, {
      campaign: CAMPAIGN,
      agent: 'copywriter',
      prompt: what,
      idempotency_key: `express-order-${order.id}`,
    });
    await db.query('update express_orders set task_id = $1 where id = $2', [task.taskId, order.id]);
    await db.query('commit');
    response.status(201).json({ id: order.id, task_id: task.taskId });
  } catch (error) {
    await db.query('rollback');
    if (!(error instanceof EnqueueError)) throw error;
    response.status(409).json({ detail: error.message });
  } finally {
    db.release();
  }
});

app.get('/orders/:id', async (request, response) => {
  const { rows: [order] } = await pool.query('select id, result from express_orders where id = $1', [request.params.id]);
  response.status(order ? 200 : 404).json(order ?? {});
});

// Sends the answer while it is written.
app.get('/orders/:id/answer', async (request, response) => {
  const { rows: [order] } = await pool.query('select task_id from express_orders where id = $1', [request.params.id]);
  if (!order) return void response.status(404).end();
  const left = new AbortController();
  response.on('close', () => left.abort()).type('text/plain');
  for await (const event of dalsegno.followTask(order.task_id, { signal: left.signal })) {
    response.write(event.text);
    if (event.task) response.end(event.task.error);
  }
});

app.post('/hooks', express.raw({ type: '*/*', limit: '1mb' }), async (request, response) => {
  let event;
  try {
    event = await verifyWebhook(request.body, request.headers, WEBHOOK_SECRET);
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    return void response.status(401).json({ detail: error.message });
  }
  if (event.type === 'task.done') {
    // The same result again, if a delivery arrives twice.
    await pool.query('update express_orders set result = $1 where task_id = $2', [event.data.result, event.data.task_id]);
  }
  response.status(204).end();
});

app.listen(Number(PORT), '127.0.0.1', () => console.log('listening'));
