import type { ErrorCode, FieldError, Problem, TaskDetail } from './types.js';

/** Base class of all errors of this package. */
export class DalsegnoError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The service did not answer, or the connection broke. */
export class TransportError extends DalsegnoError {
  constructor(
    message: string,
    /** False: there was no connection, so the service has not received the request. */
    readonly sent: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The time of a wait is over. The task goes on. */
export class WaitTimeout extends DalsegnoError {
  constructor(
    readonly taskId: string,
    timeoutMs: number,
  ) {
    super(`task ${taskId} has not ended within ${timeoutMs} ms: it goes on; wait again, or cancel it`);
  }
}

/** A task of `run` has failed or was cancelled. */
export class TaskFailed extends DalsegnoError {
  constructor(readonly task: TaskDetail) {
    super(`task ${task.id} is ${task.state}: ${task.error ?? task.cancelled_because ?? 'no reason was given'}`);
  }
}

/** A refusal of the service. Programs decide by `code` and `retryable`. */
export class ApiError extends DalsegnoError {
  readonly code: ErrorCode | (string & {});
  readonly detail: string;
  readonly retryable: boolean;
  readonly errors: FieldError[];
  readonly requestId: string | undefined;

  constructor(
    readonly status: number,
    problem: Partial<Problem>,
    /** The wait that the service asks for. */
    readonly retryAfterMs?: number,
  ) {
    const detail = problem.detail ?? `the service answered with status ${status}`;
    super(problem.code ? `${problem.code}: ${detail}` : detail);
    this.code = problem.code ?? '';
    this.detail = detail;
    // A proxy answers without a problem document.
    this.retryable = problem.retryable ?? [429, 502, 503, 504].includes(status);
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id ?? undefined;
  }
}

/** The request is wrong; `errors` names the fields where that is known. */
export class InvalidRequest extends ApiError {}
/** The API key is missing, wrong, expired or revoked. */
export class Unauthenticated extends ApiError {}
/** The API key does not have the scope, or is bound to another campaign. */
export class Forbidden extends ApiError {}
/** The service has no such thing, or the API key does not reach it. */
export class NotFound extends ApiError {}
/** The state of a thing does not allow the request, or its idempotency key belongs to another one. */
export class Conflict extends ApiError {}
/** Too many requests. The client has waited and retried already. */
export class RateLimited extends ApiError {}
/** The service or its database has a problem. The client has retried already if that can help. */
export class ServiceError extends ApiError {}

const byStatus: Record<number, typeof ApiError> = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  429: RateLimited,
};

export async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  return refusalOf(response.status, parsed(text), retryAfterMs(response.headers.get('retry-after')));
}

export function refusalOf(status: number, problem: Partial<Problem>, retryAfter?: number): ApiError {
  const kind = byStatus[status] ?? (status >= 500 ? ServiceError : InvalidRequest);
  return new kind(status, problem, retryAfter);
}

function parsed(text: string): Partial<Problem> {
  try {
    const problem: unknown = JSON.parse(text);
    return typeof problem === 'object' && problem !== null ? problem : {};
  } catch {
    return {};
  }
}

/** Reads a `Retry-After`: seconds or a date. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const moment = Date.parse(header);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - now);
}
