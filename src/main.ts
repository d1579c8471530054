import { enableCompileCache } from 'node:module';
import { widenThreadPool } from './lib/thread-pool.ts';

// Of use once the program is loaded; until then it must not end the process.
process.on('SIGHUP', () => undefined);
widenThreadPool(process.env);
enableCompileCache();
// The first process of a container is not ended by a signal that nobody heeds. Until it is loaded it has nothing to finish.
const leave = () => process.exit();
process.on('SIGTERM', leave).on('SIGINT', leave);
const { run } = await import('./app/run.ts');
const ended = run(process.env);
process.off('SIGTERM', leave).off('SIGINT', leave);
process.exitCode = await ended;
