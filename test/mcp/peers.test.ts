import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { TOOLS } from '../../src/api/mcp/tools.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { secretBearer } from '../support/mcp/secret-bearer.ts';
import { runCommand } from '../support/services/commands.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

const ROOT = join(import.meta.dirname, '../..');
const BASELINE = join(import.meta.dirname, 'conformance.yml');
const OURS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

/** Runs a file of a package, in a folder of its own. */
async function run(specifier: string, args: string[]): Promise<string> {
  const path = fileURLToPath(import.meta.resolve(specifier));
  return runCommand(process.execPath, [path, ...args], { cwd: p.dataDir, env: { ...process.env, HOME: p.dataDir } });
}

describe('the conformance suite of the protocol', () => {
  it('D8-06: what asks for no tools that are a test passes, and whatever else would pass is noticed', async () => {
    await using front = await secretBearer(p.url, p.demo.client.client_secret);
    const args = ['server', '--url', `${front.url}/v2/mcp`, '--suite', 'all', '--expected-failures', BASELINE];
    const output = await run('@modelcontextprotocol/conformance/dist/index.js', args);
    const named = [...output.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)].map((found) => found.slice(1));
    const passed = named.filter(([, good]) => Number(good) > 0).map(([name]) => name);
    expect(passed).toEqual(OURS);
    const { server } = parse(readFileSync(BASELINE, 'utf8'));
    expect(named.map(([name]) => name).sort()).toEqual([...OURS, ...server].sort());
  });
});

/** A block of docs/mcp.md, for the address of this instance. */
function documented(language: string, containing: string): string {
  const page = readFileSync(join(ROOT, 'docs/mcp.md'), 'utf8');
  const blocks = [...page.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].filter(([, name]) => name === language);
  const found = blocks.map(([, , block = '']) => block).find((block) => block.includes(containing));
  if (found === undefined) throw new Error(`docs/mcp.md has no such ${language}`);
  return found.replaceAll('http://127.0.0.1:4000', p.url);
}

const agentEnv = () => ({ ...process.env, PORTCULLIS_SECRET: p.demo.client.client_secret });

describe('docs/mcp.md', () => {
  it('D8-06: the example in TypeScript prints accounts', async () => {
    const args = ['--input-type=module-typescript', '-e', documented('ts', 'callTool')];
    expect(await runCommand(process.execPath, args, { cwd: ROOT, env: agentEnv() })).toContain('Acme Treasury');
  });

  it('D8-06: the example with curl prints who the client is', async () => {
    const told = await runCommand('sh', ['-c', documented('sh', 'curl')], { env: agentEnv() });
    expect(JSON.parse(told).result.structuredContent.client_id).toBe(p.demo.client.client_id);
  });

  it('D8-06: the configurations of hosts are JSON with the address and the secret', () => {
    for (const block of [documented('json', '"type": "http"'), documented('json', 'mcp-remote')]) {
      const text = JSON.stringify(JSON.parse(block).mcpServers.portcullis);
      expect(text).toContain(`${p.url}/v2/mcp`);
      expect(text).toContain('Authorization');
    }
    expect(documented('sh', 'claude mcp add')).toContain(`--transport http portcullis ${p.url}/v2/mcp --header`);
  });
});

describe('the inspector', () => {
  const inspect = (args: string[]) =>
    run('@modelcontextprotocol/inspector/clients/launcher/build/index.js', [
      ...['--cli', `${p.url}/v2/mcp`, '--transport', 'http'],
      ...['--header', `Authorization: Bearer ${p.demo.client.client_secret}`, ...args],
    ]);

  it('D8-06: lists every tool, and its strict check finds no schema that some host would not take', async () => {
    const { tools } = JSON.parse(await inspect(['--method', 'tools/list', '--strict']));
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([...TOOLS.keys()]);
  });

  it('D8-06: calls a tool with arguments', async () => {
    const called = await inspect(['--method', 'tools/call', '--tool-name', 'list_accounts', '--tool-arg', 'limit=3']);
    expect(JSON.parse(called).structuredContent.data).toHaveLength(3);
  });
});

describeReal('python', 'the official Python client', () => {
  it('D8-06: initializes, lists the tools, calls one, and reads what one refuses', async () => {
    const script = join(import.meta.dirname, 'python_agent.py');
    const args = [script, `${p.url}/v2/mcp`];
    const told = JSON.parse(await runCommand(serviceAddress('python'), args, { env: agentEnv() }));
    expect(told).toMatchObject({ server: 'portcullis', protocol: '2025-11-25', tools: [...TOOLS.keys()] });
    expect(told.accounts.data).toHaveLength(2);
    expect(told.refused).toEqual([true, expect.stringContaining('account_id: must be a UUID')]);
  });

  it('D8-06: the example of docs/mcp.md prints accounts', async () => {
    const args = ['-c', documented('python', 'call_tool')];
    expect(await runCommand(serviceAddress('python'), args, { env: agentEnv() })).toContain('Acme Treasury');
  });
});
