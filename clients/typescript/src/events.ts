import { refusalOf } from './errors.js';
import type { FeedEvent, Problem, Task } from './types.js';

export interface Event {
  /** Pass it as `lastEventId` to continue after this event, also from another process. */
  id: string;
  /** `task.queued`, `turn.progress`, `turn.done` and so on; `end` is the last event of a task. */
  kind: string;
  /** The event; undefined for `end`. */
  feed?: FeedEvent;
  /** The task with its result, only for `end`. */
  task?: Task;
  /** Fields of the event, such as the number of the turn. */
  data: Record<string, unknown>;
  /**
   * The part of the answer that arrived since the previous event; empty for events without text. The texts of all events are
   * the answer, unless its turn was repeated: then the text of `end` is the whole answer.
   */
  text: string;
}

/** Reads events from the bytes of a stream. */
export class EventReader {
  private readonly decoder = new TextDecoder();
  private rest = '';
  private lines: [name: string, value: string][] = [];

  *read(piece: Uint8Array): Generator<Event, void, undefined> {
    const lines = (this.rest + this.decoder.decode(piece, { stream: true })).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      const text = line.endsWith('\r') ? line.slice(0, -1) : line;
      if (text !== '') {
        const colon = text.indexOf(':');
        const [name, value] = colon < 0 ? [text, ''] : [text.slice(0, colon), text.slice(colon + 1)];
        this.lines.push([name, value.startsWith(' ') ? value.slice(1) : value]);
        continue;
      }
      const event = this.event();
      if (event) yield event;
    }
  }

  private event(): Event | undefined {
    const fields = new Map(this.lines);
    const data = this.lines.filter(([name]) => name === 'data').map(([, value]) => value);
    this.lines = [];
    // A comment only keeps the connection open.
    if (data.length === 0) return undefined;
    return eventOf(fields.get('id') ?? '', fields.get('event') ?? 'message', JSON.parse(data.join('\n')));
  }
}

function eventOf(id: string, kind: string, value: unknown): Event {
  if (kind === 'error') {
    const problem = value as Problem;
    throw refusalOf(problem.status, problem);
  }
  if (kind === 'end') {
    const task = value as Task & { rest?: string };
    return { id, kind, task, data: {}, text: task.rest ?? '' };
  }
  const feed = value as FeedEvent;
  const data = typeof feed.data === 'object' && feed.data !== null ? (feed.data as Record<string, unknown>) : {};
  const text = kind === 'turn.progress' && typeof data['text'] === 'string' ? data['text'] : '';
  return { id, kind, feed, data, text };
}
