import { afterEach, expect, it, vi } from 'vitest';
import { runCooperatively } from '../../src/lib/yielding.ts';
import { heldMemory } from '../../src/platform/held-memory.ts';
import { begun, request } from '../support/gateway/raw.ts';
import { PATIENCE_MS } from '../support/harness/deadlines.ts';
import { usePortcullis } from '../support/harness.ts';

const TWO_SLICES_MS = 10;
const QUERY = '{ previewWallet(walletId: "w", facts: { balances: [] }) { rules { name } } }';
const MCP = 'application/json, text/event-stream';

const p = usePortcullis();
afterEach(() => vi.restoreAllMocks());

const call = () => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name: 'preview_wallet_rule', arguments: { wallet_id: p.demo.wallet_id, balances: [] } },
});

it.each<[over: string, path: string, accept: string, body: () => unknown]>([
  ['a GraphQL request', '/graphql', 'application/json', () => ({ query: QUERY })],
  ['a GraphQL request for server-sent events', '/graphql', 'text/event-stream', () => ({ query: QUERY })],
  ['a GraphQL batch', '/graphql', 'application/json', () => [{ query: QUERY }, { query: QUERY }]],
  ['MCP', '/v2/mcp', MCP, call],
])(
  'D6-26: when the caller of %s disconnects, the work of the request stops at its next pause',
  async (_over, path, accept, body) => {
    const stopped = Promise.withResolvers<unknown>();
    let isOver = false;
    let pieces = 0;
    vi.spyOn(p.service.context.walletRulePreviews, 'previewWallet').mockImplementation(async () => {
      try {
        while (!isOver)
          await runCooperatively(() => {
            pieces += 1;
            for (const until = performance.now() + TWO_SLICES_MS; performance.now() < until; );
          }, heldMemory());
      } catch (error) {
        stopped.resolve(error);
      }
      return { rules: [] };
    });
    const text = JSON.stringify(body());
    const headers = {
      ...{ Host: 'localhost', Accept: accept, Authorization: `Bearer ${await p.loginToken()}` },
      ...{ 'Content-Type': 'application/json', 'Content-Length': `${text.length}` },
    };
    const { socket } = begun(p.url, request('POST', path, headers) + text);
    try {
      await vi.waitFor(() => expect(pieces).toBeGreaterThan(1), { timeout: PATIENCE_MS });
      socket.destroy();
      expect(await stopped.promise).toMatchObject({ code: 'service_unavailable' });
    } finally {
      isOver = true;
    }
  },
);
