import { run } from '../../app/run.ts';
import type { CommandBody } from '../kit/command.ts';

/** `portcullis start`: starts a process, as `npm start` does. */
export const start: CommandBody = {
  description: [
    'Runs the service, on embedded stores or on the servers that DATABASE_URL, REDIS_URL and KAFKA_BROKERS name. It exits',
    'with 0 after SIGINT or SIGTERM, with 1 if it cannot run, and with 78 if the configuration is invalid. SIGHUP reloads',
    'gateway.yaml without losing a request. With --json there is no greeting, only log lines.',
  ].join(' '),
  examples: ['portcullis start', 'PORT=8080 DATA_DIR=/srv/portcullis portcullis start', 'portcullis start --json'],
  run: ({ env, json }) => run(env, { greets: !json }),
};
