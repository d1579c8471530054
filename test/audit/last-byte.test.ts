import type { ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { compileTrust, cors } from '../../src/gateway/exchange/request-head.ts';
import { Gateway, ingress } from '../../src/gateway/gateway.ts';
import { silentLog } from '../../src/lib/log.ts';
import { MemoryAccounts } from '../../src/platform/held-memory.ts';
import { listening } from '../support/gateway/forwarder.ts';
import { request, sendRaw, watched } from '../support/gateway/raw.ts';

const BODY = `${'x'.repeat(100_000)}!`;
const LENGTH = { 'content-length': BODY.length };

/** The ways in which an answer can be written. */
const ways: [string, (res: ServerResponse) => unknown][] = [
  ['at once', (res) => res.end(BODY)],
  ['with a length at once', (res) => res.writeHead(200, LENGTH).end(BODY)],
  [
    'with a length, before its end',
    (res) => {
      res.writeHead(200, LENGTH).write(BODY);
      res.end();
    },
  ],
  [
    'with a length, in pieces',
    (res) => {
      res.writeHead(200, LENGTH).write(BODY.slice(0, 70_000));
      res.write(Buffer.from(BODY.slice(70_000)));
      res.end();
    },
  ],
  [
    'with a length header, and its end some iterations later',
    async (res) => {
      res.setHeader('Content-Length', BODY.length);
      res.write(BODY);
      for (let turns = 0; turns < 5; turns += 1) await turn();
      res.end();
    },
  ],
  [
    'in chunks',
    (res) => {
      res.write(BODY);
      res.end();
    },
  ],
];

it.each(ways)('D2-07: a response written %s is complete only after its record is stored', async (_way, write) => {
  const pending: (() => void)[] = [];
  const onEnd = ({ req }: Exchange, _aborted: boolean, kept: () => void) => {
    if (req.url === '/other') kept();
    else pending.push(kept);
  };
  const capture = (exchange: Exchange) =>
    exchange.audit.capture.install((aborted, kept) => onEnd(exchange, aborted, kept));
  const gateway = new Gateway({
    memory: new MemoryAccounts(),
    chain: [capture, ({ req, res }) => void (req.url === '/other' ? res.end() : write(res))],
    trusts: compileTrust([]),
    cors: cors(['*']),
    isAuditFull: () => false,
    onEnd,
    withContext: (_exchange, run) => run(),
    onClosed: () => undefined,
    onUnparsed: (_unparsed, kept) => kept(),
    log: silentLog,
  });
  const server = ingress(gateway);
  const url = await listening(server);
  const client = watched(url);
  client.socket.write(request('GET', '/x'));
  await vi.waitFor(() => expect(pending).toHaveLength(1));
  // What had been given to the connection by now would be there after these.
  for (let others = 0; others < 5; others += 1) await sendRaw(url, request('GET', '/other'));
  const isComplete = () => /!(?:\r\n0\r\n\r\n)?$/.test(client.text());
  expect([isComplete(), client.isOpen()]).toEqual([false, true]);
  pending[0]?.();
  await vi.waitFor(() => expect([isComplete(), client.isOpen()]).toEqual([true, false]));
  expect(client.text().match(/x/g)?.length).toBeGreaterThanOrEqual(100_000);
  expect(pending).toHaveLength(1);
  await new Promise((resolve) => server.close(resolve));
});
