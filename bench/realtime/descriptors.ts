import { readFileSync } from 'node:fs';

/** What a process has open beside its subscribers. */
const OTHERS = 200;

/** @throws where a process may not have as many files open as it needs for so many subscribers. */
export function checkDescriptors(subscribers: number): void {
  const [, limit = ''] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  if (limit === 'unlimited' || Number(limit) >= subscribers + OTHERS) return;
  throw new Error(`${limit} files may be open, ${subscribers} subscribers need ${subscribers + OTHERS}: ulimit -n`);
}
