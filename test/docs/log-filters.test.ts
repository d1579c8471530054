import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { allPages } from '../support/docs/markdown.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startedDataDir } from '../support/harness.ts';
import { ROOT, startInstance } from '../support/start/process.ts';

interface LogLine {
  level: string;
  msg: string;
  status?: number;
  method?: string;
  path?: string;
  client_id?: string;
  subject?: string;
  reason?: string;
}

const isBad = ({ level }: LogLine) => ['warn', 'error', 'fatal'].includes(level);

/** Which lines of the log each filter in the documentation selects, as its text says. */
const FILTERS: Record<string, (line: LogLine) => boolean> = {
  'select(.level == ("warn", "error", "fatal"))': isBad,
  'select(.status >= 500)': ({ status = 0 }) => status >= 500,
  'select(.msg == "request" and .status < 400 and (.method | IN("GET", "HEAD", "OPTIONS") | not))': ({
    msg,
    method = '',
    status = 0,
  }) => msg === 'request' && status < 400 && !['GET', 'HEAD', 'OPTIONS'].includes(method),
  'select(.client_id and .reason)': ({ client_id, reason }) => client_id !== undefined && reason !== undefined,
  'select(.status == 401 and .subject)': ({ status, subject }) => status === 401 && subject !== undefined,
  'select(.reason == "wrong_secret" or .reason == "expired_secret")': ({ reason }) => reason === 'wrong_secret',
  'select(.path == "/v2/webhooks/custodial" and .status == 401)': ({ path, status }) =>
    path === '/v2/webhooks/custodial' && status === 401,
};
/** Filters that a page names because they do not work any more. */
const FORMER = ['select(.level >= 40)'];

/** Every filter of log lines in the documentation: it asks for a member of a line, and reads no output of a command. */
function documented(): string[] {
  const pages = allPages().map((page) => readFileSync(join(ROOT, page), 'utf8'));
  const filters = pages.flatMap((text) =>
    [...text.matchAll(/(?:`|jq (?:-\w+ )*')(select\(\.[^`']+\))['`]/g)].map(([, filter = '']) => filter),
  );
  return [...new Set(filters)].sort();
}

it('every log filter in the docs is tested here, and selects from a real log what its text says', async () => {
  expect(documented()).toEqual([...Object.keys(FILTERS), ...FORMER].sort());
  await using file = await gatewayFile({ gone: 'http://127.0.0.1:9' }, [
    { methods: ['GET'], path: '/v1/gone', services: ['gone'], visibility: 'public' },
  ]);
  // The embedded database does not keep what AUDIT_SYNC asks for, which is a warning.
  const env = { DATA_DIR: await startedDataDir(), GATEWAY_CONFIG: file.path, AUDIT_SYNC: 'on' };
  await using instance = await startInstance(env);
  for (const path of ['/health', '/nowhere', '/v1/gone']) await fetch(instance.baseUrl + path);
  const { client } = JSON.parse(readFileSync(join(env.DATA_DIR, 'demo.json'), 'utf8'));
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...client });
  await fetch(`${instance.baseUrl}/v2/oauth/token`, { method: 'POST', body });
  const post = (path: string, json: object) =>
    fetch(instance.baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(json),
    });
  await post('/v2/oauth/token', { grant_type: 'client_credentials', ...client, client_secret: 'wrong' });
  await post('/v2/oauth/token', { grant_type: 'password', ...client, username: 'nobody', password: 'wrong' });
  await post('/v2/webhooks/custodial', {});
  await vi.waitFor(() => expect(instance.stdout()).toMatch(/"status":502/));
  const { stdout } = await instance.kill('SIGTERM');
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"level"'));
  const parsed = lines.map((line): LogLine => JSON.parse(line));
  expect(new Set(parsed.map(({ level }) => level))).toEqual(new Set(['info', 'warn', 'error']));
  for (const [filter, isMeant] of Object.entries(FILTERS)) {
    const selected = execFileSync('jq', ['-c', filter], { input: lines.join('\n'), encoding: 'utf8' });
    const meant = parsed.filter(isMeant);
    expect([
      filter,
      selected
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ]).toEqual([filter, meant]);
    expect(meant.length).toBeLessThan(parsed.length);
  }
});
