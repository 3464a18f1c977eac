export { Client, type CampaignTask, type ClientOptions, type RunOptions } from './client.js';
export {
  ApiError,
  Conflict,
  DalsegnoError,
  Forbidden,
  InvalidRequest,
  NotFound,
  RateLimited,
  ServiceError,
  TaskFailed,
  TransportError,
  Unauthenticated,
  WaitTimeout,
} from './errors.js';
export type { Event } from './events.js';
export type { CallOptions, KeyedOptions, StreamOptions } from './request.js';
export type { RetryOptions } from './retry.js';
export type * from './types.js';
export { type BudgetWarning, type TaskEnd, verifyWebhook, type VerifyOptions, WebhookError, type WebhookEvent } from './webhooks.js';
