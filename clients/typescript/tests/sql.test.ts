// Tasks in the caller's own transaction, with node-postgres: a task and its files exist if and only if it commits.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client } from 'dalsegno-client';
import { enqueue, EnqueueError, type SqlTask } from 'dalsegno-client/sql';
import pg from 'pg';
import { service } from './service.js';

const { url, key, campaign, postgres } = service();
const client = new Client({ url, apiKey: key });
const nowhere = '019aa2f1-0000-7000-8000-000000000000';
const db = new pg.Client(postgres);
await db.connect();
after(() => db.end());

const content = Buffer.from('The word is TIDE-4711.').toString('base64');
const reader = { agent: 'planner', instance: 'files', prompt: 'Read.' };
const source = await client.addTask(campaign, { ...reader, attachments: [{ name: 'notes.md', content }] });
/** Answers with a word of its file. */
const withFile: SqlTask = {
  campaign,
  agent: 'copywriter',
  instance: 'files',
  session_mode: 'none',
  prompt: '[[sim: quote TIDE-]]',
  within_secs: 86_400,
  attachments: [{ task: source.id, file: 'notes.md', name: 'word.md' }],
};

async function exists(task: string): Promise<boolean> {
  const ids = 'select id from dalsegno.tasks union select task_id from dalsegno.task_attachments';
  return (await db.query(`select from (${ids}) as t where id = $1`, [task])).rowCount !== 0;
}

test('a task gets its file and its time', async () => {
  await db.query('begin');
  const { taskId } = await enqueue(db, withFile);
  await db.query('commit');
  const task = await client.wait(taskId);
  assert.equal(task.within_secs, 86_400);
  assert.match(task.result ?? '', /TIDE-4711/);
  const { items } = await client.listTaskFiles(taskId);
  assert.deepEqual(items.map(({ name, turn }) => [name, turn]), [['word.md', null]]);
});

test('a rollback leaves neither task nor file', async () => {
  await db.query('begin');
  const { taskId } = await enqueue(db, withFile);
  assert(await exists(taskId));
  await db.query('rollback');
  assert(!(await exists(taskId)));
});

test('a file and a time are checked as over HTTP', async () => {
  const wrong: [string, RegExp, Partial<SqlTask>][] = [
    ['DS404', /has no file `none.md`/, { attachments: [{ task: nowhere, file: 'none.md' }] }],
    ['DS400', /does not name a file/, { attachments: [{ name: 'notes.md', content }] as unknown as SqlTask['attachments'] & object }],
    ['DS400', /may not take 60 s/, { within_secs: 60 }],
  ];
  for (const [code, words, changed] of wrong) {
    await assert.rejects(enqueue(db, { ...withFile, ...changed }), (error) => {
      assert(error instanceof EnqueueError);
      assert.match(error.message, words);
      return error.code === code && error.hint !== '';
    });
  }
});
