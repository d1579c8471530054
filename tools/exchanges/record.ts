import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fakeNode } from '../../test/support/gas-fee/node.ts';
import { uncovered } from './coverage.ts';
import { graphqlCases } from './graphql-cases.ts';
import { echo, startInstance } from './instance.ts';
import { mcpCases } from './mcp-cases.ts';
import { Names } from './normalise.ts';
import { loginOf, oauthCases, tokenOf, webhookCases } from './oauth-cases.ts';
import { Recorder } from './recorder.ts';
import { EVERY, remoteCases } from './remote-cases.ts';
import { restCases, wireCases } from './rest-cases.ts';
import { keepAdmin, keepLog, keepMetrics, keepRows } from './sections.ts';
import { CONSOLE, DEMO, fixedId } from './values.ts';

const { values } = parseArgs({
  options: {
    of: { type: 'string', default: join(import.meta.dirname, '../..') },
    out: { type: 'string', default: 'exchanges.ndjson' },
  },
});
const project = resolve(values.of);
/** The certificate of a client that must show one. */
const FINGERPRINT = 'ab'.repeat(32);
const begunMs = Date.now();

const local = await localRecording();
const remote = await remoteRecording();
const lines = [...local.lines, ...remote.lines].map((line) => `${JSON.stringify(line)}\n`);
writeFileSync(values.out, lines.join(''));
process.stdout.write(uncovered([local, remote]));
process.stdout.write(`${lines.length} lines in ${values.out} after ${Math.round((Date.now() - begunMs) / 1000)} s\n`);

/** Everything in one process, as an embedded instance comes. */
async function localRecording(): Promise<Recorder> {
  await using node = await fakeNode();
  using upstream = await echo();
  await using instance = await startInstance(project, {
    CORS_ORIGINS: CONSOLE,
    GAS_RPC_URLS: `${fixedId(51)}=${node.url},${fixedId(52)}=http://127.0.0.1:1`,
    DISCOVERS_UPSTREAM_URL: upstream.url,
    GRAPHQL_PERSISTED: 'allow',
  });
  const r = new Recorder(instance.url, new Names());
  const [token, login] = [await tokenOf(r, 'the token', DEMO.client), await loginOf(r, 'the login')];
  const made = async (name: string, input: string) => {
    const query = `mutation { createClient(input: { name: "${name}", grantTypes: [CLIENT_CREDENTIALS, PASSWORD, REFRESH_TOKEN], ${input} }) { ... on CreatedClient { client { id } clientSecret } } }`;
    const { json } = await r.graphql(`create the ${name} client`, query, { token });
    const { client, clientSecret } = json.data.createClient;
    if (!client) throw new Error(`no ${name} client: ${JSON.stringify(json)}`);
    return { client_id: client.id as string, client_secret: clientSecret as string };
  };
  const poorClient = await made('poor', 'scopes: []');
  const limited = await made(
    'limited',
    `scopes: ${JSON.stringify(EVERY.split(' '))}, rateLimit: { requestsPerMinute: 3 }, monthlyLimit: 50`,
  );
  const elsewhere = await made('distant', 'scopes: ["accounts:read"], allowedIps: ["203.0.113.7"]');
  const certified = await made(
    'certified',
    `scopes: ["accounts:read"], requireCertificate: true, certFingerprint: "${FINGERPRINT}"`,
  );
  const poor = await tokenOf(r, 'the poor token', poorClient);
  const neighbour = await tokenOf(r, 'the token of the neighbour', DEMO.other_node.client);
  const callers = { token, login, poor, neighbour, poorSecret: poorClient.client_secret, limited };
  await guards(r, { elsewhere, certified });
  await restCases(r, callers);
  await wireCases(r, callers);
  await webhookCases(r, callers);
  await oauthCases(r, callers);
  await mcpCases(r, callers);
  await graphqlCases(r, callers);
  await keepAdmin(r, instance);
  await keepMetrics(r, instance);
  keepLog(r, await instance.stop());
  await keepRows(r, instance);
  return r;
}

type Credentials = { client_id: string; client_secret: string };

/** What a client's address and certificate decide, wherever its credentials are used. */
async function guards(r: Recorder, clients: Record<string, Credentials>): Promise<void> {
  for (const [what, client] of Object.entries(clients)) {
    for (const path of ['/v2/oauth/token', '/v2/oauth/revoke', '/v2/oauth/introspect']) {
      const json = { grant_type: 'client_credentials', token: 'x', ...client };
      await r.call(`${path} of a ${what} client`, 'POST', path, { json });
      await r.call(`${path} of a ${what} client from its place`, 'POST', path, {
        json,
        headers: {
          'x-forwarded-for': '203.0.113.7',
          'ssl-client-verify': 'SUCCESS',
          'ssl-client-fingerprint': FINGERPRINT,
        },
      });
    }
    for (const path of ['/v2/mcp', '/v2/mcp/x']) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        await r.call(`${method} ${path} of a ${what} client`, method, path, {
          token: client.client_secret,
          ...(method === 'POST' && { json: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
        });
      }
    }
  }
}

/** The same table with its services elsewhere: first they answer, then they are away. */
async function remoteRecording(): Promise<Recorder> {
  using upstream = await echo();
  const table = readFileSync(join(project, 'gateway.yaml'), 'utf8');
  const file = join(tmpdir(), `portcullis-exchanges-${process.pid}.yaml`);
  writeFileSync(file, table.replaceAll(/^( {2}[a-z-]+): local$/gm, `$1: ${upstream.url}`));
  await using instance = await startInstance(project, { GATEWAY_CONFIG: file, WEBHOOK_SIGNATURE: 'required' });
  const r = new Recorder(instance.url, new Names(), 'remote ');
  await remoteCases(r, upstream);
  await keepMetrics(r, instance);
  keepLog(r, await instance.stop());
  await keepRows(r, instance);
  rmSync(file);
  return r;
}
