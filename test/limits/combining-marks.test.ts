import { randomUUID } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { nfc } from '../../src/lib/spelling.ts';
import { PASSWORD } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { newUser } from '../support/user-migrations/calls.ts';
import { fileOf, filesOn, work } from '../support/user-migrations/files-fixture.ts';

const p = usePortcullis();
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

/** Combining marks of which NFC has the last ones first: `normalize` takes minutes to sort so many. */
function marks(count: number): string {
  return `a${'\u0315'.repeat(count / 2)}${'\u0323'.repeat(count / 2)}`;
}

const MANY = marks(240_000);
/** A line of a file has at most 16 KiB. */
const IN_A_FILE = marks(8_000);
const SOME = marks(30);

describe('D6-24: long sequences of combining marks do not block the event loop', () => {
  it('the token endpoint rejects them as usernames and passwords, with and without a client_id', async () => {
    const most = marks(30_000);
    const given = { grant_type: 'password', ...p.demo.client };
    const asked = [
      { username: most, password: PASSWORD },
      { ...p.demo.supervisor, password: most },
    ];
    for (const typed of asked) {
      for (const client of [{}, { client_id: randomUUID() }]) {
        const { status } = await p.call('POST', '/v2/oauth/token', { json: { ...given, ...typed, ...client } });
        expect(status).toBe(401);
      }
    }
  });

  it.each(['email', 'name', 'surname', 'external_id', 'wallet_address'])(
    'a user is rejected with them as %s',
    async (member) => {
      const path = '/v2/users/migrate/with-wallet';
      const one = await p.call('POST', path, { token, json: { ...newUser(), [member]: MANY } });
      expect(one.status).toBe(400);
      const many = await p.call('POST', `${path}/bulk`, { token, json: { users: [{ ...newUser(), [member]: MANY }] } });
      expect(many.status).toBe(200);
      expect(many.json.results[0].status).toBe('failed');
    },
  );

  it.each(['name', 'surname', 'email'])('a row of a file fails with them as %s', async (member) => {
    const { database, nowMs } = p.service.context;
    const { files, jobs } = filesOn(database.db, { nowMs });
    const caller = { nodeId: p.demo.node_id, subject: 'test', correlationId: 'test' };
    const members = { ...newUser(), [member]: IN_A_FILE };
    const csv = `${Object.keys(members).join()}\n${Object.values(members).join()}\n`;
    const { id } = await files.start(caller, fileOf(csv), { lease: () => jobs.lease() });
    await work(jobs);
    const [outcome] = await rows(p).run((k) =>
      k.selectFrom('migration_rows').selectAll().where('migration_id', '=', id),
    );
    expect(outcome?.status).toBe('failed');
  });

  it('a supervisor is rejected with them as username or password', async () => {
    const query = 'mutation($input: SupervisorInput!) { r: createSupervisor(input: $input) { __typename } }';
    for (const given of [{ username: MANY }, { password: MANY }]) {
      const input = { username: randomUUID(), password: PASSWORD, role: 'viewer', ...given };
      const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { input } } });
      expect(json.data.r.__typename).toBe('ValidationError');
    }
  });

  it('no other module of src/ calls normalize()', () => {
    const files = globSync('src/**/*.ts').filter((file) => readFileSync(file, 'utf8').includes('.normalize('));
    // The key of an identifier is that of its first 1,024 characters, and names are cut to four marks in a row.
    expect(files.toSorted()).toEqual(['src/audit/masked-names.ts', 'src/lib/identifier-key.ts', 'src/lib/spelling.ts']);
  });

  it('up to 30 marks in a row are normalized, and 32 are left as they are', () => {
    expect(nfc(SOME.repeat(100))).toBe(SOME.repeat(100).normalize());
    expect(nfc(SOME)).not.toBe(SOME);
    expect(nfc(marks(32))).toBe(marks(32));
  });
});
