import { ApiError, TransportError } from './errors.js';
import { isRepeatable, type Request } from './request.js';

export interface RetryOptions {
  /** 4 by default; 0 disables retries. */
  maxRetries?: number;
  /** Milliseconds, 60,000 by default. An error that asks for a longer wait is thrown, with `retryAfterMs`. */
  longestWaitMs?: number;
  /** Replaces the waits, for tests. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const firstWaitMs = 500;
const longestBackoffMs = 8_000;

/** Retries with a growing wait. A `Retry-After` of the service is honoured. */
export class RetryPolicy {
  private readonly maxRetries: number;
  private readonly longestWaitMs: number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;

  constructor(options: RetryOptions = {}) {
    this.maxRetries = options.maxRetries ?? 4;
    this.longestWaitMs = options.longestWaitMs ?? 60_000;
    this.sleep = options.sleep ?? sleep;
  }

  /** Waits until the next try, or throws the error to give up. */
  async waitOrThrow(error: unknown, request: Request, retries: number): Promise<void> {
    if (retries >= this.maxRetries || !canRepeat(error, request)) throw error;
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    const wait = asked ?? backoff(retries);
    if (wait > this.longestWaitMs) throw error;
    await this.sleep(wait, request.options.signal);
  }
}

function canRepeat(error: unknown, request: Request): boolean {
  if (error instanceof ApiError) {
    // A rate limit refuses a request before it runs; other refusals may come after a part of it has run.
    return error.retryable && (isRepeatable(request) || error.status === 429);
  }
  return error instanceof TransportError && (isRepeatable(request) || !error.sent);
}

/** Doubles the wait with each retry. Clients that failed together come back at different moments. */
function backoff(retries: number): number {
  return Math.min(firstWaitMs * 2 ** retries, longestBackoffMs) * (0.5 + Math.random() / 2);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
