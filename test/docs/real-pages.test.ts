import { expect, it } from 'vitest';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { operationsPages, stepsOf } from '../support/docs/plan.ts';
import { describeFollowed } from '../support/docs/programs.ts';
import { followed, type Reader } from '../support/docs/run-page.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startOnRealServers } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { createTopics, deleteTopics, freshDatabase, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

// Each page starts a process for each of its commands, on machines that are busy with other tests.
const USERS = 'wallet_address,email\n0xd0c1,one@docs.example\n0xd0c2,two@docs.example\n';

describeFollowed('commands of pages', () => {
  describeReal(['postgres', 'redis', 'kafka'], 'on real servers', () => {
    it.concurrent('every command of docs/quickstart/operator.md does what the page says', async () => {
      await using database = await freshDatabase();
      await using redis = await freshRedis();
      const brokers = serviceAddress('kafka');
      const prefix = topicPrefix();
      // The command finds them: twelve partitions of each would keep the broker busy.
      await createTopics(brokers, prefix, ALL_TOPICS);
      const servers = {
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        KAFKA_BROKERS: brokers,
        TOPIC_PREFIX: prefix,
      };
      const [gateway, ...admin] = await freePorts(3);
      const ports = { 4000: gateway, 4001: admin[0], 4002: admin[1] };
      const instead = Object.entries(ports).flatMap(([from, to]) => [
        [`PORT=${from}`, `PORT=${to}`],
        [`ready ${from}`, `ready ${to}`],
        [`127.0.0.1:${from}`, `127.0.0.1:${to}`],
      ]);
      try {
        const wrong = await followed('docs/quickstart/operator.md', {
          instead: Object.fromEntries(instead),
          env: {},
          files: { 'servers.env': exported(servers) },
        });
        expect(wrong).toEqual([]);
      } finally {
        await deleteTopics(brokers, prefix);
      }
    });

    it.concurrent('every command of pages of docs/operations/ does what its page says', async () => {
      await using p = await startOnRealServers();
      const client = await addClient(p);
      const token = await p.clientToken();
      const reader: Reader = {
        instead: {
          NODE_ID: p.demo.node_id,
          MIGRATION_ID: await uploaded(p, token),
          CLIENT_ID: client.client_id,
          SUPERVISOR_ID: await supervisorOf(p),
        },
        env: { ...p.env, BASE_URL: p.url, TOKEN: token },
        files: {
          'users.csv': USERS,
          'platform.ndjson': `${JSON.stringify({ topic: 'reference.chains', key: p.demo.other_node.node_id, value: { name: 'a chain', version: 3 } })}\n`,
          'operations.json': JSON.stringify({ me: '{ me { nodeId } }' }),
          'password.txt': 'correct horse battery staple\n',
        },
      };
      // In a quick run one page of six.
      const pages = operationsPages().filter((page) => stepsOf(page).length > 0);
      for (const page of inTurn(pages, 6, 1)) expect(await followed(page, reader)).toEqual([]);
    });
  });
});

function exported(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value}'\n`)
    .join('');
}

/** Starts the migration of a file. @returns its id. */
async function uploaded(p: Portcullis, token: string): Promise<string> {
  const form = new FormData();
  const query = 'mutation ($file: File!) { startUserMigration(file: $file) { ... on Migration { id } } }';
  form.set('operations', JSON.stringify({ query, variables: { file: null } }));
  form.set('map', '{"0": ["variables.file"]}');
  form.set('0', new Blob(['wallet_address,email\n0xd0c3,three@docs.example\n'], { type: 'text/csv' }));
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${p.url}/graphql`, { method: 'POST', headers, body: form });
  const { data } = (await response.json()) as { data: { startUserMigration: { id: string } } };
  return data.startUserMigration.id;
}

/** A supervisor who may be disabled: the demo's is the last admin. */
async function supervisorOf(p: Portcullis): Promise<string> {
  const create = [
    'supervisor',
    'create',
    '--node',
    p.demo.node_id,
    '--username',
    'ada-2',
    '--role',
    'viewer',
    '--json',
  ];
  return JSON.parse((await portcullis(create, p.env, 'correct horse battery staple')).out).id;
}
