import { enableCompileCache } from 'node:module';
import { widenThreadPool } from './lib/thread-pool.ts';

// Of use once the program is loaded; until then it must not end the process.
process.on('SIGHUP', () => undefined);
widenThreadPool(process.env);
enableCompileCache();
const { run } = await import('./run.ts');
process.exitCode = await run(process.env);
