import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../start/process.ts';

/** The heap in MiB that the flags of a file set: V8 has up to three semi-spaces beside the old space. */
function heapIn(path: string): number {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const flag = (name: string) => Number(new RegExp(`--${name}=(\\d+)`).exec(text)?.[1]);
  return flag('max-old-space-size') + 3 * flag('max-semi-space-size');
}

/** The heaps of the image and of `npm start`, in MiB. */
export const HEAPS = { image: heapIn('Dockerfile'), start: heapIn('package.json') };
