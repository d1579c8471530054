import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { costs, EXAMPLES, sizeOf, sizingTable } from '../../scripts/sizing-page.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operations/sizing.md'), 'utf8');

it('the sizing page has the table that follows from the measured figures', () => {
  expect(PAGE).toContain(sizingTable());
  expect(PAGE).toContain(`it takes ${costs().restMs} ms a second at rest`);
});

it('the run of the small example on the page is compared with what follows from the measured figures now', () => {
  const { gatewayMs, restMs } = sizeOf(EXAMPLES.small);
  expect(PAGE).toContain(`| CPU of the gateway, ms a second | ${(gatewayMs + restMs).toFixed(0)} |`);
});

it('a size grows with its load, is never less than two processes of a role, and counts their rest', () => {
  const none = sizeOf({ proxied: 0, pages: 0, tokens: 0, notifications: 0, deliveries: 0 });
  expect(none).toMatchObject({ gatewayMs: 0, workerMs: 0, gateways: 2, workers: 2, recordsGbPerDay: 0 });
  const { unit, restMs } = costs();
  const proxied = ((700 - restMs) * 3 * 1_000) / unit.proxied;
  const at = (rate: number) => sizeOf({ ...EXAMPLES.small, tokens: 0, proxied: rate }).gateways;
  expect([at(proxied - 1), at(proxied + 1)]).toEqual([3, 4]);
});
