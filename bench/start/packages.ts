import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../lib/product.ts';

type Listed = string | string[];

interface LockedPackage {
  dev?: boolean;
  devOptional?: boolean;
  os?: Listed;
  cpu?: Listed;
  libc?: Listed;
}

/** How many packages `npm ci` installs on this system, by the lock file: for production, and with what tests need. */
export function packageCounts(): { production: number; all: number } {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const packages = Object.entries<LockedPackage>(lock.packages).filter(([path, found]) => path !== '' && fits(found));
  const production = packages.filter(([, { dev, devOptional }]) => !dev && !devOptional);
  return { production: production.length, all: packages.length };
}

function fits({ os, cpu, libc }: LockedPackage): boolean {
  return admits(os, process.platform) && admits(cpu, process.arch) && admits(libc, 'glibc');
}

function admits(listed: Listed | undefined, value: string): boolean {
  const allowed = [listed ?? []].flat();
  if (allowed.includes(value)) return true;
  return !allowed.includes(`!${value}`) && allowed.every((name) => name.startsWith('!'));
}
