// The client in a browser: a page of the same origin as the service runs a task, streams one and verifies a webhook.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as send, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { service } from './service.js';

const { url, key, campaign } = service();
const modules = dirname(fileURLToPath(import.meta.resolve('dalsegno-client')));
const secret = `whsec_${Buffer.from('a key of exactly thirty-two bytes').toString('base64')}`;

function hasChromium(): boolean {
  try {
    execFileSync('chromium', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function page(): string {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const body = JSON.stringify({ type: 'webhook.test', timestamp: new Date().toISOString(), data: {} });
  const signature = createHmac('sha256', Buffer.from(secret.slice(6), 'base64')).update(`1.${timestamp}.${body}`).digest('base64');
  const headers = { 'webhook-id': '1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
  return `<!doctype html><script type="module">
    import { Client, NotFound, verifyWebhook } from '/modules/index.js';
    try {
      const client = new Client({ url: '', apiKey: ${JSON.stringify(key)} });
      const task = { campaign: ${JSON.stringify(campaign)}, agent: 'copywriter', instance: 'browser', prompt: '[[sim: say From a browser.]]' };
      const { result } = await client.run(task);
      const kinds = [];
      for await (const event of client.stream(task)) kinds.push(event.kind);
      const missing = await client.showTask('019aa2f1-0000-7000-8000-000000000000').catch((error) => error instanceof NotFound);
      const { type } = await verifyWebhook(${JSON.stringify(body)}, new Headers(${JSON.stringify(headers)}), ${JSON.stringify(secret)});
      await fetch('/report', { method: 'POST', body: JSON.stringify({ result, last: kinds.at(-1), missing, type }) });
    } catch (error) {
      await fetch('/report', { method: 'POST', body: JSON.stringify({ error: String(error) }) });
    }
  </script>`;
}

test('the client works in Chromium', { skip: !hasChromium() && 'chromium is not installed' }, async () => {
  let report: (text: string) => void = () => undefined;
  const reported = new Promise<string>((resolve) => (report = resolve));
  const server = createServer(async (request, response) => {
    const path = request.url!;
    if (path.startsWith('/v1/')) {
      const forwarded = send(new URL(path, url), { method: request.method!, headers: request.headers }, (answer: IncomingMessage) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      request.pipe(forwarded);
    } else if (path.startsWith('/modules/')) {
      response.writeHead(200, { 'Content-Type': 'text/javascript' }).end(readFileSync(join(modules, path.slice('/modules/'.length))));
    } else if (path === '/report') {
      const pieces = (await request.toArray()) as Buffer[];
      response.writeHead(204).end();
      report(Buffer.concat(pieces).toString());
    } else {
      response.writeHead(path === '/' ? 200 : 404, { 'Content-Type': 'text/html' }).end(path === '/' ? page() : '');
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const profile = mkdtempSync(join(tmpdir(), 'dalsegno-browser-'));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const options = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${profile}`, '--remote-debugging-port=0'];
  const browser = spawn('chromium', [...options, address], { stdio: 'ignore' });
  const ended = new Promise((resolve) => browser.once('exit', resolve));
  try {
    const end = setTimeout(() => report('{"error":"the page did not report"}'), 60_000);
    assert.deepEqual(JSON.parse(await reported), { result: 'From a browser.', last: 'end', missing: true, type: 'webhook.test' });
    clearTimeout(end);
  } finally {
    browser.kill();
    await ended;
    server.close();
    server.closeAllConnections();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
