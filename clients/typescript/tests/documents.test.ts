// The code of the documents, run as it is written there.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from 'dalsegno-client';
import pg from 'pg';
import { service } from './service.js';

const { url, key, postgres } = service();
const client = new Client({ url, apiKey: key });
// The keys of the pages are used by other tests, too.
const campaign = (await client.createCampaign({ name: 'Documents' })).id;
const root = process.env['DALSEGNO_ROOT'];
if (!root) throw new Error('set DALSEGNO_ROOT to the folder of the repository');
const secret = `whsec_${Buffer.from('a key of exactly thirty-two bytes').toString('base64')}`;

function blocks(page: string): string[] {
  return [...readFileSync(join(root!, page), 'utf8').matchAll(/```ts\n([^]*?)```/g)].map(([, code]) => code!);
}

/** Makes a module of a block: its imports, and a function with the rest. */
function moduleOf(block: string): string {
  const code = block
    .replaceAll('http://127.0.0.1:7770', url)
    .replaceAll('dals_...', key)
    .replaceAll('019aa2f1-...', campaign)
    .replaceAll('whsec_...', secret);
  const imports = code.split('\n').filter((line) => line.startsWith('import '));
  const rest = code.split('\n').filter((line) => !line.startsWith('import '));
  const named = ['Client', 'verifyWebhook'].filter((name) => !imports.some((line) => line.includes(name)));
  const own = named.length > 0 ? `import { ${named.join(', ')} } from 'dalsegno-client';` : '';
  return `${own}\n${imports.join('\n')}\nexport default async ({ client, campaign, db, rawBody, body, request, headers, store }) => {{\n${rest.join('\n')}\n}};`;
}

function message(): { rawBody: string; headers: Record<string, string> } {
  const rawBody = JSON.stringify({ type: 'task.done', timestamp: '2026-11-20T12:00:00Z', data: { task_id: '1', result: 'Told.' } });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`1.${timestamp}.${rawBody}`).digest('base64');
  return { rawBody, headers: { 'webhook-id': '1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` } };
}

for (const page of ['clients/typescript/README.md', 'docs/how-to/clients.md']) {
  test(`the code of ${page} runs`, async () => {
    const found = blocks(page);
    assert(found.length >= 2);
    const db = new pg.Client(postgres);
    await db.connect();
    await db.query('create temp table orders (what text)');
    const { rawBody, headers } = message();
    const names = { client, campaign, db, rawBody, body: rawBody, request: { headers }, headers, store: () => undefined };
    try {
      for (const [number, block] of found.entries()) {
        const file = join(import.meta.dirname, `${page.replaceAll(/\W/g, '-')}-${number}.mjs`);
        writeFileSync(file, moduleOf(block));
        const { default: run } = (await import(file)) as { default: (given: typeof names) => Promise<void> };
        await run(names);
      }
    } finally {
      await db.end();
    }
  });
}
