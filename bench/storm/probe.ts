import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { percentile } from '../lib/statistics.ts';

const EVERY_MS = 10;

/** How long GET /health took, in milliseconds. */
export interface Waits {
  p50: number;
  p99: number;
  highest: number;
  count: number;
}

/**
 * Asks GET /health every ten milliseconds over one connection until `isOver`. Those that fall due while it waits for an
 * answer are not asked, but count as if they had been, so that a long stop weighs as much as it lasted.
 */
export async function probeHealth(url: string, isOver: () => boolean): Promise<Waits> {
  const pool = new Pool(url, { connections: 1, pipelining: 1 });
  const waits: number[] = [];
  for (let due = performance.now(); !isOver(); due += EVERY_MS) {
    await delay(Math.max(0, due - performance.now()));
    const from = performance.now();
    const { statusCode, body } = await pool.request({ method: 'GET', path: '/health' });
    await body.dump();
    if (statusCode !== 200) throw new Error(`GET /health answered ${statusCode}`);
    const answered = performance.now();
    for (due = from; due < answered; due += EVERY_MS) waits.push(answered - due);
    due -= EVERY_MS;
  }
  await pool.close();
  const of = (quantile: number) => percentile(waits, quantile);
  return { p50: of(0.5), p99: of(0.99), highest: of(1), count: waits.length };
}
