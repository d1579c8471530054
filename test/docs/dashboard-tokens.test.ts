import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { type Block, blocksOf } from '../support/docs/markdown.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { logged, notify } from '../support/realtime/live.ts';
import { ROOT } from '../support/start/process.ts';

const TOKEN_SECONDS = 3;
/** At the least. */
const EVENTS = 10;
const BLOCKS = blocksOf('docs/quickstart/dashboard.md').filter(({ lang }) => lang === 'js');
const FILES = BLOCKS.filter(({ info }) => info !== '');
const PROGRAMS = BLOCKS.filter(({ info }) => info === '');
/** Those that print each event come first. */
const PRINTING = 3;
const STARTED = PROGRAMS.slice(0, inject('isThorough') ? PROGRAMS.length : PRINTING);

const p = usePortcullis();
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-dashboard-'));
  for (const name of ['node_modules', 'schema']) await symlink(join(ROOT, name), join(folder, name));
  for (const { info, text: source } of FILES) await writeFile(join(folder, info), source);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Runs a program of the page until it ends. Returns what it has printed. */
async function run({ text: source }: Block, index: number, env: Record<string, string>): Promise<string> {
  const file = join(folder, `program-${index}.mjs`);
  await writeFile(file, source);
  const child = spawn(process.execPath, [file], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [printed, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  expect([code, errors]).toEqual([0, '']);
  return printed;
}

it(`DG-15 D6-10: the programs of the dashboard quickstart receive each event once, across tokens of ${TOKEN_SECONDS} s`, async () => {
  const { credentials } = await createdClient(p, await p.clientToken(), {
    grantTypes: ['CLIENT_CREDENTIALS'],
    scopes: ['transactions:read', 'accounts:read'],
    tokenExpiry: { enabled: true, duration: TOKEN_SECONDS },
  });
  const { PATH = '' } = process.env;
  const watching = vi.spyOn(p.service.context.watch, 'watch');
  const env = {
    PATH,
    NODE_OPTIONS: '--conditions=@portcullis/source',
    GRAPHQL_URL: `${p.url}/graphql`,
    TOKEN_URL: `${p.url}/v2/oauth/token`,
    CLIENT: `${credentials.client_id}:${credentials.client_secret}`,
  };
  const running = STARTED.map((program, index) => run(program, index, env));
  // One that waits for the others may have had several tokens by then.
  const { streams } = p.service.context;
  await vi.waitFor(() => expect(streams.load.streams).toBe(STARTED.length));
  watching.mockClear();
  const { node_transactions: id } = p.demo.transactions;
  // More events come until each program has had three tokens, or more of them.
  for (let second = 0; second < EVENTS || watching.mock.calls.length < 2 * STARTED.length; second += 1) {
    await notify(p, id, 2, {
      updated_at: new Date(Date.UTC(2026, 10, 21) + second * 1_000).toISOString(),
      transaction_hash: `0x${second}`,
    });
    // A program that fails ends the test.
    await Promise.race([delay(200), ...running]);
  }
  await notify(p, id, 3);
  const printed = await Promise.all(running);
  const cursors = await logged(p);
  expect(cursors.length).toBeGreaterThan(EVENTS);
  for (const lines of printed.slice(0, PRINTING)) {
    const told = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).cursor);
    expect(told).toEqual(cursors);
  }
});
