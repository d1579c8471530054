import { enableCompileCache } from 'node:module';
import { widenThreadPool } from './lib/thread-pool.ts';

widenThreadPool(process.env);
enableCompileCache();
const { run } = await import('./run.ts');
process.exitCode = await run(process.env);
