import { batches } from './bulk.js';
import { refusal, TaskFailed, TransportError, WaitTimeout } from './errors.js';
import { type Event, EventReader } from './events.js';
import { Operations } from './operations.js';
import { type CallOptions, headersOf, type KeyedOptions, pathAndQuery, randomKey, type Request, withKey } from './request.js';
import { type RetryOptions, RetryPolicy } from './retry.js';
import type { AddedMany, BulkAdded, BulkTask, NewTask, Page, Task, TaskDetail } from './types.js';

export interface ClientOptions {
  /** Address of the service; in a browser the page's own origin with `''`. */
  url?: string;
  /** An API key. Keep it on servers: visitors of a page can read a key in it. */
  apiKey?: string;
  retry?: RetryOptions;
  /** Replaces the global `fetch`, for proxies or certificates. */
  fetch?: typeof fetch;
}

export interface RunOptions extends KeyedOptions {
  /** Milliseconds after which `WaitTimeout` is thrown. By default the wait does not end before the task. */
  timeoutMs?: number;
}

/** A task for `run` and `stream`, with the id of its campaign. */
export type CampaignTask = NewTask & { campaign: string };

const defaultUrl = 'http://127.0.0.1:7770';
/** Longer than the service lets a request take, and than its pings in streams are apart. */
const silenceMs = 60_000;
/** The service lets a request take 30 seconds by default. */
const longestWaitMs = 25_000;
/** Errors of Node that come before a request is sent. */
const unsentCodes = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];

/** A client of a service. */
export class Client extends Operations {
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly retry: RetryPolicy;
  private readonly fetch: typeof fetch;

  constructor(options: ClientOptions = {}) {
    super();
    this.url = (options.url ?? defaultUrl).replace(/\/+$/, '');
    this.headers = options.apiKey ? { Authorization: `Bearer ${options.apiKey}` } : {};
    this.retry = new RetryPolicy(options.retry);
    this.fetch = options.fetch ?? ((...request) => fetch(...request));
  }

  /**
   * Adds a task, waits for its end and returns it with its result.
   *
   * Throws `TaskFailed` if it fails or is cancelled, and `WaitTimeout` after `timeoutMs`.
   */
  async run({ campaign, ...task }: CampaignTask, options: RunOptions = {}): Promise<TaskDetail> {
    const added = await this.addTask(campaign, task, options);
    const ended = await this.wait(added, options);
    if (ended.state !== 'done') throw new TaskFailed(ended);
    return ended;
  }

  /** Adds a task and yields its events until it has ended; `event.text` is new text of the answer. */
  async *stream({ campaign, ...task }: CampaignTask, options: KeyedOptions = {}): AsyncGenerator<Event, void, undefined> {
    const added = await this.addTask(campaign, task, options);
    yield* this.followTask(added.id, options.signal ? { signal: options.signal } : {});
  }

  /** Waits until a task has ended, in any state. Throws `WaitTimeout` after `timeoutMs`. */
  async wait(task: string | Pick<Task, 'id'>, options: CallOptions & { timeoutMs?: number } = {}): Promise<TaskDetail> {
    const id = typeof task === 'string' ? task : task.id;
    const timeoutMs = options.timeoutMs ?? Infinity;
    const end = Date.now() + timeoutMs;
    for (;;) {
      const left = Math.min(Math.max(end - Date.now(), 0), longestWaitMs);
      const found = await this.showTask(id, { wait: `${Math.floor(left)}ms` }, options.signal ? { signal: options.signal } : {});
      if (found.ended_at) return found;
      if (Date.now() >= end) throw new WaitTimeout(id, timeoutMs);
    }
  }

  /**
   * Adds any number of tasks, a thousand per request.
   *
   * Each request adds all of its tasks or none. With an `idempotencyKey` the call can be repeated after any failure.
   */
  async addTasks(
    campaign: string,
    tasks: Iterable<BulkTask> | AsyncIterable<BulkTask>,
    options: KeyedOptions & { batchSize?: number } = {},
  ): Promise<AddedMany> {
    const idempotencyKey = options.idempotencyKey ?? randomKey();
    const items: BulkAdded[] = [];
    let created = 0;
    for await (const batch of batches(tasks, idempotencyKey, options.batchSize)) {
      const added = await this.addManyTasks(campaign, batch, { ...options, idempotencyKey });
      items.push(...added.items);
      created += added.created;
    }
    return { created, items };
  }

  /** Yields the items of all pages: `client.every((cursor) => client.listTasks({ state: 'failed', cursor }))`. */
  async *every<T>(list: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await list(cursor);
      yield* page.items;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  protected override async call<T>(unkeyed: Request): Promise<T> {
    const request = withKey(unkeyed);
    for (let retries = 0; ; retries += 1) {
      try {
        const response = await this.send(request, AbortSignal.timeout(silenceMs));
        return (await this.guarded(request, () => answerOf(request, response))) as T;
      } catch (error) {
        await this.retry.waitOrThrow(error, request, retries);
      }
    }
  }

  protected override async *follow(request: Request): AsyncGenerator<Event, void, undefined> {
    for (let retries = 0; ; retries += 1) {
      const silence = new Silence();
      try {
        const response = await this.send(request, silence.signal);
        // 204: everything was received before.
        if (response.status === 204 || !response.body) return;
        const reader = new EventReader();
        for await (const piece of this.pieces(request, response.body)) {
          silence.restart();
          for (const event of reader.read(piece)) {
            retries = 0;
            request = { ...request, options: { ...request.options, lastEventId: event.id } };
            yield event;
            if (event.kind === 'end') return;
          }
          // Also a ping shows that the service is there; a refusal within the stream does not.
          retries = 0;
        }
        throw new TransportError('the stream ended before its last event', true);
      } catch (error) {
        await this.retry.waitOrThrow(error, request, retries);
      } finally {
        silence.end();
      }
    }
  }

  /** Sends a request once. Throws a refusal. */
  private async send(request: Request, timeout: AbortSignal): Promise<Response> {
    const { signal } = request.options;
    const response = await this.guarded(request, () =>
      this.fetch(this.url + pathAndQuery(request), {
        method: request.method,
        headers: { ...this.headers, ...headersOf(request) },
        body: request.body === undefined ? null : JSON.stringify(request.body),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        // The key goes only to its service.
        redirect: 'error',
        credentials: 'omit',
        cache: 'no-store',
      }),
    );
    if (!response.ok) throw await refusal(response);
    return response;
  }

  private async *pieces(request: Request, body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = body.getReader();
    try {
      for (;;) {
        const { done, value } = await this.guarded(request, () => reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      // Closes the connection if the caller leaves the loop.
      await reader.cancel().catch(() => undefined);
    }
  }

  /** Throws errors of `fetch` as `TransportError`, and the caller's own abort as it is. */
  private async guarded<T>(request: Request, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      if (request.options.signal?.aborted) throw request.options.signal.reason;
      const { code, message } = (cause as { cause?: { code?: string; message?: string } }).cause ?? {};
      const sent = !unsentCodes.includes(code ?? '');
      const reason = message ?? (cause instanceof Error ? cause.message : String(cause));
      const what = sent ? 'the connection broke' : 'no connection';
      throw new TransportError(`cannot get an answer from ${this.url}: ${what} (${reason})`, sent, { cause });
    }
  }
}

/** Aborts a stream that sends nothing, not even pings. */
class Silence {
  private readonly controller = new AbortController();
  private timer = this.start();
  readonly signal = this.controller.signal;

  restart(): void {
    clearTimeout(this.timer);
    this.timer = this.start();
  }

  end(): void {
    clearTimeout(this.timer);
  }

  private start(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.controller.abort(new Error('nothing was received for a minute')), silenceMs);
  }
}

async function answerOf(request: Request, response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  if (request.isBinary) return new Uint8Array(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.includes('json');
  return isJson ? response.json() : response.text();
}
