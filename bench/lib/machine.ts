import { execFileSync } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';
import { ROOT } from './product.ts';

const QUIET_SHARE = 0.05;

/** The commit that is measured, and whether the product has changes since. */
export function commitNow(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  const isClean = git('status', '--porcelain', '--', 'src', 'migrations', 'package-lock.json', 'gateway.yaml') === '';
  return `${git('rev-parse', '--short', 'HEAD')}${isClean ? '' : ' with changes'}`;
}

/** The commit, the date and the machine, as a list; `busy` is the share of it, 0 to 1, that others used. */
export function machine(commit: string, busy: number): string {
  const quiet = busy <= QUIET_SHARE ? 'quiet' : 'not quiet';
  const load = `${quiet}: others took ${(busy * 100).toFixed(0)} % of it`;
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return [
    `- Commit ${commit}, ${new Date().toISOString().slice(0, 10)}`,
    `- ${availableParallelism()} cores, ${memory}, ${process.platform} ${process.arch}, Node ${process.versions.node}; ${load}`,
    '- Servers, load and product share the machine',
  ].join('\n');
}
