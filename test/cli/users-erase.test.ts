import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';

describeReal('postgres', 'users erase', () => {
  it('D7-09 D1-12: blanks a user, repeatedly without effect, and names an unknown user', async () => {
    await using folder = await emptyFolder();
    await using database = await realDatabase();
    const env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
    const node = { id: randomUUID(), name: 'Node' };
    const user = {
      id: randomUUID(),
      node_id: node.id,
      name: 'Ann',
      email: 'ann@x.y',
      address: '0x1',
      external_id: 'e',
    };
    const door = database.db.unscoped('test');
    await door.run((k) => k.insertInto('nodes').values(node));
    await door.run((k) => k.insertInto('users').values(user));
    const plain = await portcullis(['users', 'erase', user.id.toUpperCase()], env);
    const receipt = /^Erased user (\S+) at \d{4}-\S+Z: 0 audit records, 0 stored responses\.\n$/;
    expect(plain).toEqual({ code: 0, out: expect.stringMatching(receipt), err: '' });
    expect(receipt.exec(plain.out)?.[1]).toBe(user.id);
    const json = await portcullis(['users', 'erase', user.id, '--json'], env);
    expect(JSON.parse(json.out)).toEqual({
      id: user.id,
      erased: true,
      erased_at: expect.stringMatching(/Z$/),
      records: 0,
      responses: 0,
    });
    const [row] = await database.db.forNode(node.id).run((k) => k.selectFrom('users').selectAll());
    expect(row).toMatchObject({ id: user.id, name: '', email: '', address: '', external_id: null });
    const missing = randomUUID();
    expect(await portcullis(['users', 'erase', missing], env)).toMatchObject({
      code: 1,
      err: `portcullis: there is no user ${missing}\n`,
    });
  });
});
