import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  CreateSupervisorDocument,
  SetSupervisorPasswordDocument,
  SupervisorsDocument,
  UnlockSupervisorDocument,
} from '../graphql/generated/graphql.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { createdSupervisor, grantStatus, operate } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

/** Spellings of one text by different keyboards and systems; the first is NFC. */
const TEXTS: [name: string, composed: string, other: string][] = [
  ['ü of a Mac', 'jürgen schäfer', 'ju\u0308rgen scha\u0308fer'],
  ['the sign Ångström', '\u00c5ngström', '\u212bngstro\u0308m'],
  ['Hangul in letters', '한국어비밀번호', '한국어비밀번호'.normalize('NFD')],
  ['Vietnamese with its marks in another order', 'mật khẩu ệ', 'mâ\u0323t khâ\u0309u e\u0302\u0323'],
  ['Japanese with a voiced mark', 'パスワードが', 'ハ\u309aスワート\u3099か\u3099'],
  ['the Greek question mark', 'κωδικό;', 'κωδικο\u0301\u037e'],
];

const status = (username: string, password: string) =>
  grantStatus(p, { grant_type: 'password', ...p.demo.client, username, password });

function named(text: string): string {
  return `${text} ${randomUUID()}`;
}

async function lockedUntil(id: string) {
  const { supervisors } = await operate(p, token, SupervisorsDocument, { first: 100 });
  return supervisors.edges.find(({ node }) => node.id === id)?.node.lockedUntil;
}

describe('D3-35: usernames are compared by one key, and passwords in NFC', () => {
  it.each(TEXTS)(
    '%s: a supervisor created with one spelling can sign in with the other',
    async (_name, composed, other) => {
      expect([other.normalize(), composed.normalize()]).toEqual([composed, composed]);
      for (const [set, typed] of [
        [composed, other],
        [other, composed],
      ] as const) {
        const id = randomUUID();
        const supervisor = await createdSupervisor(p, token, { username: `${set} ${id}`, password: `${set} 1234` });
        expect(supervisor.username).toBe(`${set} ${id}`);
        expect(await status(`${typed} ${id}`, `${typed} 1234`)).toBe(200);
      }
    },
  );

  it('a form body is compared as a JSON body is', async () => {
    const username = named('jürgen');
    await createdSupervisor(p, token, { username, password: 'schlüssel' });
    const given = { grant_type: 'password', ...p.demo.client, username, password: 'schlüssel' };
    const body = new URLSearchParams(given).toString();
    const decomposed = new URLSearchParams({
      ...given,
      username: username.normalize('NFD'),
      password: 'schlu\u0308ssel',
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const form of [body, decomposed.toString()]) {
      expect((await p.call('POST', '/v2/oauth/token', { body: form, headers })).status).toBe(200);
    }
  });

  it('setSupervisorPassword accepts either normalization form, and compatibility letters stay different', async () => {
    const username = named('zoë');
    const { id } = await createdSupervisor(p, token, { username });
    const password = 'o\u0301ffice\ufb01le';
    await operate(p, token, SetSupervisorPasswordDocument, { id, password });
    expect(await status(username, '\u00f3ffice\ufb01le')).toBe(200);
    expect(await status(username, '\u00f3fficefile')).toBe(401);
  });

  it('a username is unique within the tenant in any normalization form and letter case', async () => {
    const username = named('Ängström');
    await createdSupervisor(p, token, { username });
    for (const taken of [username.normalize('NFD'), username.toUpperCase().normalize('NFD'), username.toLowerCase()]) {
      const input = { username: taken, password: 'correct horse', role: 'viewer' };
      const { result } = await operate(p, token, CreateSupervisorDocument, { input });
      expect(result).toMatchObject({ __typename: 'DuplicateError', reason: 'duplicate_username' });
    }
  });

  it('a username is measured as sent, and a password after composition', async () => {
    const id = randomUUID();
    const username = `${'ü'.repeat(255 - id.length)}${id}`;
    await createdSupervisor(p, token, {
      username,
      password: 'ü'.repeat(1_024).normalize('NFD'),
    });
    expect(await status(username.normalize('NFD'), 'ü'.repeat(1_024))).toBe(200);
    const input = { username: named('kurz'), password: 'ü'.repeat(7).normalize('NFD'), role: 'viewer' };
    const { result } = await operate(p, token, CreateSupervisorDocument, { input });
    expect(result).toMatchObject({ __typename: 'ValidationError', issues: [{ path: ['password'] }] });
  });

  it.each([
    ['a trailing blank', 'bob', 'bob '],
    ['blanks around', ' bob\u00a0', 'bob'],
    ['a zero-width space', 'bob', '\u200bb\u200bob'],
    ['marks of bidirectional text', 'bob', '\u202abob\u202c\u200e'],
    ['a soft hyphen', 'bob', 'bo\u00adb'],
    ['a zero-width non-joiner', 'می\u200cخواهم', 'میخواهم'],
    ['a final sigma', 'ΓΙΑΝΝΗΣ', 'γιαννης'],
    ['the Kelvin sign', '\u212aate', 'kate'],
  ])(
    'D3-17: %s does not make a different username: it signs in, is taken and shares one lockout',
    async (_name, stored, typed) => {
      const id = randomUUID();
      const spelt = (name: string) => name.replace(/^(\s*)(.*?)(\s*)$/su, `$1$2-${id}$3`);
      const supervisor = await createdSupervisor(p, token, { username: spelt(stored), password: 'correct horse' });
      expect(supervisor.username).toBe(spelt(stored).trim());
      expect(await status(spelt(typed), 'correct horse')).toBe(200);
      const input = { username: spelt(typed), password: 'correct horse', role: 'viewer' };
      const { result } = await operate(p, token, CreateSupervisorDocument, { input });
      expect(result).toMatchObject({ __typename: 'DuplicateError', reason: 'duplicate_username' });
      for (const name of [stored, typed, stored, typed, stored]) expect(await status(spelt(name), 'wrong')).toBe(401);
      expect(await status(spelt(typed), 'correct horse')).toBe(401);
      await operate(p, token, UnlockSupervisorDocument, { id: supervisor.id });
      expect(await status(spelt(stored), 'correct horse')).toBe(200);
    },
  );

  it('a username without a visible character is empty', async () => {
    for (const username of [' ', '\u200b', '\u00ad \u3164']) {
      const input = { username, password: 'correct horse', role: 'viewer' };
      const { result } = await operate(p, token, CreateSupervisorDocument, { input });
      expect(result).toMatchObject({
        __typename: 'ValidationError',
        issues: [{ path: ['username'], message: 'must not be empty' }],
      });
    }
  });

  it('D3-17: failures in any normalization form and letter case count for one lockout, which one unlock ends', async () => {
    const username = named('Jürgen');
    const { id } = await createdSupervisor(p, token, { username, password: 'correct horse' });
    const spellings = [username, username.normalize('NFD'), username.toUpperCase().normalize('NFD')];
    for (const spelling of [...spellings, ...spellings.slice(1)]) expect(await status(spelling, 'wrong')).toBe(401);
    for (const spelling of spellings) expect(await status(spelling, 'correct horse')).toBe(401);
    expect(await lockedUntil(id)).not.toBeNull();
    await operate(p, token, UnlockSupervisorDocument, { id });
    expect(await lockedUntil(id)).toBeNull();
    for (const spelling of spellings) expect(await status(spelling, 'correct horse')).toBe(200);
  });

  it('D3-17: failures of an unknown username are stored under one form', async () => {
    const username = named('Nöbody');
    for (const spelling of [username, username.normalize('NFD'), username.toUpperCase(), username, username]) {
      expect(await status(spelling, 'wrong')).toBe(401);
    }
    const found = await rows(p).run((k) =>
      k
        .selectFrom('login_failures')
        .select('username')
        .where('username', 'like', `%${username.slice(-36)}`),
    );
    expect(found).toEqual(Array(5).fill({ username: username.toLowerCase() }));
  });
});

describeReal('postgres', 'D3-35 D1-12: usernames and passwords of the command line', () => {
  it('are accepted from flags and standard input in any normalization form', async () => {
    const env = { DATA_DIR: p.dataDir, DATABASE_URL: p.env.DATABASE_URL ?? '' };
    const run = (args: string[], line: string) => portcullis(['supervisor', ...args, '--json'], env, line);
    const username = named('jürgen');
    const flags = ['--node', p.demo.node_id, '--role', 'viewer', '--username', username.normalize('NFD')];
    const created = await run(['create', ...flags], 'schlu\u0308ssel');
    expect(JSON.parse(created.out)).toMatchObject({ username: username.normalize('NFD') });
    expect(await status(username, 'schlüssel')).toBe(200);
    const { id } = JSON.parse(created.out);
    await run(['set-password', id], 'o\u0308ffentlich');
    expect(await status(username.normalize('NFD'), 'öffentlich')).toBe(200);
  });
});
