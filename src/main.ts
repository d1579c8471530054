import { enableCompileCache } from 'node:module';
import { resolveFast } from './lib/fast/module-resolution.ts';
import { widenThreadPool } from './lib/thread-pool.ts';

// SIGHUP has a use once the program is loaded; until then it must not end the process.
process.on('SIGHUP', () => undefined);
widenThreadPool(process.env);
enableCompileCache();
resolveFast();
// A container's first process ignores signals that it does not handle. Until the program is loaded, there is nothing to
// complete before the exit.
const leave = () => process.exit();
process.on('SIGTERM', leave).on('SIGINT', leave);
const { run } = await import('./app/run.ts');
const exitCode = run(process.env);
process.off('SIGTERM', leave).off('SIGINT', leave);
process.exitCode = await exitCode;
