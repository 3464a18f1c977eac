import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'dalsegno-client';

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

/** A service with a private Postgres. */
export class Service {
  readonly adminKey = randomBytes(32).toString('hex');
  private constructor(
    private readonly binary: string,
    private readonly folder: string,
  ) {}

  private process!: ChildProcess;
  url!: string;
  key!: string;
  campaign!: string;

  static async start(): Promise<Service> {
    const binary = process.env['DALSEGNO_BINARY'];
    if (!binary) throw new Error('DALSEGNO_BINARY has to name a dalsegno');
    const folder = mkdtempSync(join(tmpdir(), 'dalsegno-clients-'));
    // The account of the Postgres server has to be able to enter the folder.
    chmodSync(folder, 0o755);
    const service = new Service(binary, folder);
    await service.listen();
    service.key = service.command('key', 'create', 'shop', '--scope', 'enqueue', '--scope', 'operate')['secret']!;
    service.campaign = service.command('campaign', 'create', 'Harbour series')['id']!;
    return service;
  }

  client(url = this.url): Client {
    return new Client({ url, apiKey: this.key });
  }

  private async listen(): Promise<void> {
    const [ready, log] = [join(this.folder, 'ready'), join(this.folder, 'log')];
    this.process = spawn(this.binary, ['serve', '--json'], {
      cwd: this.folder,
      env: this.environment(),
      stdio: ['ignore', openSync(ready, 'w'), openSync(log, 'w')],
    });
    for (let tries = 0; tries < startSecs * 20; tries += 1) {
      const text = readFileSync(ready, 'utf8');
      if (text.trimEnd().endsWith('}')) {
        this.url = (JSON.parse(text) as { address: string }).address;
        return;
      }
      if (this.process.exitCode !== null) break;
      await sleep(50);
    }
    throw new Error(`the service did not start: ${readFileSync(log, 'utf8').slice(-2000)}`);
  }

  command(...parameters: string[]): Record<string, string> {
    const output = execFileSync(this.binary, [...parameters, '--json'], { cwd: this.folder, env: this.environment() });
    return JSON.parse(output.toString()) as Record<string, string>;
  }

  private environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !/^(DALSEGNO_|PG|DATABASE_URL)/.test(name));
    return { ...Object.fromEntries(kept), ...settings, DALSEGNO_HTTP__ADMIN_KEY: this.adminKey };
  }

  /** How node-postgres connects to the private Postgres. */
  get postgres(): { host: string; user: string; database: string; password: string } {
    const folder = join(this.folder, '.dalsegno/postgres');
    const password = readFileSync(join(folder, 'password'), 'utf8').trim();
    return { host: join(folder, 'run'), user: 'dalsegno', database: 'dalsegno', password };
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
