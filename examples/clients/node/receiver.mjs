// Receives webhooks when tasks end, and verifies their signatures. Requires only Node.
//
//   WEBHOOK_SECRET=whsec_... PORT=8000 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const keys = process.env.WEBHOOK_SECRET.split(' ').map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'));
const toleranceSecs = 300;
const maxBodyBytes = 1 << 20;
// A delivery can arrive twice. Use a database if that matters.
const seen = new Set();

function isGenuine(headers, body) {
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signatures = '' } = headers;
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > toleranceSecs) return false;
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest());
  return signatures.split(' ').filter((part) => part.startsWith('v1,')).some((part) => {
    const given = Buffer.from(part.slice(3), 'base64');
    return expected.some((one) => one.length === given.length && timingSafeEqual(one, given));
  });
}

createServer(async (request, response) => {
  const pieces = [];
  let size = 0;
  for await (const piece of request) {
    size += piece.length;
    if (size > maxBodyBytes) return response.writeHead(413).end();
    pieces.push(piece);
  }
  const body = Buffer.concat(pieces);
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end();
  // Answer quickly; do slow work afterwards.
  response.writeHead(204).end();
  const id = request.headers['webhook-id'];
  if (seen.has(id)) return;
  seen.add(id);
  const { type, data } = JSON.parse(body);
  console.log(type, data.task_id, data.result);
}).listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => console.log('listening'));
