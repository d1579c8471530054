import type { ExecutionResult } from 'graphql';
import { expect, it } from 'vitest';
import type { ErrorMask } from '../../src/api/graphql/execution/error-masking.ts';
import { SharedResults } from '../../src/api/graphql/execution/shared-results.ts';
import { SseStream } from '../../src/api/graphql/execution/sse-streams.ts';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { ENDLESS } from '../support/harness/endless.ts';

it('D6-10: what is kept of an event is as large as its text, and not the pool that it was made in', async () => {
  const event = { seq: 7n };
  const result = await new SharedResults().shared(event, 'all', async () => ({ data: { id: 'é' } }));
  const written: Buffer[] = [];
  const res = { on: () => res, removeHeader: () => undefined, writeHead: () => undefined, end: write };
  function write(chunk: Buffer): boolean {
    written.push(chunk);
    return true;
  }
  const results = [result, result].values();
  const stream = new SseStream({
    results: { next: async () => results.next() },
    mask: { result: (one: ExecutionResult) => one } as unknown as ErrorMask,
    exchange: { res, found: {}, audit: { capture: { writeShared: write } } } as unknown as Exchange,
    watch: ENDLESS,
    onClose: () => undefined,
  });
  stream.run();
  await expect.poll(() => written.length).toBe(4);
  const [, first, second] = written;
  expect(first?.toString()).toBe('event: next\nid: 7\ndata: {"data":{"id":"é"}}\n\n');
  expect(first?.buffer.byteLength).toBe(first?.length);
  // All who are told it are told the same bytes.
  expect(second).toBe(first);
});
