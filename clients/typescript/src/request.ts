export interface CallOptions {
  /** Aborts the call, its retries and its waits. */
  signal?: AbortSignal;
}

export interface KeyedOptions extends CallOptions {
  /** The same request under the same key runs once. Without one the client makes a key for its own retries. */
  idempotencyKey?: string;
}

export interface StreamOptions extends CallOptions {
  /** Continues after the event with this id. */
  lastEventId?: string;
}

/** A request, before it is sent. */
export interface Request {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  takesKey?: boolean;
  /** The answer is a file. */
  isBinary?: boolean;
  options: KeyedOptions & StreamOptions;
}

/** Makes an idempotency key. `crypto.randomUUID` is missing on pages that came over plain HTTP. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Gives a request that can have an idempotency key one, so that it can be repeated. */
export function withKey(request: Request): Request {
  if (!request.takesKey || request.options.idempotencyKey) return request;
  return { ...request, options: { ...request.options, idempotencyKey: randomKey() } };
}

/** Returns true if the request can be sent again although the service may have received it. */
export function isRepeatable(request: Request): boolean {
  return request.method === 'GET' || request.options.idempotencyKey !== undefined;
}

export function pathAndQuery(request: Request): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  return query.size > 0 ? `${request.path}?${query}` : request.path;
}

export function headersOf(request: Request): Record<string, string> {
  const { idempotencyKey, lastEventId } = request.options;
  return {
    ...(request.body !== undefined && { 'Content-Type': 'application/json' }),
    ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
  };
}
