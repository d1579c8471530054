import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Load } from './load.ts';

const LOAD = join(import.meta.dirname, 'load.ts');

/** Runs a script of this folder's package with one argument, as JSON, in a process of its own; gives the JSON it prints. */
export async function runScript(script: string, argument: unknown, env = process.env): Promise<unknown> {
  const args = [script, JSON.stringify(argument)];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`${script} ended with ${code}`);
  return JSON.parse(printed);
}

/** Sends a load from a process of its own; gives the milliseconds that each answer took, from when it was due if the load has a rate. */
export async function runLoad(load: Load): Promise<number[]> {
  return (await runScript(LOAD, load)) as number[];
}
