import { once } from 'node:events';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { MigrationProgressRow } from '../../src/features/user-migrations/migration-files.service.ts';
import { ProgressFeeds, ProgressStream } from '../../src/features/user-migrations/progress-feeds.service.ts';
import { type Fixture, startFixture, until } from '../support/graphql/fixture.ts';
import { openSocket, rawSocket } from '../support/graphql/sockets.ts';

const SOCKETS = 12;
const PROGRESS = 'subscription { migrationProgress(id: "m") { processed } }';

const times = { created_at: '2026-11-21', finished_at: null };
const migration = { id: 'm', node_id: 'n', status: 'running', total: 1, success: 0, skipped: 0, failed: 0 } as const;
const row: MigrationProgressRow = {
  ...{
    migration: { ...migration, dry_run: false, file_name: null, created_by: 'somebody', ...times },
    processed: 0,
    total: 1,
    done: false,
  },
};

let ended = 0;
// Later than what other files of this process have done.
let nowMs = performance.now() + 1e6;
let fixture: Fixture;
beforeAll(async () => {
  // The end of a subscription takes 6 ms.
  const onEnd = () => {
    ended += 1;
    nowMs += 6;
  };
  const migrationProgress = new ProgressFeeds({ progress: async () => row, onError: onEnd });
  migrationProgress.follow = async () => new ProgressStream(row, onEnd);
  fixture = await startFixture({ services: { migrationProgress } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

async function subscribed(): Promise<WebSocket> {
  const { socket, subscribe } = await openSocket(fixture, fixture.token);
  subscribe('1', PROGRESS);
  const [told] = await once(socket, 'message');
  expect(JSON.parse(String(told))).toMatchObject({ type: 'next' });
  return socket;
}

it('D6-24: sockets whose clients leave together are closed in turns, not in one block of the event loop', async () => {
  const sockets = await Promise.all(Array.from({ length: SOCKETS }, subscribed));
  const ticks = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  for (const socket of sockets) socket.terminate();
  let most = 0;
  for (let seen = 0; seen < SOCKETS; ) {
    await nextIteration();
    most = Math.max(most, ended - seen);
    seen = ended;
  }
  ticks.mockRestore();
  await until(() => ended === SOCKETS);
  expect(most).toBeLessThanOrEqual(2);
});

it('D6-24: a socket is closed once, however many invalid messages it sent', async () => {
  const { socket, closed } = await rawSocket(fixture);
  const close = vi.spyOn(WebSocket.prototype, 'close');
  for (let at = 0; at < 100; at += 1) socket.send('no message');
  const [code] = await closed;
  const calls = close.mock.contexts.filter((closing) => closing !== socket).length;
  close.mockRestore();
  expect([code, calls]).toEqual([4400, 1]);
});
