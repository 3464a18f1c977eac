// Stores an order, adds a task for an agent, and waits for the result.
//
//   npm install
//   node enqueue.mjs sql "Write part one."     order and task in one transaction
//   node enqueue.mjs http "Write part one."    order first, then the task over HTTP, with the order's id as key
//
// CAMPAIGN is the id of the campaign. DATABASE_URL or libpq's PGHOST ... name the database (for the SQL way, the service's own);
// DALSEGNO_URL is the address of the service, and DALSEGNO_API_KEY an API key, if the service requires one.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const campaign = process.env.CAMPAIGN;
const agent = 'copywriter';

async function bySql(db, prompt) {
  let taskId;
  await db.query('begin');
  try {
    const { rows: [order] } = await db.query('insert into orders (what) values ($1) returning id', [prompt]);
    const { rows: [task] } = await db.query(
      'select task_id from dalsegno.add_task($1, $2, $3, idempotency_key => $4)',
      [campaign, agent, prompt, `node-order-${order.id}`],
    );
    taskId = task.task_id;
    await db.query('update orders set task_id = $1 where id = $2', [taskId, order.id]);
    await db.query('commit');
  } catch (error) {
    await db.query('rollback');
    throw error;
  }
  for (;;) {
    const { rows: [task] } = await db.query('select id, state, result, error, ended_at from dalsegno.tasks where id = $1', [taskId]);
    if (task.ended_at) return task;
    await sleep(500);
  }
}

async function byHttp(db, prompt) {
  // Store the order first. After any failure, its id is the idempotency key with which the request can be repeated.
  const { rows: [order] } = await db.query('insert into orders (what) values ($1) returning id', [prompt]);
  let task = await request(`/v1/campaigns/${campaign}/tasks`, {
    method: 'POST',
    headers: { 'Idempotency-Key': `node-http-order-${order.id}` },
    body: JSON.stringify({ agent, prompt }),
  });
  await db.query('update orders set task_id = $1 where id = $2', [task.id, order.id]);
  while (!task.ended_at) task = await request(`/v1/tasks/${task.id}?wait=25s`);
  return task;
}

async function request(path, { headers, ...options } = {}) {
  const key = process.env.DALSEGNO_API_KEY;
  const answer = await fetch((process.env.DALSEGNO_URL ?? 'http://127.0.0.1:7770') + path, {
    headers: { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }), ...headers },
    signal: AbortSignal.timeout(60_000),
    ...options,
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${body.code}: ${body.detail}`);
  return body;
}

const [way, prompt] = process.argv.slice(2);
const db = new pg.Client({ connectionString: process.env.DATABASE_URL });
await db.connect();
try {
  await db.query(
    'create table if not exists orders (id bigint generated always as identity primary key, what text not null, task_id uuid)',
  );
  const task = await { sql: bySql, http: byHttp }[way](db, prompt);
  console.log(`task ${task.id} is ${task.state}: ${task.result ?? task.error}`);
} finally {
  await db.end();
}
