import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The models of the tests are the simulation. */
const settings = {
  DALSEGNO_SIM__LATENCY_MS: '20',
  DALSEGNO_SIM__CHUNK_DELAY_MS: '20',
  DALSEGNO_SIM__DIRECTIVES: 'true',
  DALSEGNO_HTTP__REQUIRE_KEY: 'true',
  DALSEGNO_WEBHOOKS__ALLOW_PRIVATE: 'true',
  DALSEGNO_HTTP__LISTEN: '127.0.0.1:0',
};
const startSecs = 120;

/** A service with a private Postgres, as the tests see it. */
export interface Service {
  url: string;
  /** A key with the scopes `enqueue` and `operate`. */
  key: string;
  adminKey: string;
  campaign: string;
  postgres: { host: string; user: string; database: string; password: string };
}

/** Returns the service of this run, which `main.ts` has started. */
export function service(): Service {
  return JSON.parse(process.env['TEST_SERVICE']!) as Service;
}

/** A running service. */
export class ServiceProcess {
  private readonly adminKey = randomBytes(32).toString('hex');
  private readonly folder = mkdtempSync(join(tmpdir(), 'dalsegno-clients-'));
  private readonly process: ChildProcess;

  constructor(private readonly binary: string) {
    // The account of the Postgres server has to be able to enter the folder.
    chmodSync(this.folder, 0o755);
    this.process = spawn(binary, ['serve', '--json'], {
      cwd: this.folder,
      env: this.environment(),
      stdio: ['ignore', openSync(join(this.folder, 'ready'), 'w'), openSync(join(this.folder, 'log'), 'w')],
    });
  }

  async ready(): Promise<Service> {
    const { address } = await this.address();
    const folder = join(this.folder, '.dalsegno/postgres');
    const password = readFileSync(join(folder, 'password'), 'utf8').trim();
    return {
      url: address,
      key: this.command('key', 'create', 'shop', '--scope', 'enqueue', '--scope', 'operate')['secret']!,
      adminKey: this.adminKey,
      campaign: this.command('campaign', 'create', 'Harbour series')['id']!,
      postgres: { host: join(folder, 'run'), user: 'dalsegno', database: 'dalsegno', password },
    };
  }

  private async address(): Promise<{ address: string }> {
    for (let tries = 0; tries < startSecs * 20 && this.process.exitCode === null; tries += 1) {
      const text = readFileSync(join(this.folder, 'ready'), 'utf8');
      if (text.trimEnd().endsWith('}')) return JSON.parse(text) as { address: string };
      await sleep(50);
    }
    throw new Error(`the service did not start: ${readFileSync(join(this.folder, 'log'), 'utf8').slice(-2000)}`);
  }

  private command(...parameters: string[]): Record<string, string> {
    const output = execFileSync(this.binary, [...parameters, '--json'], { cwd: this.folder, env: this.environment() });
    return JSON.parse(output.toString()) as Record<string, string>;
  }

  private environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !/^(DALSEGNO_|PG|DATABASE_URL)/.test(name));
    return { ...Object.fromEntries(kept), ...settings, DALSEGNO_HTTP__ADMIN_KEY: this.adminKey };
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGINT');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 30_000);
    await ended;
    clearTimeout(timer);
    rmSync(this.folder, { recursive: true });
  }
}
