import { expect, it, vi } from 'vitest';
import { startIdleStand } from '../support/gateway/idle-stand.ts';
import { request, sendRaw, type Watched, watched } from '../support/gateway/raw.ts';

const NEVER_MS = 600_000;
const TIMES = { headMs: 500, idleMs: NEVER_MS, checkEveryMs: 50 };
const CONNECTIONS = 200;
const A_BYTE_EVERY_MS = 20;
const HEAD = `GET /x HTTP/1.1\r\nHost: a\r\nX-Filler: ${'x'.repeat(10_000)}`;
/** The refusal says that nothing may follow. */
const REFUSED = /^HTTP\/1\.1 4(?:00|08) [\s\S]*\r\nConnection: close\r\n/;

/** Sends a head a byte at a time, until the connection ends. */
function drip({ socket, isOpen }: Watched): void {
  let at = 0;
  const timer = setInterval(() => {
    if (isOpen() && socket.writable) socket.write(HEAD[at++ % HEAD.length] ?? 'x');
    else clearInterval(timer);
  }, A_BYTE_EVERY_MS);
}

async function ended(all: readonly Watched[]): Promise<void> {
  await vi.waitFor(() => expect(all.filter(({ isOpen }) => isOpen())).toHaveLength(0));
}

it('D2-13: heads that come a byte at a time are refused once their time is over, and others are answered meanwhile', async () => {
  await using stand = await startIdleStand(TIMES);
  const slow = Array.from({ length: CONNECTIONS }, () => watched(stand.url));
  for (const one of slow) drip(one);
  const statuses: number[] = [];
  while (slow.some(({ isOpen }) => isOpen())) {
    statuses.push((await sendRaw(stand.url, request('GET', '/x'))).status);
  }
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (const { text } of slow) expect(text()).toMatch(REFUSED);
  // What is no request has no record.
  expect(stand.ended).toEqual(statuses);
});

it('D2-13: a connection on which nothing ever comes is ended, too', async () => {
  await using stand = await startIdleStand(TIMES);
  const silent = Array.from({ length: CONNECTIONS }, () => watched(stand.url));
  await ended(silent);
  for (const { text } of silent) expect(text()).toMatch(REFUSED);
});

it('D2-13: the second head of a connection has as long as the first, however long the connection was idle', async () => {
  await using stand = await startIdleStand(TIMES);
  const kept = watched(stand.url);
  const ask = request('GET', '/x', { Connection: 'keep-alive' });
  kept.socket.write(ask);
  await vi.waitFor(() => expect(kept.text()).toMatch(/ok$/));
  // One that came later and says nothing has had its time.
  await ended([watched(stand.url)]);
  expect(kept.isOpen()).toBe(true);
  kept.socket.write(ask);
  await vi.waitFor(() => expect(kept.text().match(/HTTP\/1\.1 200/g)).toHaveLength(2));
  drip(kept);
  await ended([kept]);
  expect(kept.text().slice(kept.text().lastIndexOf('HTTP/1.1'))).toMatch(REFUSED);
});
