import { appendFileSync } from 'node:fs';

/**
 * Run in the place of the product's own script: the product, and every 50 ms a line with the time and the milliseconds of
 * CPU that its process has taken. Its notifications are applied while it starts, before anybody could ask it.
 */
const EVERY_MS = 50;

const { CPU_FILE = '' } = process.env;
setInterval(() => {
  const { user, system } = process.cpuUsage();
  appendFileSync(CPU_FILE, `${Date.now()} ${(user + system) / 1000}\n`);
}, EVERY_MS).unref();
await import('../../src/main.ts');
