import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { camelName } from '../../src/lib/spelling.ts';
import { PASSWORD } from '../support/graphql/administration.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { type Agent, connect } from '../support/mcp/agents.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { migrationsOf, newUser } from '../support/user-migrations/calls.ts';
import { fileOf, filesOn, work } from '../support/user-migrations/files-fixture.ts';
import { autoTransfer, leaf, limit, rulesOf } from '../support/wallet-rules/rules.ts';

const p = usePortcullis();
let token: string;
let agent: Agent;

beforeAll(async () => {
  token = await p.clientToken();
  agent = await connect(p, p.demo.client.client_secret);
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
});

/** A text of so many characters, of which most are two UTF-16 units and four bytes; no two are the same. */
function wide(characters: number): string {
  const id = randomUUID().slice(0, 8);
  return id + '😀'.repeat(characters - id.length);
}

/** The status of an answer and what it says. */
interface Told {
  ok: boolean;
  text: string;
}

const http = ({ status, text }: Answer): Told => ({ ok: status === 200 || status === 201, text: `${status} ${text}` });
const row = ({ text, json }: Answer): Told => ({ ok: json.success === 1, text });

async function mutation(field: string, type: string, input: object, more = ''): Promise<Told> {
  const query = `mutation($input: ${type}!) { r: ${field}(${more}input: $input) { __typename ... on ValidationError { issues { path message } } } }`;
  const answer = await p.call('POST', '/graphql', { token, json: { query, variables: { input } } });
  const { __typename: name } = answer.json.data.r;
  return { ok: name !== 'ValidationError', text: name === 'ValidationError' ? `400 ${answer.text}` : answer.text };
}

async function tool(name: string, args: object): Promise<Told> {
  const { error, text } = await agent.call(name, args as Record<string, unknown>);
  return { ok: error === undefined, text: error ? `400 ${text}` : text };
}

/** Migrates a file of one user and gives the outcome of its row. */
async function file(member: string, text: string): Promise<Told> {
  const { database, nowMs } = p.service.context;
  const { files, jobs } = filesOn(database.db, { nowMs });
  const caller = { nodeId: p.demo.node_id, subject: 'test', correlationId: 'test' };
  const members = { ...newUser(), [member]: text };
  const csv = `${Object.keys(members).join()}\n${Object.values(members).join()}\n`;
  const { id } = await files.start(caller, fileOf(csv), { lease: () => jobs.lease() });
  await work(jobs);
  const [outcome] = await rows(p).run((k) => k.selectFrom('migration_rows').selectAll().where('migration_id', '=', id));
  return { ok: outcome?.status === 'created', text: outcome?.reason ?? '' };
}

const users = () => migrationsOf(p, token);
const rules = () => rulesOf(p, token);
const camelUser = (member: string, text: string) => {
  const { wallet_address: walletAddress, email } = newUser();
  return { walletAddress, email, [camelName(member)]: text };
};

type Send = (text: string) => Promise<Told>;

function ofUser(member: string): [string, Send][] {
  return [
    ['REST, one user', async (text) => http(await (await users()).one(newUser({ [member]: text })))],
    ['REST, a row of many', async (text) => row(await (await users()).many([newUser({ [member]: text })]))],
    ['GraphQL', (text) => mutation('migrateUser', 'MigrateUserInput', camelUser(member, text))],
    ['a file', (text) => file(member, text)],
  ];
}

const camelRule = (name: string, field = 'balance') => ({
  ...{ name, type: 'auto_transfer', networkId: randomUUID(), networkCurrencyId: randomUUID() },
  autoTransferRule: {
    ...{ type: 'auto', amount: '1', targetWalletId: randomUUID() },
    ruleLogic: leaf({ field }),
  },
});

const createRule = (input: object) =>
  mutation('createWalletRule', 'WalletRuleInput', input, `walletId: "${p.demo.wallet_id}", `);

/** Changes a new rule by a mutation, with a reason. */
async function changed(field: string, change: string, reason: string): Promise<Told> {
  const query = `mutation($id: ID!, $reason: String) { r: ${field}(id: $id, ${change}, reason: $reason) { __typename ... on ValidationError { issues { path message } } } }`;
  const variables = { id: await rules().created(), reason };
  const answer = await p.call('POST', '/graphql', { token, json: { query, variables } });
  const isValid = answer.json.data.r.__typename !== 'ValidationError';
  return { ok: isValid, text: isValid ? answer.text : `400 ${answer.text}` };
}

const CLIENT = { grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] };
const VIEWER = { password: PASSWORD, role: 'viewer' };
const TRANSACTION = { collection: 'TOKEN_TRANSACTIONS', type: 1 };

const TEXTS: [what: string, max: number, ways: [string, Send][]][] = [
  ['email', 512, ofUser('email')],
  ['external_id', 512, ofUser('external_id')],
  ['name', 1_024, ofUser('name')],
  ['surname', 1_024, ofUser('surname')],
  ['wallet_address', 128, ofUser('wallet_address')],
  [
    'the name of a rule',
    1_024,
    [
      ['REST', async (name) => http(await rules().create(limit({ name })))],
      ['REST, replaced', async (name) => http(await rules().replace(await rules().created(), limit({ name })))],
      ['GraphQL', (name) => createRule(camelRule(name))],
      ['MCP', (name) => tool('create_wallet_rule', { wallet_id: p.demo.wallet_id, rule: limit({ name }) })],
    ],
  ],
  [
    'the reason for a change of a rule',
    1_024,
    [
      ['GraphQL', (reason) => changed('setWalletRuleStatus', 'status: DISABLED', reason)],
      [
        'MCP',
        async (reason) => tool('replace_wallet_rule', { rule_id: await rules().created(), rule: limit(), reason }),
      ],
    ],
  ],
  [
    'the field of a condition',
    1_024,
    [
      ['REST', async (field) => http(await rules().create(autoTransfer({}, { rule_logic: leaf({ field }) })))],
      ['GraphQL', (field) => createRule(camelRule('n', field))],
    ],
  ],
  ['the name of a client', 255, [['GraphQL', (name) => mutation('createClient', 'ClientInput', { ...CLIENT, name })]]],
  [
    'a username',
    255,
    [['GraphQL', (username) => mutation('createSupervisor', 'SupervisorInput', { ...VIEWER, username })]],
  ],
  [
    'the id of a transaction',
    128,
    [['GraphQL', (id) => mutation('registerTransaction', 'RegisterTransactionInput', { ...TRANSACTION, id })]],
  ],
];

describe('a text stored for a caller', () => {
  it.each(TEXTS.flatMap(([what, max, ways]) => ways.map(([way, send]) => ({ what, max, way, send }))))(
    'D7-13: $what by $way has at most $max characters, counted as code points',
    async ({ max, send }) => {
      const longest = await send(wide(max));
      expect(longest.text.slice(0, 200), 'as long as it may be').not.toMatch(/^[45]|character/);
      expect(longest.ok, longest.text).toBe(true);
      const longer = await send(wide(max + 1));
      expect(longer.ok).toBe(false);
      expect(longer.text).toMatch(new RegExp(`(?:at most|more than|1 to) ${max} characters`));
    },
  );

  it('D7-13: is truncated where it is not valid: the email of a failed row, the subject of a foreign token', async () => {
    const subject = `${randomUUID()}${'s'.repeat(3_000)}`;
    const claims = { sub: subject, client_id: subject, scope: 'users:migrate wallet-rules:write' };
    const { current: secret } = p.service.context.secrets.jwt.legacy;
    const foreign = signed(p, apiClaims(p, claims), { secret });
    const email = 'e'.repeat(100_000);
    const { json } = await (await migrationsOf(p, foreign)).many([newUser({ email })]);
    expect(json.results[0]).toMatchObject({ email, status: 'failed', reason: 'email has more than 512 characters' });
    await rulesOf(p, foreign).created();
    const cut = subject.slice(0, 1_024);
    const [migration] = await rows(p).run((k) => k.selectFrom('migrations').selectAll().where('created_by', '=', cut));
    const [failed] = await rows(p).run((k) =>
      k
        .selectFrom('migration_rows')
        .selectAll()
        .where('migration_id', '=', migration?.id ?? ''),
    );
    expect(failed?.email).toBe(email.slice(0, 512));
    const versions = await rows(p).run((k) =>
      k.selectFrom('wallet_rule_versions').selectAll().where('subject', '=', cut),
    );
    expect(versions).toMatchObject([{ client_id: cut }]);
  });
});
