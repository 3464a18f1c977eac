// What needs a person. The shared worker asks for all tabs of a browser: regularly, and soon after events that may have changed it.
const EVERY = 30_000;
const SOON = 500;
const LEAST_GAP = 3000;
const KINDS = new Set([
  "agent.paused", "agent.resumed", "budget.refused", "campaign.edited", "flow.retried",
  "task.cancelled", "task.failed", "task.queued", "turn.failed",
]);

export class AttentionWatch {
  constructor(tell) {
    this.tell = tell;
    this.askedAt = 0;
  }

  begin() {
    this.interval ??= setInterval(() => this.ask(), EVERY);
    this.askSoon();
  }

  end() {
    clearInterval(this.interval);
    clearTimeout(this.timer);
    this.interval = this.timer = undefined;
  }

  seen(event) {
    if (KINDS.has(event.kind)) this.askSoon();
  }

  askSoon() {
    const wait = Math.max(SOON, this.askedAt + LEAST_GAP - Date.now());
    this.timer ??= setTimeout(() => this.ask(), this.askedAt === 0 ? 0 : wait);
  }

  async ask() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.askedAt = Date.now();
    try {
      const answer = await fetch("/attention", { headers: { Accept: "application/json" } });
      if (answer.ok) this.tell({ kind: "attention", items: (await answer.json()).items });
      // Without a sign-in, there is nothing to tell. After other refusals, such as a full service, the last list stands: what is on it would
      // be new again.
      else if (answer.status === 401 || answer.status === 403) this.tell({ kind: "attention", items: [] });
    } catch {
      // The service is away. The pages say so, and the next round asks again.
    }
  }
}
