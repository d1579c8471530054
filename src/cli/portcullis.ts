#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { enableCompileCache } from 'node:module';
import { resolveFast } from '../lib/fast/module-resolution.ts';
import { widenThreadPool } from '../lib/thread-pool.ts';

// SIGHUP must not end `start`, which handles it once it is loaded; any other command ends with its terminal.
if (process.argv[2] === 'start') process.on('SIGHUP', () => undefined);
widenThreadPool(process.env);
enableCompileCache();
resolveFast();
const { cli } = await import('./cli.ts');
const { firstLine } = await import('./kit/command-input.ts');
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of the pipe may close it before the output ends.
  if (error.code === 'EPIPE') process.exit();
  process.stderr.write(`portcullis: could not write the output (${error.code}): it is incomplete\n`);
  process.exit(1);
});
// Nothing can be reported without a standard error, and the exit code reports the failure as well.
process.stderr.on('error', () => undefined);
process.exitCode = await cli(process.argv.slice(2), process.env, {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  readLine: () => firstLine(process.stdin),
});
