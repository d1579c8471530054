import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it } from 'vitest';
import { TOOLS } from '../../src/app/tools.ts';
import { inTurn, thoroughly } from '../support/harness/in-turn.ts';
import { usePortcullis } from '../support/harness.ts';
import { connect } from '../support/mcp/agents.ts';
import { secretBearer } from '../support/mcp/secret-bearer.ts';
import { runCommand } from '../support/services/commands.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

const ROOT = join(import.meta.dirname, '../..');
const BASELINE = join(import.meta.dirname, 'conformance.yml');
/** The scenarios that a server without tools for the test can pass, by revision. */
const OURS = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2026-07-28': [
    ...['server-stateless', 'tools-list', 'server-sse-multiple-streams', 'http-header-validation'],
    ...['dns-rebinding-protection', 'caching', 'input-required-result-validate-input'],
    ...['input-required-result-unsupported-methods'],
  ],
};

const p = usePortcullis();

/** Runs a file of a package, in a folder of its own. */
async function run(specifier: string, args: string[]): Promise<string> {
  const path = fileURLToPath(import.meta.resolve(specifier));
  return runCommand(process.execPath, [path, ...args], { cwd: p.dataDir, env: { ...process.env, HOME: p.dataDir } });
}

describe('the MCP conformance suite', () => {
  // In a quick run of the revision that is the latest; the official clients speak both.
  it.each(inTurn(Object.entries(OURS), 2, 1))(
    'D8-06 D8-07: %s passes, except for scenarios that need the test tools of the suite',
    async (revision, ours) => {
      await using front = await secretBearer(p.url, p.demo.client.client_secret);
      const args = ['server', '--url', `${front.url}/v2/mcp`, '--suite', 'all', '--spec-version', revision];
      const suite = '@modelcontextprotocol/conformance/dist/index.js';
      // Exits with an error for what fails without being expected to, and for what is expected to and passes.
      const output = await run(suite, [...args, '--expected-failures', BASELINE]);
      const passed = [...output.matchAll(/^[✓✗] ([\w-]+): ([1-9]\d*) passed, (\d+) failed/gm)].map(([, name]) => name);
      expect(passed).toEqual(expect.arrayContaining(ours));
    },
  );
});

/** A block of docs/mcp.md, for the address of this instance. */
function documented(language: string, containing: string): string {
  const page = readFileSync(join(ROOT, 'docs/mcp.md'), 'utf8');
  const blocks = [...page.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].filter(([, name]) => name === language);
  const found = blocks.map(([, , block = '']) => block).find((block) => block.includes(containing));
  if (found === undefined) throw new Error(`docs/mcp.md has no such ${language}`);
  return found.replaceAll('http://127.0.0.1:4000', p.url);
}

const agentEnv = () => {
  const { client_id, client_secret } = p.demo.client;
  return { ...process.env, CLIENT_ID: client_id, PORTCULLIS_SECRET: client_secret };
};

describe('docs/mcp.md', () => {
  it('D8-06: the example in TypeScript prints accounts', async () => {
    const args = ['--input-type=module-typescript', '-e', documented('ts', 'callTool')];
    expect(await runCommand(process.execPath, args, { cwd: ROOT, env: agentEnv() })).toContain('Acme Treasury');
  });

  it.each(['curl', 'PORTCULLIS_TOKEN'])(
    'D8-06 D8-08: the example with curl and %s prints the client',
    async (bearer) => {
      const told = await runCommand('sh', ['-c', documented('sh', bearer)], { env: agentEnv() });
      expect(JSON.parse(told).result.structuredContent.client_id).toBe(p.demo.client.client_id);
    },
  );

  it('D8-06: the host configurations are JSON with the address and the secret', () => {
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

  it('D8-06: lists every tool, and its strict check rejects no schema', async () => {
    const { tools } = JSON.parse(await inspect(['--method', 'tools/list', '--strict']));
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([...TOOLS.keys()]);
  });

  // In each run the official clients call tools.
  thoroughly('D8-06: calls a tool with arguments', async () => {
    const called = await inspect(['--method', 'tools/call', '--tool-name', 'list_accounts', '--tool-arg', 'limit=3']);
    expect(JSON.parse(called).structuredContent.data).toHaveLength(3);
  });
});

describe('the official TypeScript client', () => {
  it('D8-06: of the first generation initializes, lists the tools and calls one', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    const requestInit = { headers: { Authorization: `Bearer ${p.demo.client.client_secret}` } };
    const transport = new StreamableHTTPClientTransport(new URL(`${p.url}/v2/mcp`), { requestInit });
    // Its members may be undefined, which the interface of its own package does not say.
    await client.connect(transport as Parameters<Client['connect']>[0]);
    expect(client.getServerVersion()).toMatchObject({ name: 'portcullis' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([...TOOLS.keys()]);
    const called = await client.callTool({ name: 'list_accounts', arguments: { limit: 2 } });
    expect(called.structuredContent).toMatchObject({ data: [{}, {}] });
    await client.close();
  });

  it('D8-07: of the second generation speaks 2026-07-28, or 2025-11-25 if configured so', async () => {
    await using agent = await connect(p, p.demo.client.client_secret);
    expect(agent.client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    await using older = await connect(p, p.demo.client.client_secret, {}, 'legacy');
    expect(older.client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    expect(await older.tools()).toEqual(await agent.tools());
    expect(await older.call('list_accounts', { limit: 2 })).toEqual(await agent.call('list_accounts', { limit: 2 }));
  });
});

describeReal('python', 'the official Python client', () => {
  it('D8-06 D8-07: lists the tools, calls one, and reads an error, in each revision it supports', async () => {
    const args = [join(import.meta.dirname, 'python_agent.py'), `${p.url}/v2/mcp`];
    const told: { protocol: string }[] = JSON.parse(
      await runCommand(serviceAddress('python'), args, { env: agentEnv() }),
    );
    for (const answers of told)
      expect(answers).toMatchObject({
        server: 'portcullis',
        tools: [...TOOLS.keys()],
        accounts: { data: [{}, {}] },
        refused: [true, expect.stringContaining('limit: must be')],
      });
    // The client of the first generation speaks no more than the first of them.
    const revisions = told.map(({ protocol }) => protocol);
    expect(['2025-11-25', '2026-07-28'].slice(0, revisions.length)).toEqual(revisions);
  });

  it('D8-06: the example of docs/mcp.md prints accounts', async ({ skip }) => {
    const python = serviceAddress('python');
    const imports = runCommand(python, ['-c', 'from mcp import Client']);
    if (
      !(await imports.then(
        () => true,
        () => false,
      ))
    )
      skip('the client is of the first generation');
    const args = ['-c', documented('python', 'call_tool')];
    expect(await runCommand(python, args, { env: agentEnv() })).toContain('Acme Treasury');
  });
});
