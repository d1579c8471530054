import { beforeAll, describe, expect, it } from 'vitest';
import type { Log } from '../../src/lib/log.ts';
import { recordOf } from '../support/audit/records.ts';
import { createdClient, createdSupervisor } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';

const lines: string[] = [];
const keep = (fields: object, message: string) => void lines.push(text({ ...fields, message }));
const log: Log = { debug: keep, info: keep, warn: keep, error: keep };
const p = beforeTests(() => startPortcullis({ overrides: { log } }));
let token: string;
let clientId: string;
let supervisorId: string;

beforeAll(async () => {
  token = await p.clientToken();
  clientId = (await createdClient(p, token)).client.id;
  supervisorId = (await createdSupervisor(p, token, { username: 'grace' })).id;
});

/** All that can be said of a value, what hides in an error included. */
function text(value: unknown): string {
  return JSON.stringify(value, (_name, member) =>
    member instanceof Error ? { ...member, message: member.message, stack: member.stack, cause: member.cause } : member,
  );
}

let sent = 0;

/** Every log line and every record there is after the operation, with its answer. */
async function traceOf(query: string, variables?: object) {
  sent += 1;
  const correlationId = `secret-${sent}`;
  const headers = { 'x-correlation-id': correlationId };
  const { json } = await p.call('POST', '/graphql', { token, headers, json: { query, variables } });
  const record = await recordOf(p, correlationId);
  const tables = await Promise.all([
    rows(p).run((k) => k.selectFrom('audit_records').selectAll()),
    rows(p).run((k) => k.selectFrom('clients').selectAll()),
    rows(p).run((k) => k.selectFrom('client_secrets').selectAll()),
    rows(p).run((k) => k.selectFrom('supervisors').selectAll()),
    rows(p).run((k) => k.selectFrom('access_changes').selectAll()),
  ]);
  return { json, record, trace: [...lines, ...tables.map(text)].join('\n') };
}

const INPUT = '{name: "Trader", grantTypes: [CLIENT_CREDENTIALS], scopes: []}';

describe('the secret of a client', () => {
  it.each([
    ['created', () => `mutation { it: createClient(input: ${INPUT}) { ... on CreatedClient { clientSecret } } }`],
    [
      'created, under another name',
      () => `mutation { it: createClient(input: ${INPUT}) { ... on CreatedClient { name: clientSecret } } }`,
    ],
    [
      'rotated',
      () => `mutation { it: rotateClientSecret(id: "${clientId}") { ... on CreatedClient { clientSecret } } }`,
    ],
  ])('D3-06: is returned once and appears in no log line, record or table: %s', async (_name, query) => {
    const { json, record, trace } = await traceOf(query());
    const { clientSecret, name } = json.data.it;
    const secret = clientSecret ?? name;
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(record.status_code).toBe(200);
    expect(record.request_body).toContain('mutation');
    expect(record.response_body).toContain('"data"');
    expect(trace).not.toContain(secret);
  });

  it('D3-06: is not a field of a client, which has only the expiry of the previous secret', async () => {
    const { json } = await p.call('POST', '/graphql', {
      token,
      json: { query: '{ __type(name: "Client") { fields { name } } }' },
    });
    const names: string[] = json.data.__type.fields.map(({ name }: { name: string }) => name);
    expect(names.filter((name) => /secret|hash/i.test(name))).toEqual(['previousSecretExpiresAt']);
  });
});

const SECRET = 'Tr0ub4dor and three more';

describe('the password of a supervisor', () => {
  const created = (password: string) =>
    `mutation { createSupervisor(input: {username: "grace", password: "${password}", role: "viewer"}) { __typename } }`;
  it.each([
    [
      'literally',
      () => [`mutation { setSupervisorPassword(id: "${supervisorId}", password: "${SECRET}") { __typename } }`],
    ],
    [
      'in a variable of another name',
      () => [
        `mutation ($it: String!) { setSupervisorPassword(id: "${supervisorId}", password: $it) { __typename } }`,
        { it: SECRET },
      ],
    ],
    [
      'in an input that is a variable',
      () => [
        'mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename } }',
        { input: { username: 'ada', password: SECRET, role: 'viewer' } },
      ],
    ],
    ['where the name is taken', () => [created(SECRET)]],
    ['where it is too long', () => [created(SECRET.repeat(50))]],
    [
      'where it is no string',
      () => [`mutation { setSupervisorPassword(id: "x", password: ["${SECRET}"]) { __typename } }`],
    ],
  ] as [string, () => [string, object?]][])(
    'D3-26: appears in no log line, record or table when it is sent %s',
    async (_name, sending) => {
      const { trace } = await traceOf(...sending());
      expect(trace).not.toContain(SECRET);
    },
  );
});
