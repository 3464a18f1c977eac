import { DalsegnoError } from './errors.js';

/**
 * A message that the service has not signed with this secret, or not in the last minutes. Answer it with 401.
 */
export class WebhookError extends DalsegnoError {}

interface Message {
  /** The same in all attempts and replays of a delivery. */
  id: string;
  /** The moment of the event. Deliveries can arrive in another order. */
  timestamp: string;
}

export type WebhookEvent = Message &
  (
    | { type: 'task.done' | 'task.failed' | 'task.cancelled'; data: TaskEnd }
    | { type: 'budget.warning'; data: BudgetWarning }
    | { type: 'webhook.test'; data: Record<string, unknown> }
  );

export interface TaskEnd {
  task_id: string;
  campaign_id: string;
  agent: string;
  instance: string;
  state: 'done' | 'failed' | 'cancelled';
  session_id: string | null;
  turn: number | null;
  created_at: string;
  started_at: string | null;
  ended_at: string;
  spent_micros: number;
  spent_tokens: number;
  result: string | null;
  error: string | null;
  /** True: result or error was cut. `showTask` returns it whole. */
  truncated: boolean;
}

export interface BudgetWarning {
  owner: string;
  key: string;
  campaign_id: string | null;
  task_id: string | null;
  period: string | null;
  spent: Amounts;
  soft: Amounts;
  limit: Amounts;
}

interface Amounts {
  micros: number | null;
  tokens: number | null;
}

export interface VerifyOptions {
  toleranceSecs?: number;
  /** Milliseconds since 1970, for tests. */
  now?: number;
}

type HeaderValues = Headers | Record<string, string | string[] | undefined>;

/**
 * Returns the event of a genuine message, and throws `WebhookError` for all others.
 *
 * `body` has to be the body as it was received. While a secret is rotated, pass both.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderValues,
  secret: string | string[],
  { toleranceSecs = 300, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const [id, timestamp] = [header(headers, 'webhook-id'), header(headers, 'webhook-timestamp')];
  if (id === '' || !/^\d+$/.test(timestamp)) {
    throw new WebhookError('webhook-id or webhook-timestamp is missing: the message does not come from this service');
  }
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceSecs) {
    throw new WebhookError(`webhook-timestamp is more than ${toleranceSecs} s off: check the clock of this machine`);
  }
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const given = header(headers, 'webhook-signature').split(' ').filter((part) => part.startsWith('v1,'));
  const keys = await Promise.all([secret].flat().map(keyOf));
  for (const key of keys) {
    for (const part of given) {
      // `verify` compares in constant time.
      const signature = decoded(part.slice(3));
      if (signature && (await crypto.subtle.verify('HMAC', key, signature, signed))) {
        return { id, ...(JSON.parse(new TextDecoder().decode(bytes)) as Omit<WebhookEvent, 'id'>) } as WebhookEvent;
      }
    }
  }
  throw new WebhookError('webhook-signature does not match: check the secret, and pass the body as it was received');
}

function header(headers: HeaderValues, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? '';
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const key = decoded(secret.replace(/^whsec_/, ''));
  if (!key) throw new TypeError('invalid webhook secret: it is `whsec_` and base64, as `dalsegno webhook add` prints it');
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

function decoded(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
