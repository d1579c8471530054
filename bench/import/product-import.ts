import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { productEnv, ROOT } from '../lib/product.ts';
import type { World } from '../lib/world.ts';
import type { Counts } from './copy.ts';

const CLI = join(ROOT, 'src/cli/portcullis.ts');
const FLAGS = ['--disable-warning=ExperimentalWarning'];
const SAMPLE_MS = 100;

/** One `users import`, from the start of its process to its end. */
export interface ProductImport {
  ms: number;
  counts: Counts;
  residentMb: number;
}

/** Runs `users import` as a user does. */
export async function importByProduct(
  { dataDir, servers }: World,
  file: string,
  nodeId: string,
  nodeArgs: readonly string[] = [],
): Promise<ProductImport> {
  const args = [...FLAGS, ...nodeArgs, CLI, 'users', 'import', file, '--node', nodeId, '--json'];
  const startedAt = performance.now();
  const env = productEnv({ dataDir, servers });
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let residentMb = 0;
  const sampling = setInterval(() => {
    residentMb = Math.max(residentMb, peakMb(child.pid ?? 0));
  }, SAMPLE_MS);
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  clearInterval(sampling);
  const ms = performance.now() - startedAt;
  if (code !== 0) throw new Error(`users import ended with ${code}: ${printed}`);
  const { success, skipped } = JSON.parse(printed);
  return { ms, counts: { success, skipped }, residentMb };
}

/** The most that was ever resident of a process, in 10^6 bytes. */
function peakMb(pid: number): number {
  try {
    return (Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024) / 1e6;
  } catch {
    // It has ended.
    return 0;
  }
}
