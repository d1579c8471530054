import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, inject, it } from 'vitest';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { startedDataDir, startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { startInstance } from '../support/start/process.ts';

const SHADOW_DISK = new URL('../support/audit/shadow-disk.ts', import.meta.url).href;
const ANSWERS = inject('isThorough') ? 160 : 80;
const CALLERS = 16;
/** A body whose record fills a segment with few others, so that segments change. */
const LONG = 'x'.repeat(60_000);

afterEach(closeSockets);

it('D1-18: with AUDIT_SYNC=on, the disk has the record of each received response when the machine loses power', async () => {
  await using disk = await emptyFolder();
  await using shadow = await emptyFolder();
  const dataDir = await startedDataDir();
  const env = {
    DATA_DIR: dataDir,
    AUDIT_SYNC: 'on',
    AUDIT_SPOOL_DIR: disk.path,
    SHADOW_FROM: disk.path,
    SHADOW_TO: shadow.path,
  };
  const isOnDisk = (id: string) =>
    readdirSync(shadow.path).some((name) => readFileSync(join(shadow.path, name)).includes(id));
  const answered: string[] = [];
  {
    await using instance = await startInstance(env, ['--import', SHADOW_DISK]);
    const { baseUrl: url } = instance;
    const { client } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'));
    const tokenRequest = (id: string) => ({
      method: 'POST',
      headers: { 'x-correlation-id': id, 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
    });
    const tokens = await (await fetch(`${url}/v2/oauth/token`, tokenRequest('first'))).json();
    const kinds: ((id: string) => [path: string, init: RequestInit])[] = [
      (id) => ['/health', { headers: { 'x-correlation-id': id } }],
      (id) => ['/nowhere', { headers: { 'x-correlation-id': id } }],
      (id) => ['/v2/oauth/token', tokenRequest(id)],
      (id) => [
        '/v1/accounts?limit=100',
        { headers: { 'x-correlation-id': id, authorization: `Bearer ${tokens.access_token}` } },
      ],
      (id) => ['/v1/wallets/1/rules', { ...tokenRequest(id), body: JSON.stringify({ name: LONG }) }],
    ];
    const caller = async (at: number) => {
      while (answered.length < ANSWERS) {
        const id = randomUUID();
        const [path, init] = kinds[(at + answered.length) % kinds.length]?.(id) ?? ['', {}];
        await (await fetch(url + path, init)).arrayBuffer();
        expect([path, isOnDisk(id)]).toEqual([path, true]);
        answered.push(id);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, (_, at) => caller(at)));
    const id = randomUUID();
    const socket = await openSocket({ url }, tokens.access_token, { headers: { 'x-correlation-id': id } });
    const messages = await socket.messagesOf({ query: '{ __typename }' });
    expect(messages.map(({ type }) => type)).toEqual(['next', 'complete']);
    expect(isOnDisk(id)).toBe(true);
    answered.push(id);
    await instance.kill('SIGKILL');
  }
  await using next = await startPortcullis({ env: { AUDIT_SPOOL_DIR: shadow.path } });
  await next.service.context.auditWriter.flush();
  const stored = await rows(next).run((k) => k.selectFrom('audit_records').select('correlation_id'));
  const ids = new Set(stored.map(({ correlation_id }) => correlation_id));
  expect(answered.filter((one) => !ids.has(one))).toEqual([]);
});
