// Starts a service, runs the tests against it, and stops it. DALSEGNO_BINARY names the program.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceProcess } from './service.js';

const binary = process.env['DALSEGNO_BINARY'];
if (!binary) throw new Error('set DALSEGNO_BINARY to the program dalsegno');
const running = new ServiceProcess(binary);
try {
  const service = await running.ready();
  const named = process.argv.slice(2);
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.js'));
  const chosen = files.filter((name) => named.length === 0 || named.some((part) => name.startsWith(part)));
  const tests = spawn(process.execPath, ['--test', ...chosen.map((name) => join(import.meta.dirname, name))], {
    env: { ...process.env, TEST_SERVICE: JSON.stringify(service) },
    stdio: 'inherit',
  });
  process.exitCode = await new Promise<number>((resolve) => tests.once('exit', (code) => resolve(code ?? 1)));
} finally {
  await running.stop();
}
