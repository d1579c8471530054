import { once } from 'node:events';
import { startService } from '../../src/app/service.ts';
import { widenThreadPool } from '../../src/lib/thread-pool.ts';
import { readConfig } from '../../src/platform/config/config.ts';
import { readSecrets } from '../../src/platform/config/secrets.ts';
import { pinoLog } from '../../src/platform/telemetry/process-log.ts';

/** Run as a process of its own: the product as it is, but for an audit that is told of every request and does nothing. */
widenThreadPool(process.env);
const { config, env } = readConfig(process.env);
const log = await pinoLog(config.logLevel);
await using _service = await startService({
  config,
  secrets: readSecrets(config, env),
  log,
  overrides: {
    audit: {
      record: (_exchange, _aborted, kept) => kept(),
      recordOperation: () => Promise.resolve(),
      recordUnparsed: (_unparsed, _atMs, kept) => kept(),
    },
  },
});
await once(process, 'SIGTERM');
