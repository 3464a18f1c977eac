// @ts-check
// Stores an order and adds a task for it in one transaction, with node-postgres; then waits for the result over HTTP.
//
//   npm install pg
//   node enqueue-pg.mjs "Write part one."
//
// CAMPAIGN is the id of the campaign; DATABASE_URL or PGHOST ... name the database of the service; DALSEGNO_URL is the address of the
// service, and DALSEGNO_API_KEY an API key if it requires one.
import { Client } from 'dalsegno-client';
import { enqueue } from 'dalsegno-client/sql';
import pg from 'pg';

const { CAMPAIGN = '', DALSEGNO_URL, DALSEGNO_API_KEY, DATABASE_URL } = process.env;
const prompt = process.argv[2] ?? '';
const db = new pg.Client(DATABASE_URL ? { connectionString: DATABASE_URL } : {});
await db.connect();
let taskId;
try {
  await db.query('create table if not exists orders (id bigint generated always as identity primary key, what text not null, task_id uuid)');
  await db.query('begin');
  const { rows: [order] } = await db.query('insert into orders (what) values ($1) returning id', [prompt]);
  ({ taskId } = await enqueue(db, { campaign: CAMPAIGN, agent: 'copywriter', prompt, idempotency_key: `pg-order-${order.id}` }));
  await db.query('update orders set task_id = $1 where id = $2', [taskId, order.id]);
  await db.query('commit');
} finally {
  // Rolls back what is not committed.
  await db.end();
}
const dalsegno = new Client({ ...(DALSEGNO_URL && { url: DALSEGNO_URL }), ...(DALSEGNO_API_KEY && { apiKey: DALSEGNO_API_KEY }) });
const task = await dalsegno.wait(taskId);
console.log(`task ${task.id} is ${task.state}: ${task.result ?? task.error}`);
