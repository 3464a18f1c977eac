import { DalsegnoError } from './errors.js';
import type { OnFailure, SessionMode } from './types.js';

/** A client of node-postgres with an open transaction; every object with such a `query` will do. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A file of another task of the campaign: an output file, or one of its attachments. */
export interface SqlAttachment {
  task: string;
  file: string;
  /** Name that the model is told, without folders. By default that of `file`. */
  name?: string;
}

/** Arguments of `dalsegno.add_task`. */
export interface SqlTask {
  campaign: string;
  agent: string;
  prompt: string;
  /** Tasks of the same campaign, also of this transaction. */
  depends_on?: string[];
  on_failure?: OnFailure;
  parent_id?: string;
  instance?: string;
  session_mode?: SessionMode;
  budget_micros?: number;
  budget_tokens?: number;
  idempotency_key?: string;
  /** 0 is the most urgent; 100 is the default. */
  priority?: number;
  run_at?: Date | string;
  tags?: string[];
  metadata?: Record<string, unknown>;
  flow_templates?: string[];
  result_schema?: Record<string, unknown>;
  /** Seconds that the answer may take. */
  within_secs?: number;
  attachments?: SqlAttachment[];
}

export interface EnqueueResult {
  taskId: string;
  /** False: an earlier call with this idempotency key created the task. */
  created: boolean;
}

/** The function refused the task. Like any error of Postgres, this has failed the transaction, or its savepoint. */
export class EnqueueError extends DalsegnoError {
  constructor(
    /** DS400, DS404, DS409 or DS413. */
    readonly code: string,
    message: string,
    readonly hint: string,
    cause: unknown,
  ) {
    super(hint ? `${message}. ${hint}` : message, { cause });
  }
}

/** The types, because the driver sends text without one. */
const types: Record<string, string> = {
  campaign_id: 'uuid',
  depends_on: 'uuid[]',
  parent_id: 'uuid',
  budget_micros: 'bigint',
  budget_tokens: 'bigint',
  priority: 'integer',
  run_at: 'timestamptz',
  tags: 'text[]',
  metadata: 'jsonb',
  flow_templates: 'text[]',
  result_schema: 'jsonb',
  within_secs: 'integer',
  attachments: 'jsonb',
};

/**
 * Adds a task within the caller's transaction, in the database of the service: the task exists if and only if that commits.
 */
export async function enqueue(db: Queryable, { campaign, ...task }: SqlTask): Promise<EnqueueResult> {
  // Only the given arguments, so that the statement also suits older databases, which lack the newest ones.
  const given = Object.entries({ campaign_id: campaign, ...task }).filter(([, value]) => value !== undefined && value !== null);
  const listed = given.map(([name], place) => `${name} => cast($${place + 1} as ${types[name] ?? 'text'})`);
  const values = given.map(([name, value]) => (types[name] === 'jsonb' ? JSON.stringify(value) : value));
  try {
    const { rows } = await db.query(`select task_id, created from dalsegno.add_task(${listed.join(', ')})`, values);
    const [row] = rows as { task_id: string; created: boolean }[];
    if (!row) throw new DalsegnoError('dalsegno.add_task returned no row');
    return { taskId: row.task_id, created: row.created };
  } catch (error) {
    const { code, message, hint } = error as { code?: string; message?: string; hint?: string };
    if (typeof code === 'string' && code.startsWith('DS4')) throw new EnqueueError(code, message ?? '', hint ?? '', error);
    throw error;
  }
}
