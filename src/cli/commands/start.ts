import { run } from '../../app/run.ts';
import type { CommandBody } from '../kit/command.ts';

/** `portcullis start`: starts a process, as `npm start` does. */
export const start: CommandBody = {
  description: [
    'Runs an instance: on embedded stores, or on the servers that DATABASE_URL, REDIS_URL and',
    'KAFKA_BROKERS name. It ends with 0 after SIGINT or SIGTERM, with 1 when it cannot run, and',
    'with 78 when its configuration must change. SIGHUP reads gateway.yaml anew, without a request',
    'lost. --json leaves out the greeting: all is log lines.',
  ].join('\n'),
  examples: ['portcullis start', 'PORT=8080 DATA_DIR=/srv/portcullis portcullis start', 'portcullis start --json'],
  run: ({ env, json }) => run(env, { greets: !json }),
};
