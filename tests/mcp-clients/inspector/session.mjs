// Lists the tools of Dalsegno, calls each of them with the command line of the inspector, and prints the exchange.
//
//     session.mjs CALLS WAY VERSION URL             a service; MCP_KEY is its API key
//     session.mjs CALLS WAY VERSION COMMAND...      a server on standard input and output
//
// MCP_INSPECTOR is the folder with its modules. MCP_ONLY names the tools that are called, instead of all.
// Exits 1 if a tool has no call in CALLS, if a call is refused, or if an answer lacks the expected text.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const [path, way, version, ...target] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(path, 'utf8'));
const only = process.env.MCP_ONLY?.split(',');
const program = join(process.env.MCP_INSPECTOR, '@modelcontextprotocol/inspector');
// The inspector stores files in the home of its user.
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
const era = { '2025-11-25': 'legacy', '2026-07-28': 'modern' }[version];
// Node 18 needs flags for these two; later versions have them by default.
const node = ['--experimental-global-customevent', '--experimental-global-webcrypto'];

const isService = target[0].startsWith('http');
const key = process.env.MCP_KEY ? ['--header', `Authorization: Bearer ${process.env.MCP_KEY}`] : [];
// The inspector passes no variables of its environment to a server.
const ours = Object.entries(process.env).filter(([name]) => /^(DALSEGNO_|DATABASE_URL$)/.test(name));
const server = isService
  ? ['--transport', 'http', '--server-url', target[0], ...key]
  : ['--transport', 'stdio', ...ours.flatMap(([name, value]) => ['-e', `${name}=${value}`])];
const command = isService ? [] : ['--', ...target];

async function inspect(method, ...more) {
  const cli = [join(program, 'clients/cli/build/index.js'), ...server, '--protocol-era', era];
  const args = [...node, ...cli, '--method', method, ...more, '--format', 'json', ...command];
  const env = { ...process.env, HOME: home };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env, maxBuffer: 1 << 24 });
  return { result: JSON.parse(stdout).result, stderr };
}

function filled(value, known) {
  let text = JSON.stringify(value);
  for (const [name, said] of Object.entries(known)) text = text.replaceAll(`$${name}`, said);
  return JSON.parse(text);
}

function check(holds, words) {
  if (!holds) throw new Error(words);
}

try {
  const begun = (await inspect('initialize')).result;
  const { version: own } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8'));
  console.log(`# inspector ${own}, ${way}: protocol ${begun.protocolVersion}`);
  check(begun.protocolVersion === version, begun.protocolVersion);
  // Strictly: it looks at the schemas, too, and says what other clients would not understand.
  const { result, stderr } = await inspect('tools/list', '--strict');
  const tools = result.tools.map((tool) => tool.name);
  console.log(`> tools/list\n< ${tools.join(', ')}`);
  check(!stderr.includes('Path: '), stderr);
  const missing = tools.filter((name) => !calls.some((call) => call.tool === name));
  check(missing.length === 0, `${path} has no call of ${missing}`);
  const known = { way };
  for (const call of calls.filter(({ tool }) => tools.includes(tool) && (!only || only.includes(tool)))) {
    const [args, says] = [filled(call.arguments, known), filled(call.says, known)];
    console.log(`> ${call.tool} ${JSON.stringify(args)}`);
    const { result } = await inspect('tools/call', '--tool-name', call.tool, '--tool-args-json', JSON.stringify(args));
    const text = result.content.map((block) => block.text).join('');
    console.log(`< ${text.replaceAll('\n', ' ')}`);
    check(!result.isError && text.includes(says), `${call.tool} should say ${says}`);
    for (const name of ['task_id', 'session_id']) {
      known[name] = text.match(new RegExp(`"${name}":"([^"]+)"`))?.[1] ?? known[name];
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
