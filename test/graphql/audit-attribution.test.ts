import { beforeAll, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';

const p = usePortcullis();
const PASSWORD = 'right horse battery';
const TYPED = 'a password in the field of the username';

let token: string;
let person: { id: string; username: string };

const login = (username: string, password: string) =>
  p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...p.demo.client, username, password } });

async function list(filter: object) {
  await p.service.context.auditWriter.flush();
  const query = `query ($filter: AuditFilter) {
    auditRecords(first: 50, filter: $filter) { edges { node { subject clientId statusCode headers } } }
  }`;
  const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { filter } } });
  expect(json.errors).toBeUndefined();
  return json.data.auditRecords.edges.map(({ node }: { node: Record<string, unknown> }) => node);
}

beforeAll(async () => {
  token = await p.loginToken();
  person = await addSupervisor(p, PASSWORD);
  await login(person.username.toUpperCase(), 'wrong');
  await login(person.username, PASSWORD);
  for (const typed of [TYPED, TYPED.toUpperCase(), 'another name']) await login(typed, 'wrong');
});

it('D8-15: lists the attempts at a supervisor, failed and successful, by its id', async () => {
  const { client_id: clientId } = p.demo.client;
  const of = { subject: person.id, clientId };
  expect(await list({ subject: person.id })).toEqual([
    { ...of, statusCode: 200, headers: expect.not.objectContaining({ ':reason': expect.anything() }) },
    { ...of, statusCode: 401, headers: expect.objectContaining({ ':reason': 'wrong_password' }) },
  ]);
  expect(await list({ subject: person.id, statusClass: 4 })).toHaveLength(1);
});

it('D8-15: the record of the attempt that locks a username, and of those while it is locked, says until when', async () => {
  const { id, username } = await addSupervisor(p, PASSWORD);
  for (const password of ['1', '2', '3', '4', '5', PASSWORD]) await login(username, password);
  const ends = (await list({ subject: id })).map(({ headers }: { headers: Record<string, string> }) => [
    headers[':reason'],
    headers[':locked-until'],
  ]);
  const [[, end]] = ends;
  expect(ends).toEqual([
    ['locked', end],
    ['wrong_password', end],
    ...Array.from({ length: 4 }, () => ['wrong_password', undefined]),
  ]);
  const until = await p.service.context.locks.lockedUntil(p.demo.node_id, [username], null);
  expect(Date.parse(end)).toBe(until.get(username));
});

it('D8-15: lists the attempts at a name that does not exist by its hash, which has nothing of the name', async () => {
  const all = await list({ path: '/v2/oauth/token', statusCode: 401 });
  const unknown = all.filter(({ subject }: { subject: string }) => subject.startsWith('unknown:'));
  expect(unknown).toHaveLength(3);
  const [, second, first] = unknown;
  expect(second.subject).toBe(first.subject);
  expect(await list({ subject: first.subject })).toEqual([second, first]);
  expect(JSON.stringify(all).toLowerCase()).not.toContain(TYPED);
});
